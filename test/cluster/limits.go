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

// limits restricts the rates of loop devices for all pods. Version 1 of cgroups applies a rule to the processes of one
// cgroup and not to those below it, so every cgroup of the nodes gets the rule, later ones within 50 ms.
type limits struct {
	root  string // cgroup of the cluster in the hierarchy blkio
	mu    sync.Mutex
	rules map[string]rule // by device
}

// A rule limits a device in each direction, in operations and bytes per second. Zero is no limit.
type rule struct {
	number    string // major:minor
	file      string // file that the device is on; on another file it is another volume
	iops, bps int64
	done      map[string]bool // cgroups that have it
}

func newLimits(s spec) *limits {
	return &limits{root: filepath.Join("/sys/fs/cgroup/blkio", s.cgroup()), rules: map[string]rule{}}
}

// set parses "DEVICE IOPS BPS" and applies it as a rule.
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

// blockFile returns an attribute of a block device from /sys/block.
func blockFile(device, name string) (string, error) {
	text, err := os.ReadFile(filepath.Join("/sys/block", filepath.Base(device), name))
	return strings.TrimSpace(string(text)), err
}

// enforce applies the rules to new cgroups every 50 ms, until the context ends.
func (l *limits) enforce(ctx context.Context) {
	for ; ctx.Err() == nil; time.Sleep(50 * time.Millisecond) {
		l.reapply()
	}
}

// reapply applies the rules to new cgroups, and removes those of devices that have become other volumes.
func (l *limits) reapply() {
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
			return nil // the cgroup was removed
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

// files returns the files of a cgroup that hold the rule, with their content.
func (r rule) files() map[string]string {
	iops, bps := fmt.Sprintf("%s %d", r.number, r.iops), fmt.Sprintf("%s %d", r.number, r.bps)
	const prefix = "blkio.throttle."
	return map[string]string{
		prefix + "read_iops_device": iops, prefix + "write_iops_device": iops,
		prefix + "read_bps_device": bps, prefix + "write_bps_device": bps,
	}
}
