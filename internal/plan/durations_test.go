package plan_test

import (
	"math"
	"testing"
	"time"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/plan"
	"github.com/knotmeter/knotmeter/internal/registry"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/runner"
	"github.com/knotmeter/knotmeter/internal/targets"
)

// families have a workload that takes its window alone and one with nominal times of its own.
var families = family.List{
	{Name: "network", Paths: []string{"pod-pod/other", "node-node"}, Parse: parse(family.Traits{})},
	{Name: "storage", Paths: []string{"storage"}, Parse: parse(family.Traits{Nominal: family.Nominal{
		Site: 10 * time.Second, First: 4 * time.Second, Run: 3 * time.Second, Windows: 2,
	}})},
}

type workload struct {
	name   string
	traits family.Traits
}

func (w workload) String() string        { return w.name }
func (w workload) Traits() family.Traits { return w.traits }

func parse(t family.Traits) func(path, name, definition string) (family.Workload, error) {
	return func(path, name, _ string) (family.Workload, error) { return workload{path + "/" + name, t}, nil }
}

// twoFamilies returns an experiment with two cases of one family and one of another, on two labs and a cluster.
func twoFamilies() result.Experiment {
	return result.Experiment{
		Baseline: "a", Design: result.Design{Blocks: 10, Duration: 3, Warmup: 0.5},
		Targets: []result.Target{{Name: "a", Spec: result.SpecOf("lab:a")}, {Name: "b", Spec: result.SpecOf("lab:b")},
			{Name: "k", Spec: result.SpecOf("kube:k")}},
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

// TestRunsAreLikeOthers checks that a run is predicted from the most similar runs if none of its case on its target was
// measured.
func TestRunsAreLikeOthers(t *testing.T) {
	d := plan.NewDurations(twoFamilies(), runner.CaseTimes(twoFamilies(), families))
	lab, kube := d.Run("storage/x", "a"), d.Run("node-node/x", "k")
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

// TestSitesTogether checks that the sites of a block are opened at the same time, and closed at the same time.
func TestSitesTogether(t *testing.T) {
	e := twoFamilies()
	d := plan.NewDurations(e, runner.CaseTimes(e, families))
	d.AddSite(result.Site{Target: "a", Setup: 1, Cleanup: 2})
	one := map[string]float64{"node-node/x": 1}
	d.AddSite(result.Site{Target: "k", Setup: 5, Cleanup: 1})
	wantSeconds(t, "three targets", d.Sites(one), 7)
	wantSeconds(t, "as long as any case goes on", d.Sites(map[string]float64{"node-node/x": 1, "storage/x": 3}), 21)
	wantSeconds(t, "none", d.Sites(nil), 0)
	e.Targets = e.Targets[:2]
	d = plan.NewDurations(e, runner.CaseTimes(e, families))
	d.AddSite(result.Site{Target: "a", Setup: 1, Cleanup: 2})
	wantSeconds(t, "a target that is like another", d.Sites(one), 3)
}

// TestSitesAlone checks that the sites of a case that does not share them come in addition to the shared ones.
func TestSitesAlone(t *testing.T) {
	e := twoFamilies()
	e.Targets = e.Targets[:1]
	e.Cases = append(e.Cases, result.Case{Name: "alone/x", Path: "alone"})
	d := plan.NewDurations(e, runner.CaseTimes(e, append(families[:2:2], family.Family{
		Name: "alone", Paths: []string{"alone"}, Parse: parse(family.Traits{Alone: true}),
	})))
	d.AddRun(result.Run{Case: "node-node/x", Target: "a", Site: 1}, 1)
	d.AddRun(result.Run{Case: "alone/x", Target: "a", Site: 2}, 1)
	d.AddSite(result.Site{Number: 1, Target: "a", Setup: 1})
	d.AddSite(result.Site{Number: 2, Target: "a", Setup: 10})
	wantSeconds(t, "shared", d.Sites(map[string]float64{"node-node/x": 2, "storage/x": 2}), 2)
	wantSeconds(t, "alone", d.Sites(map[string]float64{"alone/x": 2}), 20)
	wantSeconds(t, "both", d.Sites(map[string]float64{"node-node/x": 2, "alone/x": 2}), 22)
}

// TestNominal checks that a workload's nominal time for its site counts on targets that create what it needs; the
// additional time of the first run is spread over the runs that could be first.
func TestNominal(t *testing.T) {
	e := twoFamilies()
	e.Cases = append(e.Cases, result.Case{Name: "storage/y", Path: "storage"})
	d := plan.NewDurations(e, runner.CaseTimes(e, families))
	shared := map[string]float64{"storage/x": 1}
	// Three windows with their warm-up, three seconds, half of four, and what the target takes.
	wantSeconds(t, "a run on a cluster", d.Run("storage/x", "k"), 0.02+3*3.5+3+4.0/2+0.08)
	wantSeconds(t, "on a lab, that is kept for all ten blocks", d.Run("storage/x", "a"), 0.02+3*3.5+3+4.0/20+0.07)
	wantSeconds(t, "a site on a cluster", d.Sites(shared), 2.3+10+1.9)
	e.Targets = e.Targets[:2]
	d = plan.NewDurations(e, runner.CaseTimes(e, families))
	wantSeconds(t, "a lab", d.Sites(shared), 0.4)
}

// TestNominalOfVault checks that a Vault that is deployed already adds no time to a site.
func TestNominalOfVault(t *testing.T) {
	e := twoFamilies()
	e.Cases = []result.Case{{Name: "app/x", Path: "app"}}
	list := family.List{{Name: "app", Paths: []string{"app"}, Parse: parse(family.Traits{
		Needs: targets.Placement{Application: "vault"}, Nominal: family.Nominal{Site: 10 * time.Second},
	})}}
	for spec, want := range map[string]float64{"kube:?vault=deploy": 14.2, "kube:?vault=https://vault:8200": 4.2} {
		e.Targets = []result.Target{{Name: "a", Spec: result.SpecOf(spec)}}
		d := plan.NewDurations(e, runner.CaseTimes(e, list))
		wantSeconds(t, spec, d.Sites(map[string]float64{"app/x": 1}), want)
	}
}

// TestNominalKinds checks that every kind of target has its nominal seconds.
func TestNominalKinds(t *testing.T) {
	for _, k := range registry.Kinds() {
		e := twoFamilies()
		e.Targets = []result.Target{{Name: "a", Spec: result.SpecOf(k.Name + ":x")}}
		d := plan.NewDurations(e, nil)
		if d.Run("node-node/x", "a") <= plan.Pause.Seconds()+e.Design.Duration+e.Design.Warmup {
			t.Errorf("a run on %s takes no time besides its window", k.Name)
		}
	}
}

// TestLearn checks that durations are learned from earlier runs even if their window was different.
func TestLearn(t *testing.T) {
	earlier := result.Results{
		Experiment: result.Experiment{Design: result.Design{Duration: 1, Warmup: 0.5}},
		Runs: []result.Run{
			{Case: "node-node/x", Target: "a", Setup: 0.98, Window: 1}, // 0.5 s beyond warm-up, window and pause
			{Case: "node-node/x", Target: "b", Setup: 1.48, Window: 1}, // a second
			{Case: "node-node/x", Target: "b", Setup: 99, Invalid: []result.Warning{{Code: result.GeneratorLate, Text: "late"}}},
		},
		Sites: []result.Site{{Target: "a", Setup: 1, Cleanup: 0.5}},
	}
	e := twoFamilies()
	e.Targets, e.Cases = e.Targets[:2], e.Cases[:2]
	d := plan.Learn(e, runner.CaseTimes(e, families), earlier)
	p := plan.NewOutline(e, &d)
	for i, want := range []float64{4 + 4.5, 4.25 + 4.25} {
		wantSeconds(t, p.Cases[i].Name, p.Cases[i].Block, want)
	}
	wantSeconds(t, "sites", p.Sites, 1.5)
	wantSeconds(t, "all", p.Seconds, 10*(8.5+8.5+1.5))
}

func TestOutlineTogether(t *testing.T) {
	e := twoFamilies()
	e.Targets, e.Cases = e.Targets[:2], e.Cases[:1]
	d := plan.NewDurations(e, runner.CaseTimes(e, families))
	alone := plan.NewOutline(e, &d)
	e.Design.Parallel = true
	together := plan.NewOutline(e, &d)
	if together.Runs != alone.Runs {
		t.Errorf("%d and %d runs", together.Runs, alone.Runs)
	}
	wantSeconds(t, "a block of runs", together.Cases[0].Block, alone.Cases[0].Block/2)
	wantSeconds(t, "sites", together.Sites, alone.Sites)
}

// TestLongest checks that shared sites are in use during the runs of all their cases, those of a case alone only during
// its own.
func TestLongest(t *testing.T) {
	e := twoFamilies()
	e.Targets, e.Cases = e.Targets[:2], append(e.Cases[:2:2], result.Case{Name: "alone/x", Path: "alone"})
	all := append(families[:2:2], family.Family{
		Name: "alone", Paths: []string{"alone"}, Parse: parse(family.Traits{Alone: true, Kind: "x"}),
	})
	d := plan.NewDurations(e, runner.CaseTimes(e, all))
	run := d.Run("node-node/x", "a")
	wantSeconds(t, "two cases on two targets", d.Longest(), 4*run)
	d.AddRun(result.Run{Case: "alone/x", Target: "a"}, 5*run)
	wantSeconds(t, "one case alone", d.Longest(), 10*run)
	e.Design.Parallel = true
	d = plan.NewDurations(e, runner.CaseTimes(e, all))
	wantSeconds(t, "targets together", d.Longest(), 2*run)
}
