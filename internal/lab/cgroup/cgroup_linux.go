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

// A Group is a control group of ours, locked as long as it is open.
type Group struct {
	dir  string
	file *os.File
}

// New makes a group below the one that the process is in, so that the limits of the session still hold for what runs in
// it. The error Is result.ErrNotSupported where that is not possible.
func New() (*Group, error) {
	parent, err := parent()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(parent, Prefix)
	if err != nil {
		return nil, refused(parent, err)
	}
	g, err := lock(dir)
	if err != nil {
		return nil, errors.Join(err, os.Remove(dir))
	}
	// Locked before it is marked: no other process that cleans up takes it for a leftover in between.
	if err := unix.Setxattr(dir, Mark, []byte("lab"), unix.XATTR_CREATE); err != nil {
		return nil, errors.Join(refused(parent, err), g.Close())
	}
	return g, nil
}

// refused turns the file system's answers to a user who may not make groups into the reason.
func refused(parent string, err error) error {
	for _, no := range []unix.Errno{unix.EACCES, unix.EPERM, unix.EROFS, unix.ENOTSUP} {
		if errors.Is(err, no) {
			return result.NotSupported(fmt.Sprintf("no control group can be made in %s: %v; "+
				"that needs root, a writable cgroup v2 hierarchy, and Linux 5.7 or later", parent, no))
		}
	}
	return fmt.Errorf("making a control group: %w", err)
}

// parent is the directory of the group that this process is in.
func parent() (string, error) {
	m, err := mounted()
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", fmt.Errorf("which control group this is: %w", err)
	}
	group, err := own(string(text))
	if err != nil {
		return "", err
	}
	return dir(m, group), nil
}

func mounted() (machine.Mount, error) {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return machine.Mount{}, fmt.Errorf("which control groups are mounted: %w", err)
	}
	return findMount(string(text))
}

const none = result.NotSupported("no cgroup v2 hierarchy is mounted here (mount -t cgroup2)")

// findMount is the first cgroup v2 hierarchy, or part of it, of a mountinfo.
func findMount(mountinfo string) (machine.Mount, error) {
	for _, m := range machine.Mounts(mountinfo) {
		if m.Kind == "cgroup2" {
			return m, nil
		}
	}
	return machine.Mount{}, none
}

// own reads from /proc/self/cgroup (cgroups(7)) which group of the version 2 hierarchy the process is in.
func own(cgroups string) (string, error) {
	for line := range strings.Lines(cgroups) {
		if group, ok := strings.CutPrefix(line, "0::"); ok {
			return strings.TrimSuffix(group, "\n"), nil
		}
	}
	return "", none
}

// dir is where a group is in the file system. Of a group outside of what is mounted, it is the mount itself.
func dir(m machine.Mount, group string) string {
	rest, ok := strings.CutPrefix(group, strings.TrimSuffix(m.Root, "/")+"/")
	if !ok || strings.Contains(group, "..") {
		return m.Point
	}
	return filepath.Join(m.Point, rest)
}

// lock opens a group and locks it; the kernel unlocks it when the process ends.
func lock(dir string) (*Group, error) {
	file, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		file.Close()
		return nil, fmt.Errorf("control group %s is in use: %w", dir, err)
	}
	if _, err := os.Stat(dir); err != nil { // removed between the two
		file.Close()
		return nil, err
	}
	return &Group{dir, file}, nil
}

// Dir is the group's directory.
func (g *Group) Dir() string { return g.dir }

// Place has a process start in the group (Linux 5.7 and later).
func (g *Group) Place(attr *syscall.SysProcAttr) {
	attr.UseCgroupFD, attr.CgroupFD = true, int(g.file.Fd())
}

// Close kills what still runs in the group and removes it.
func (g *Group) Close() error {
	err := g.remove()
	return errors.Join(err, g.file.Close())
}

func (g *Group) remove() error {
	// Before Linux 5.14 there is no cgroup.kill, and who runs something there has to end it.
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

// Clean removes the groups whose holder no longer lives and that takes agrees to, with what may still run in them, and
// returns their directories. It leaves groups alone that have a name like ours and not our mark, and passes them to
// spares.
func Clean(takes func(dir string) bool, spares func(dir string)) ([]string, error) {
	m, err := mounted()
	if errors.Is(err, result.ErrNotSupported) {
		return nil, nil // then there is nothing to be left
	}
	if err != nil {
		return nil, err
	}
	var removed []string
	var errs []error
	err = filepath.WalkDir(m.Point, func(dir string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() || !strings.HasPrefix(d.Name(), Prefix) { // groups come and go
			return nil
		}
		if _, err := unix.Getxattr(dir, Mark, nil); err != nil {
			if !errors.Is(err, unix.ENOENT) {
				spares(dir)
			}
			return nil // a group of ours may be below it
		}
		g, err := lock(dir)
		if err != nil {
			return filepath.SkipDir // in use, or gone
		}
		if !takes(dir) {
			err = g.file.Close()
		} else if err = g.Close(); err == nil {
			removed = append(removed, dir)
		}
		errs = append(errs, err)
		return filepath.SkipDir
	})
	return removed, errors.Join(append(errs, err)...)
}
