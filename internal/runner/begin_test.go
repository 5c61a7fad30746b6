package runner_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/runner"
)

// TestBegin checks that Begin passes each target the placements planned on it: bounds to the baseline alone, and
// nothing that was left out.
func TestBegin(t *testing.T) {
	b := newBench(t, "ab", 1, "pod-pod/other/tcp-rr", "node-node/tcp-rr")
	e := b.config.Experiment
	e.Version = "v1"
	const bound = "node-node/tcp-rr"
	e.Cases = slices.DeleteFunc(slices.Clone(e.Cases), func(c result.Case) bool {
		return c.Role == result.Bound && c.Name != bound
	})
	e.Cases[slices.IndexFunc(e.Cases, func(c result.Case) bool { return c.Name == bound })].Role = result.Bound
	b.twins["b"].Busy = "other"
	b.model.Starts = "fio"
	config := b.config
	config.Experiment = e
	config.EarlierFacts = map[string][]result.Fact{"a": {{Name: "of", Value: "a"}}, "b": {{Name: "of", Value: "b"}}}
	warnings, err := runner.Begin(t.Context(), config, true)
	if err != nil || !slices.Equal(warnings, []result.Warning{
		{Code: result.TargetReports, Text: "b: the experiment other runs here too"}}) {
		t.Errorf("%+v, %v", warnings, err)
	}
	paths := map[string][]result.Path{}
	for name, twin := range b.twins {
		for _, p := range twin.Begun() {
			if p.Experiment != "x" || p.Version != "v1" || !p.Share || p.Placements[0].Program != "fio" ||
				result.FactOf(p.Earlier, "of") != name {
				t.Errorf("%s: %+v", name, p)
			}
			for _, at := range p.Placements {
				paths[name] = append(paths[name], at.Path)
			}
			slices.Sort(paths[name])
		}
	}
	want := map[string][]result.Path{"a": {result.NodeNode, result.PodPodOther}, "b": {result.PodPodOther}}
	if diff := cmp.Diff(want, paths); diff != "" {
		t.Error(diff)
	}

	e.NotMeasured = []result.NotMeasured{{Target: "b", Case: "*", Reason: "no"}}
	config.Experiment = e
	if _, err := runner.Begin(t.Context(), config, true); err != nil {
		t.Error(err)
	}
	if last := b.twins["b"].Begun()[1]; len(last.Placements) != 0 {
		t.Errorf("what was left out is planned: %+v", last)
	}
	if _, err := runner.Begin(t.Context(), config, false); err == nil ||
		!strings.HasPrefix(err.Error(), "b: the experiment other runs here") {
		t.Errorf("another experiment is no error without Share: %v", err)
	}
}

// TestFailedIsNotComplete checks that an experiment that ends with an error is reported as failed, not as complete.
func TestFailedIsNotComplete(t *testing.T) {
	b := newBench(t, "ab", 1, "pod-pod/other/tcp-rr")
	b.sink.fail = errors.New("the disk is full")
	s, err := runner.Run(t.Context(), b.config)
	if err == nil || s.Stopped != runner.StopFailed {
		t.Errorf("%q, %v", s.Stopped, err)
	}
	if last := b.events[len(b.events)-1]; last.Kind != runner.Finished || last.Reason != string(runner.StopFailed) {
		t.Errorf("%+v", last)
	}
}
