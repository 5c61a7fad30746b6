package plan_test

import (
	"math"
	"testing"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/plan"
	"github.com/knotmeter/knotmeter/internal/result"
)

var families = family.List{
	{Name: "network", Paths: []string{"pod-pod/other", "node-node"}},
	{Name: "storage", Paths: []string{"storage"}},
}

// lasting has two cases of one family and one of another, on two labs and a cluster.
func lasting() result.Experiment {
	return result.Experiment{
		Baseline: "a", Design: result.Design{Blocks: 10, Duration: 3, Warmup: 0.5},
		Targets: []result.Target{{Name: "a", Spec: "lab:a"}, {Name: "b", Spec: "lab:b"}, {Name: "k", Spec: "kube:k"}},
		Cases: []result.Case{
			{Name: "node-node/x", Path: "node-node"},
			{Name: "pod-pod/other/x", Path: "pod-pod/other"},
			{Name: "storage/x", Path: "storage"},
		},
	}
}

func wantSeconds(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-9 {
		t.Errorf("%s: %g s, want %g", what, got, want)
	}
}

// What was not measured is predicted from what is most like it.
func TestRunsAreLikeOthers(t *testing.T) {
	d := plan.NewDurations(lasting(), families)
	lab, kube := d.Run("storage/x", "a"), d.Run("storage/x", "k")
	d.AddRun(result.Run{Case: "node-node/x", Target: "a"}, 4)
	d.AddRun(result.Run{Case: "node-node/x", Target: "a"}, 5)
	wantSeconds(t, "the same", d.Run("node-node/x", "a"), 4.5)
	wantSeconds(t, "the case on another target of the kind", d.Run("node-node/x", "b"), 4.5)
	wantSeconds(t, "another case of the family", d.Run("pod-pod/other/x", "b"), 4.5)
	wantSeconds(t, "another family", d.Run("storage/x", "a"), lab)
	wantSeconds(t, "another kind of target", d.Run("node-node/x", "k"), kube)
	d.AddRun(result.Run{Case: "node-node/x", Target: "b"}, 8)
	wantSeconds(t, "the same still", d.Run("node-node/x", "a"), 4.5)
	wantSeconds(t, "another case, by all of the family", d.Run("pod-pod/other/x", "a"), 17.0/3)
}

// The sites of a block are made at the same time, and removed at the same time.
func TestSitesTogether(t *testing.T) {
	d := plan.NewDurations(lasting(), families)
	d.AddSite(result.Site{Target: "a", Setup: 1, Cleanup: 2})
	d.AddSite(result.Site{Target: "k", Setup: 5, Cleanup: 1})
	making, removing := d.Site("b")
	wantSeconds(t, "making what is like a", making, 1)
	wantSeconds(t, "removing what is like a", removing, 2)
	wantSeconds(t, "both labs", d.Sites([]string{"a", "b"}), 3)
	wantSeconds(t, "lab and cluster", d.Sites([]string{"a", "k"}), 7)
	wantSeconds(t, "none", d.Sites(nil), 0)
}

// What runs take is known from earlier ones, whatever their window was.
func TestLearn(t *testing.T) {
	earlier := result.Results{
		Experiment: result.Experiment{Design: result.Design{Duration: 1, Warmup: 0.5}},
		Runs: []result.Run{
			{Case: "node-node/x", Target: "a", Setup: 0.98, Window: 1}, // half a second besides warm-up, window and pause
			{Case: "node-node/x", Target: "b", Setup: 1.48, Window: 1}, // a second
			{Case: "node-node/x", Target: "b", Setup: 99, Invalid: []result.Warning{{Code: result.GeneratorLate, Text: "late"}}},
		},
		Sites: []result.Site{{Target: "a", Setup: 1, Cleanup: 0.5}},
	}
	e := lasting()
	e.Targets, e.Cases = e.Targets[:2], e.Cases[:2]
	d := plan.Learn(e, families, earlier)
	p := plan.NewOutline(e, &d)
	for i, want := range []float64{4 + 4.5, 4.25 + 4.25} {
		wantSeconds(t, p.Cases[i].Name, p.Cases[i].Block, want)
	}
	wantSeconds(t, "sites", p.Sites, 1.5)
	wantSeconds(t, "all", p.Seconds, 10*(8.5+8.5+1.5))
}

func TestOutlineTogether(t *testing.T) {
	e := lasting()
	e.Targets, e.Cases = e.Targets[:2], e.Cases[:1]
	d := plan.NewDurations(e, families)
	alone := plan.NewOutline(e, &d)
	e.Design.Parallel = true
	together := plan.NewOutline(e, &d)
	if together.Runs != alone.Runs {
		t.Errorf("%d and %d runs", together.Runs, alone.Runs)
	}
	wantSeconds(t, "a block of runs", together.Cases[0].Block, alone.Cases[0].Block/2)
	wantSeconds(t, "sites", together.Sites, alone.Sites)
}
