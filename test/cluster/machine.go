//go:build linux

package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"
)

// machineState returns what clusters could leave on the machine, except for that of other clusters: a line for each BPF
// program and map, mount, link, route, rule of netfilter, ipset, cgroup and loop device.
func (s spec) machineState() ([]string, error) {
	var lines []string
	for _, kind := range []bpfKind{bpfPrograms, bpfMaps} {
		ids, err := kind.ids()
		if err != nil {
			return nil, err
		}
		for _, id := range ids {
			lines = append(lines, fmt.Sprintf("BPF %s %d", kind.name, id))
		}
	}
	for _, listing := range []struct{ kind, by string }{
		{"link", "ip -oneline link show"}, {"route", "ip route show table all"}, {"route", "ip -6 route show table all"},
		{"rule", "iptables-save"}, {"rule", "ip6tables-save"}, {"ipset", "ipset save"}, {"mount", "cat /proc/self/mounts"},
		{"loop device", "losetup --list --noheadings --output NAME,BACK-FILE"},
	} {
		out, err := words(listing.by).output()
		if errors.Is(err, exec.ErrNotFound) { // without the program there are none
			continue
		}
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(out) {
			// Comments contain the time, and chains their packet counters.
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, ":") {
				lines = append(lines, listing.kind+" "+line)
			}
		}
	}
	groups, err := filepath.Glob("/sys/fs/cgroup/*/test-cluster*")
	if err != nil {
		return nil, err
	}
	for _, group := range groups {
		lines = append(lines, "cgroup "+group)
	}
	lines = slices.DeleteFunc(lines, s.ofOtherCluster)
	slices.Sort(lines)
	return slices.Compact(lines), nil
}

// clusterNames matches the names of clusters on the machine, with their number.
var clusterNames = regexp.MustCompile(`knotmeter-c(?:luster)?(?:-(\d))?\b|test-cluster(?:-(\d))?\b|\b10\.199\.(\d)\.`)

// ofOtherCluster reports whether a line belongs to another cluster.
func (s spec) ofOtherCluster(line string) bool {
	own := []string{strconv.Itoa(s.ID), strings.TrimPrefix(suffix(s.ID), "-")}
	return slices.ContainsFunc(clusterNames.FindAllStringSubmatch(line, -1), func(match []string) bool {
		return !slices.Contains(own, strings.Join(match[1:], ""))
	})
}

// cleanupTimeout is how long the kernel may take to remove the content of namespaces that have ended.
const cleanupTimeout = 2 * time.Minute

// checkLeft writes the state of the machine into a file. If the file exists, it returns an error that lists what the
// machine has in addition, once cleanupTimeout has passed.
func checkLeft(ctx context.Context, s spec, args []string) error {
	if len(args) != 1 {
		return errors.New("left: name the file that has, or is to have, the state of the machine")
	}
	before, err := os.ReadFile(args[0])
	if errors.Is(err, fs.ErrNotExist) {
		lines, err := s.machineState()
		if err != nil {
			return err
		}
		return os.WriteFile(args[0], []byte(strings.Join(lines, "\n")+"\n"), 0o600)
	}
	if err != nil {
		return err
	}
	known := strings.Split(string(before), "\n")
	return await(ctx, "the machine as it was", cleanupTimeout, func() error {
		lines, err := s.machineState()
		if err != nil {
			return err
		}
		left := slices.DeleteFunc(lines, func(line string) bool { return slices.Contains(known, line) })
		if len(left) > 0 {
			return fmt.Errorf("it has %d things that it had not:\n%s", len(left), strings.Join(left, "\n"))
		}
		return nil
	})
}

// A bpfKind is a kind of BPF object with numbers of the whole machine; next is the command of bpf(2) that iterates
// them.
type bpfKind struct {
	name string
	next uintptr
}

var bpfPrograms, bpfMaps = bpfKind{"program", 11}, bpfKind{"map", 12}

// bpfCall holds the system call number of bpf(2) by architecture.
var bpfCall = map[string]uintptr{"amd64": 321, "arm64": 280}

func (k bpfKind) ids() ([]uint32, error) {
	var list []uint32
	var attributes [12]byte // start_id, next_id, open_flags
	for {
		_, _, errno := syscall.Syscall(bpfCall[runtime.GOARCH], k.next, uintptr(unsafe.Pointer(&attributes)),
			unsafe.Sizeof(attributes))
		switch {
		case errno == syscall.ENOENT:
			return list, nil
		case errno != 0:
			return nil, fmt.Errorf("list the BPF %ss: %w", k.name, errno)
		}
		id := binary.NativeEndian.Uint32(attributes[4:])
		list = append(list, id)
		binary.NativeEndian.PutUint32(attributes[:], id)
	}
}
