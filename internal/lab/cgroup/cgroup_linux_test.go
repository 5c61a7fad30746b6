package cgroup

import (
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/knotmeter/knotmeter/internal/result"
)

func newGroup(t *testing.T) *Group {
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

func gone(t *testing.T, g *Group) {
	t.Helper()
	if _, err := os.Stat(g.Dir()); !os.IsNotExist(err) {
		t.Errorf("%s is still there: %v", g.Dir(), err)
	}
}

func TestPlaceAndClose(t *testing.T) {
	g := newGroup(t)
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
	gone(t, g)
}

func TestLeftovers(t *testing.T) {
	alive, dead := newGroup(t), newGroup(t)
	defer alive.Close()
	dead.file.Close() // as the kernel does for a process that was killed
	var left []string
	none, err := Clean(func(dir string) bool { left = append(left, dir); return false })
	if err != nil || len(none) > 0 || !slices.Contains(left, dead.Dir()) || slices.Contains(left, alive.Dir()) {
		t.Errorf("left over: %v, removed %v, %v, want %s and not %s", left, none, err, dead.Dir(), alive.Dir())
	}
	removed, err := Clean(func(string) bool { return true })
	if err != nil || !slices.Contains(removed, dead.Dir()) || slices.Contains(removed, alive.Dir()) {
		t.Errorf("removed: %v, %v, want %s and not %s", removed, err, dead.Dir(), alive.Dir())
	}
	gone(t, dead)
	if _, err := os.Stat(alive.Dir()); err != nil {
		t.Error(err)
	}
}
