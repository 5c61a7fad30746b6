package compare

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/stats"
)

// levelled returns blocks of one throughput case on targets of the given levels.
func levelled(blocks int, role result.Role, levels ...float64) *world {
	var names []string
	for i := range levels {
		names = append(names, string(rune('A'+i)))
	}
	w := newWorld(blocks, names...)
	w.addCase(stream, role, "throughput")
	for b := 1; b <= blocks; b++ {
		for i, level := range levels {
			w.add(b, stream, names[i], throughput(1e9*level*(1+noise(b)/10+noise(7*b+3*i)/3)))
		}
	}
	return w
}

func TestAllPairs(t *testing.T) {
	w := levelled(15, result.Primary, 1, 1.2, 0.8, 1.1)
	w.e.Baseline = "B"
	sides := func(c Comparison) []targetPair {
		var all []targetPair
		for _, r := range c.Comparisons {
			all = append(all, targetPair{r.Baseline, r.Target})
		}
		return all
	}
	exported := cmp.AllowUnexported(targetPair{})
	c := compare(t, w, nil)
	want := []targetPair{{"B", "A"}, {"B", "C"}, {"B", "D"}}
	if diff := cmp.Diff(want, sides(c), exported); diff != "" || c.Primaries != 3 {
		t.Errorf("against the baseline: %d primaries %s", c.Primaries, diff)
	}
	w.e.Design.AllPairs = true
	c = compare(t, w, nil)
	if diff := cmp.Diff([]targetPair{{"B", "A"}, {"B", "C"}, {"B", "D"}, {"A", "C"}, {"A", "D"}, {"C",
		"D"}}, sides(c), exported); diff != "" || c.Primaries != 6 {
		t.Errorf("all pairs: %d primaries %s", c.Primaries, diff)
	}
	for _, r := range c.Comparisons {
		if r.Level != 1-0.05/6 || r.Verdict != Different || r.Pairs[0].Baseline.Known() == false {
			t.Errorf("%s against %s: %s at %v", r.Target, r.Baseline, r.Verdict, r.Level)
		}
	}
}

// TestDetectable checks the spread against its definition, and that the smallest detectable change is that of the
// planned blocks, not of the measured ones.
func TestDetectable(t *testing.T) {
	w := scenario(spreadOver(0.9, 1.1, 9)...)
	w.e.Design.Blocks = 30
	r := compare(t, w, nil).Comparisons[0]
	mean, squares := 0.0, 0.0
	for _, p := range r.Pairs {
		mean += math.Log1p(float64(p.Change)) / 9
	}
	for _, p := range r.Pairs {
		squares += math.Pow(math.Log1p(float64(p.Change))-mean, 2)
	}
	if want := math.Sqrt(squares / 8); math.Abs(float64(r.Spread)-want) > 1e-12 {
		t.Errorf("spread %v, want %v", r.Spread, want)
	}
	want := math.Expm1(stats.DetectableShift(30, 0.05, 0.8, stats.OneLook{}) * float64(r.Spread))
	if math.Abs(float64(r.Detectable)-want) > 1e-12 {
		t.Errorf("detectable %v, want %v", r.Detectable, want)
	}
	w.e.Design.Blocks = 3
	if r := compare(t, w, nil).Comparisons[0]; r.Detectable.Known() {
		t.Errorf("three blocks detect %v", r.Detectable)
	}
	one := compare(t, scenario(1.5), nil).Comparisons[0]
	if one.Spread.Known() || one.Detectable.Known() {
		t.Errorf("one pair has a spread of %v", one.Spread)
	}
}

func TestPlacebos(t *testing.T) {
	for i, c := range []struct {
		specs []string
		want  []string
	}{
		{[]string{"lab:native", "lab:native?label=again", "lab:vxlan"}, []string{"t1"}},
		{[]string{"lab:native?mtu=9000&label=a", "lab:native?label=b&mtu=9000", "lab:native"}, []string{"t1"}},
		{[]string{"lab:native?label=a&rate=1&mtu=9", "lab:native?mtu=9&rate=1", "lab:native?mtu=9&rate=1&label="},
			[]string{"t1", "t2"}},
		{[]string{"lab:native", "lab:native?labels=2"}, []string{}},
		{[]string{"", "", "?label=a"}, []string{}},
	} {
		e := result.Experiment{Baseline: "t0"}
		for k, spec := range c.specs {
			e.Targets = append(e.Targets, result.Target{Name: fmt.Sprint("t", k), Spec: result.SpecOf(spec)})
		}
		if got := placebos(e); !slices.Equal(got, c.want) {
			t.Errorf("%d: %q, want %q", i, got, c.want)
		}
		e.Targets[1].Switch = &result.Command{Text: "true"}
		if got := placebos(e); len(got) > 0 {
			t.Errorf("%d: %q after a switch, which may change anything", i, got)
		}
	}
}
