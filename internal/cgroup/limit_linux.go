package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/knotmeter/knotmeter/internal/machine"
	"github.com/knotmeter/knotmeter/internal/result"
)

// period is the time in which a quota of CPU time is counted, in µs: that of kubelets.
const period = 100_000

// A file is a setting of a group, and its text.
type file struct{ name, text string }

// quota returns the settings that limit a group to a number of CPUs, in thousandths.
func quota(version, milliCPUs int) []file {
	limit := strconv.Itoa(milliCPUs * period / 1000)
	if version == 2 {
		return []file{{"cpu.max", limit + " " + strconv.Itoa(period)}}
	}
	return []file{{"cpu.cfs_period_us", strconv.Itoa(period)}, {"cpu.cfs_quota_us", limit}}
}

// NewLimited makes a group whose processes together may use that many thousandths of a CPU's time. The error Is
// result.ErrNotSupported if that is not possible.
func NewLimited(milliCPUs int) (*Group, error) {
	mounted, err := mountinfo()
	if err != nil {
		return nil, err
	}
	version, mark := 1, privilegedMark
	m, ok := findCPUMount(mounted)
	if !ok {
		version, mark = 2, Mark
		if m, err = findMount(mounted); err != nil {
			return nil, err
		}
		if err := enableCPU(m.Point); err != nil {
			return nil, err
		}
	}
	g, err := newGroup(m.Point, mark)
	if err != nil {
		return nil, err
	}
	for _, f := range quota(version, milliCPUs) {
		if err := os.WriteFile(filepath.Join(g.dir, f.name), []byte(f.text), 0); err != nil {
			return nil, errors.Join(fmt.Errorf("limit the control group %s to %dm CPUs: %w", g.dir, milliCPUs, err), g.Close())
		}
	}
	return g, nil
}

// enableCPU lets groups below one of version 2 limit CPU time.
func enableCPU(parent string) error {
	name := filepath.Join(parent, "cgroup.subtree_control")
	if text, err := os.ReadFile(name); err == nil && slices.Contains(strings.Fields(string(text)), "cpu") {
		return nil
	}
	if err := os.WriteFile(name, []byte("+cpu"), 0); err != nil {
		return result.NotSupported(fmt.Sprintf("CPU time cannot be limited below the control group %s: %v; that needs root, "+
			"and the controller cpu", parent, errors.Unwrap(err)))
	}
	return nil
}

// findCPUMount returns the cgroup v1 hierarchy of the controller cpu in a mountinfo; ok is false if there is none.
func findCPUMount(mountinfo string) (m machine.Mount, ok bool) {
	for _, m := range machine.Mounts(mountinfo) {
		_, ofHierarchy, _ := strings.Cut(m.Options, "; ")
		if m.Kind == "cgroup" && slices.Contains(strings.Split(ofHierarchy, ","), "cpu") {
			return m, true
		}
	}
	return machine.Mount{}, false
}

// Enter moves the calling process into a group, and replaces it by another program.
func Enter(dir string, args []string) error {
	if len(args) == 0 {
		return errors.New("which program is to run in the control group?")
	}
	pid := []byte(strconv.Itoa(os.Getpid()))
	if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), pid, 0); err != nil {
		return fmt.Errorf("enter the control group %s: %w", dir, err)
	}
	return fmt.Errorf("start %s: %w", args[0], unix.Exec(args[0], args, os.Environ()))
}
