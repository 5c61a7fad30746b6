package registry

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/knotmeter/knotmeter/internal/cgroup"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
)

// TestCleanNamesOthersGroups checks that a control group of another program is listed, but not removed, even with
// --all.
func TestCleanNamesOthersGroups(t *testing.T) {
	own, err := cgroup.New()
	if errors.Is(err, result.ErrNotSupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	other, err := os.MkdirTemp(filepath.Dir(own.Dir()), cgroup.Prefix+"*.service")
	if err != nil {
		t.Fatal(err)
	}
	defer os.Remove(other)
	found := map[string]targets.Leftover{}
	how := targets.Cleaning{All: true, DryRun: true, Found: func(l targets.Leftover) { found[l.Name] = l }}
	if removed, err := clean(how); err != nil || len(removed) > 0 {
		t.Errorf("removed %v, %v", removed, err)
	}
	if l := found[other]; l.Removable || l.Reason == "" {
		t.Errorf("another program's group is listed as %+v, want kept with a reason", l)
	}
	if l, is := found[own.Dir()]; is {
		t.Errorf("a group in use is listed as %+v", l)
	}
}
