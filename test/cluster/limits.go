//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// limits hold loop devices to rates, for all pods. Version 1 of cgroups applies a rule to the processes of one cgroup
// and not to those below it, so each cgroup of the nodes gets it, and each that is made later soon after.
type limits struct {
	root  string // of the cluster in the hierarchy for block devices
	mu    sync.Mutex
	rules map[string]rule // by device
}

// A rule is what a device is held to, in each direction. Zero is no limit.
type rule struct {
	number    string // major:minor
	file      string // what the device was on: on another file it is another volume
	iops, bps int64
	done      map[string]bool // cgroups that have it
}

func newLimits(s spec) *limits {
	return &limits{root: filepath.Join("/sys/fs/cgroup/blkio", s.cgroup()), rules: map[string]rule{}}
}

// set reads "DEVICE IOPS BPS" and applies it.
func (l *limits) set(text string) error {
	r, device := rule{done: map[string]bool{}}, ""
	if _, err := fmt.Sscanf(text, "%s %d %d", &device, &r.iops, &r.bps); err != nil {
		return fmt.Errorf("%q: %w", text, err)
	}
	var err error
	if r.number, err = blockFile(device, "dev"); err != nil {
		return err
	}
	if r.file, err = blockFile(device, "loop/backing_file"); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.apply(r); err != nil {
		return fmt.Errorf("limit %s: %w", device, err)
	}
	l.rules[device] = r
	if r.iops == 0 && r.bps == 0 {
		delete(l.rules, device)
	}
	return nil
}

// blockFile is what the kernel reports of a device.
func blockFile(device, name string) (string, error) {
	text, err := os.ReadFile(filepath.Join("/sys/block", filepath.Base(device), name))
	return strings.TrimSpace(string(text)), err
}

// keep applies the rules to cgroups that are made, until the context ends.
func (l *limits) keep(ctx context.Context) {
	for ; ctx.Err() == nil; time.Sleep(50 * time.Millisecond) {
		l.again()
	}
}

// again applies the rules where they are not yet, and forgets those of devices that became others.
func (l *limits) again() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for device, r := range l.rules {
		if file, err := blockFile(device, "loop/backing_file"); err != nil || file != r.file {
			r.iops, r.bps, r.done = 0, 0, map[string]bool{}
			delete(l.rules, device)
		}
		if err := l.apply(r); err != nil {
			fmt.Fprintln(os.Stderr, "limit", device+":", err)
		}
	}
}

// apply writes a rule to the cgroups that do not have it.
func (l *limits) apply(r rule) error {
	return filepath.WalkDir(l.root, func(dir string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // it is gone
		}
		if err != nil || !e.IsDir() || r.done[dir] {
			return err
		}
		for name, text := range r.files() {
			err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
		r.done[dir] = true
		return nil
	})
}

// files are the files of a cgroup that hold the rule, and what they hold.
func (r rule) files() map[string]string {
	iops, bps := fmt.Sprintf("%s %d", r.number, r.iops), fmt.Sprintf("%s %d", r.number, r.bps)
	const prefix = "blkio.throttle."
	return map[string]string{
		prefix + "read_iops_device": iops, prefix + "write_iops_device": iops,
		prefix + "read_bps_device": bps, prefix + "write_bps_device": bps,
	}
}
