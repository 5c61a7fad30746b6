package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/knotmeter/knotmeter/internal/machine"
	"github.com/knotmeter/knotmeter/internal/result"
)

// A Group is a control group made by this program. It is locked while it is open.
type Group struct {
	dir  string
	file *os.File
}

// New makes a group below the one of this process, so that the limits of the session still apply to what runs in it.
// The error Is result.ErrNotSupported if that is not possible.
func New() (*Group, error) {
	parent, err := parent()
	if err != nil {
		return nil, err
	}
	return newGroup(parent, Mark)
}

// newGroup makes a group below another one.
func newGroup(parent, mark string) (*Group, error) {
	dir, err := os.MkdirTemp(parent, Prefix)
	if err != nil {
		return nil, explainDenied(parent, err)
	}
	g, err := lock(dir)
	if err != nil {
		return nil, errors.Join(err, os.Remove(dir))
	}
	// The group is marked only once it is locked, so that no other process removes it as a leftover in between.
	if err := unix.Setxattr(dir, mark, []byte("knotmeter"), unix.XATTR_CREATE); err != nil {
		return nil, errors.Join(explainDenied(parent, err), g.Close())
	}
	return g, nil
}

// explainDenied turns the file system's errors for a user who may not make groups into a NotSupported error.
func explainDenied(parent string, err error) error {
	for _, no := range []unix.Errno{unix.EACCES, unix.EPERM, unix.EROFS, unix.ENOTSUP} {
		if errors.Is(err, no) {
			return result.NotSupported(fmt.Sprintf("no control group can be made in %s: %v; "+
				"that needs root, a writable cgroup v2 hierarchy, and Linux 5.7 or later", parent, no))
		}
	}
	return fmt.Errorf("making a control group: %w", err)
}

// parent returns the directory of this process's group.
func parent() (string, error) {
	m, err := mountedHierarchy()
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", fmt.Errorf("which control group this is: %w", err)
	}
	group, err := ownGroup(string(text))
	if err != nil {
		return "", err
	}
	return groupDir(m, group), nil
}

func mountedHierarchy() (machine.Mount, error) {
	text, err := mountinfo()
	if err != nil {
		return machine.Mount{}, err
	}
	return findMount(text)
}

// mountinfo returns the text that lists what is mounted.
func mountinfo() (string, error) {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", fmt.Errorf("which control groups are mounted: %w", err)
	}
	return string(text), nil
}

const errNotMounted = result.NotSupported("no cgroup v2 hierarchy is mounted here (mount -t cgroup2)")

// findMount returns the first cgroup v2 hierarchy, or part of one, of a mountinfo.
func findMount(mountinfo string) (machine.Mount, error) {
	for _, m := range machine.Mounts(mountinfo) {
		if m.Kind == "cgroup2" {
			return m, nil
		}
	}
	return machine.Mount{}, errNotMounted
}

// ownGroup returns the process's group in the version 2 hierarchy from the text of /proc/self/cgroup (cgroups(7)).
func ownGroup(cgroups string) (string, error) {
	for line := range strings.Lines(cgroups) {
		if group, ok := strings.CutPrefix(line, "0::"); ok {
			return strings.TrimSuffix(group, "\n"), nil
		}
	}
	return "", errNotMounted
}

// groupDir returns the directory of a group. For a group outside of the mounted part it is the mount point.
func groupDir(m machine.Mount, group string) string {
	rest, ok := strings.CutPrefix(group, strings.TrimSuffix(m.Root, "/")+"/")
	if !ok || strings.Contains(group, "..") {
		return m.Point
	}
	return filepath.Join(m.Point, rest)
}

// lock opens and locks a group. The kernel unlocks it when the process ends.
func lock(dir string) (*Group, error) {
	file, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("control group %s is in use: %w", dir, err), file.Close())
	}
	if _, err := os.Stat(dir); err != nil { // removed between Open and Flock
		return nil, errors.Join(err, file.Close())
	}
	return &Group{dir, file}, nil
}

// Dir returns the group's directory.
func (g *Group) Dir() string { return g.dir }

// Place changes attr so that the process starts in the group (Linux 5.7 or later).
func (g *Group) Place(attr *syscall.SysProcAttr) {
	attr.UseCgroupFD, attr.CgroupFD = true, int(g.file.Fd())
}

// Close kills the processes in the group and removes it.
func (g *Group) Close() error {
	err := g.remove()
	return errors.Join(err, g.file.Close())
}

func (g *Group) remove() error {
	// Linux before 5.14 has no cgroup.kill; callers must end their processes themselves.
	_ = os.WriteFile(filepath.Join(g.dir, "cgroup.kill"), []byte("1"), 0)
	var err error
	for range 200 {
		err = unix.Rmdir(g.dir)
		if err == nil || errors.Is(err, unix.ENOENT) {
			return nil
		}
		if !errors.Is(err, unix.EBUSY) {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	return fmt.Errorf("removing the control group %s: %w", g.dir, err)
}

// Clean removes the groups whose maker has ended and for which takes returns true, with all processes in them, and
// returns their directories. It does not touch groups with such a name but without the mark, and passes those to
// onSpared.
func Clean(mayRemove func(dir string) bool, onSpared func(dir string)) ([]string, error) {
	mounted, err := mountinfo()
	if err != nil {
		return nil, err
	}
	var removed []string
	var errs []error
	if m, err := findMount(mounted); err == nil {
		removed, err = cleanIn(m.Point, Mark, mayRemove, onSpared)
		errs = append(errs, err)
	}
	if m, ok := findCPUMount(mounted); ok {
		more, err := cleanIn(m.Point, privilegedMark, mayRemove, onSpared)
		removed, errs = append(removed, more...), append(errs, err)
	}
	return removed, errors.Join(errs...)
}

// cleanIn removes groups of one hierarchy.
func cleanIn(top, mark string, mayRemove func(dir string) bool, onSpared func(dir string)) ([]string, error) {
	var removed []string
	var errs []error
	err := filepath.WalkDir(top, func(dir string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() || !strings.HasPrefix(d.Name(), Prefix) { // groups may disappear meanwhile
			return nil
		}
		if _, err := unix.Getxattr(dir, mark, nil); err != nil {
			if !errors.Is(err, unix.ENOENT) {
				onSpared(dir)
			}
			return nil // a group of this program may be below it
		}
		g, err := lock(dir)
		if err != nil {
			return filepath.SkipDir // in use, or removed
		}
		if !mayRemove(dir) {
			err = g.file.Close()
		} else if err = g.Close(); err == nil {
			removed = append(removed, dir)
		}
		errs = append(errs, err)
		return filepath.SkipDir
	})
	return removed, errors.Join(append(errs, err)...)
}
