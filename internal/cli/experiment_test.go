package cli

import (
	"bytes"
	"testing"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/runner"
	"github.com/knotmeter/knotmeter/internal/targets"
)

// leaving is a target that cannot remove what it created.
type leaving struct{ targets.Target }

func (leaving) Close() error { return targets.ErrLeft }

// TestLeftoversAreNamed checks that the command that removes leftovers names the target as users write it.
func TestLeftoversAreNamed(t *testing.T) {
	var errs bytes.Buffer
	spec := result.SpecOf("kube:bench?namespace=mine")
	x := experiment{config: runner.Config{Targets: []runner.Target{
		{Target: result.Target{Name: "one", Spec: spec}, Places: leaving{}}}}}
	x.close(&errs)
	want := "warning: one: something may be left behind; remove it with: knotmeter clean 'kube:bench?namespace=mine'\n"
	if errs.String() != want {
		t.Errorf("got  %q\nwant %q", errs.String(), want)
	}
}
