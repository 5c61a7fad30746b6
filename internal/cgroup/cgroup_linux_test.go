package cgroup

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/knotmeter/knotmeter/internal/result"
)

func makeGroup(t *testing.T) *Group {
	t.Helper()
	g, err := New()
	if errors.Is(err, result.ErrNotSupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func checkGone(t *testing.T, g *Group) {
	t.Helper()
	if _, err := os.Stat(g.Dir()); !os.IsNotExist(err) {
		t.Errorf("%s is still there: %v", g.Dir(), err)
	}
}

func TestPlaceAndClose(t *testing.T) {
	g := makeGroup(t)
	cmd := exec.Command("sleep", "60")
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	g.Place(cmd.SysProcAttr)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	procs, err := os.ReadFile(g.Dir() + "/cgroup.procs")
	if err != nil || strings.TrimSpace(string(procs)) == "" {
		t.Errorf("in the group: %q, %v", procs, err)
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Error("the process ended by itself, want killed")
	}
	checkGone(t, g)
}

func TestLeftovers(t *testing.T) {
	alive, dead := makeGroup(t), makeGroup(t)
	defer alive.Close()
	dead.file.Close() // as the kernel does for a killed process
	spares := func(dir string) {
		if dir == alive.Dir() || dir == dead.Dir() {
			t.Errorf("%s counts as another program's", dir)
		}
	}
	var left []string
	none, err := Clean(func(dir string) bool { left = append(left, dir); return false }, spares)
	if err != nil || len(none) > 0 || !slices.Contains(left, dead.Dir()) || slices.Contains(left, alive.Dir()) {
		t.Errorf("left over: %v, removed %v, %v, want %s and not %s", left, none, err, dead.Dir(), alive.Dir())
	}
	removed, err := Clean(func(string) bool { return true }, spares)
	if err != nil || !slices.Contains(removed, dead.Dir()) || slices.Contains(removed, alive.Dir()) {
		t.Errorf("removed: %v, %v, want %s and not %s", removed, err, dead.Dir(), alive.Dir())
	}
	checkGone(t, dead)
	if _, err := os.Stat(alive.Dir()); err != nil {
		t.Error(err)
	}
}

// TestCleanSparesOthers checks that another program's group with such a name, as of knotmeter-nightly.service, is left
// alone, but that a leftover of this program in it is removed.
func TestCleanSparesOthers(t *testing.T) {
	left := makeGroup(t)
	other, err := os.MkdirTemp(filepath.Dir(left.Dir()), Prefix+"*.service")
	if err != nil {
		t.Fatal(err)
	}
	group, err := lock(other)
	if err != nil {
		t.Fatal(err)
	}
	defer group.Close()
	below := filepath.Join(other, filepath.Base(left.Dir()))
	cmd := exec.Command("sleep", "60")
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	group.Place(cmd.SysProcAttr)
	err = errors.Join(left.Close(), os.Mkdir(below, 0o755), unix.Setxattr(below, Mark, nil, 0), cmd.Start(),
		unix.Flock(int(group.file.Fd()), unix.LOCK_UN)) // its maker holds no lock
	if err != nil {
		t.Fatal(err)
	}
	var spared []string
	removed, err := Clean(func(dir string) bool { return true }, func(dir string) { spared = append(spared, dir) })
	if err != nil || !slices.Contains(spared, other) || !slices.Contains(removed, below) ||
		slices.Contains(removed, other) {
		t.Errorf("spared %v, removed %v, %v; want %s spared and %s removed", spared, removed, err, other, below)
	}
	procs, err := os.ReadFile(filepath.Join(other, "cgroup.procs"))
	if want := strconv.Itoa(cmd.Process.Pid); err != nil || strings.TrimSpace(string(procs)) != want {
		t.Errorf("in the other program's group: %q, %v, want process %s", procs, err, want)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait() // it was killed
}
