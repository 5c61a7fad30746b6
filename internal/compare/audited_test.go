package compare

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/knotmeter/knotmeter/internal/audit"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/stats"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// stalled gives a run a rate and a mean latency that contradict each other, as if the loop had stalled for half of the
// time.
func stalled(r *result.Run) {
	r.Values = append(r.Values,
		result.Value{Metric: "rate", Unit: unit.PerSecond, Better: metric.Higher, Number: 5000},
		result.Value{Metric: "mean", Unit: unit.Second, Better: metric.Lower, Number: 1e-4})
}

// TestRunsWithErrorsAreLeftOut checks that a run with an audit error is excluded from pairs and rows of its case, and
// that warnings name its rule.
func TestRunsWithErrorsAreLeftOut(t *testing.T) {
	w := newWorld(11, "a", "b", "c")
	w.addCase(rr, result.Primary, "p50")
	w.addCase(stream, result.Primary, "throughput")
	w.measure(rr, 1, 11, 0.001, 1.1, 1)
	for b := 1; b <= 11; b++ {
		for i, x := range w.e.Targets {
			w.add(b, stream, x.Name, throughput(9e9*(1+noise(7*b+i))))
		}
	}
	find := func(block int, target string) *result.Run {
		for i := range w.runs {
			if r := &w.runs[i]; r.Case == rr && r.Block == block && r.Target == target {
				return r
			}
		}
		t.Fatalf("no block %d on %s", block, target)
		return nil
	}
	stalled(find(3, "b"))
	stalled(find(5, "b"))
	stalled(find(7, "a")) // of the baseline: no target has this block
	find(7, "a").Values = append(find(7, "a").Values,
		result.Value{Metric: "min", Unit: unit.Second, Better: metric.Lower, Number: 1})
	c := compare(t, w, nil)
	for _, want := range []struct {
		caseName, target string
		blocks           int
		excluded         int
	}{
		{rr, "b", 8, 3},
		{rr, "c", 10, 1},
		{stream, "b", 11, 0},
	} {
		for _, r := range c.Comparisons {
			if r.Case != want.caseName || r.Target != want.target {
				continue
			}
			if r.Role == result.Primary && r.Blocks != want.blocks {
				t.Errorf("%s on %s: %d blocks, want %d", r.Case, r.Target, r.Blocks, want.blocks)
			}
			excluded := Warning{Code: BlocksExcluded, Count: want.excluded, Rules: []string{"closed-loop", "order"}}
			if want.excluded > 0 && !contains(r.Warnings, excluded) || want.excluded == 0 &&
				(warned(r.Warnings, BlocksExcluded) || warned(r.Warnings, AuditDoubts)) {
				t.Errorf("%s of %s on %s: %+v, want %+v", r.Metric, r.Case, r.Target, r.Warnings, excluded)
			}
		}
	}
	rules := map[string]audit.Severity{}
	for _, f := range c.Findings {
		rules[f.Rule] = f.Severity
	}
	if rules["closed-loop"] != audit.Error || rules["order"] != audit.Error {
		t.Errorf("findings %+v", c.Findings)
	}
}

// TestFindingsOfTwoDirectories checks that findings carry the names of targets that the rows have.
func TestFindingsOfTwoDirectories(t *testing.T) {
	side := func(id string) result.Results {
		w := newWorld(8, "a")
		w.e.ID = id
		w.addCase(rr, result.Primary, "p50")
		w.measure(rr, 1, 8, 0.001)
		return result.Results{Experiment: w.e, Runs: w.runs}
	}
	a, b := side("old"), side("new")
	stalled(&b.Runs[0])
	c, err := compareSeveral(a, b)
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Findings) != 1 || c.Findings[0].Target != "a (new)" || c.Findings[0].Rule != "closed-loop" {
		t.Fatalf("findings %+v", c.Findings)
	}
	r := c.Comparisons[0]
	if r.Blocks != 7 || !contains(r.Warnings, Warning{Code: RunsExcluded, Count: 1, Targets: []string{"a (new)"},
		Rules: []string{"closed-loop"}}) {
		t.Errorf("%d runs, %+v", r.Blocks, r.Warnings)
	}
}

// TestDoubtfulRowsSayWhichRule checks that a finding is named at the rows that it affects and nowhere else.
func TestDoubtfulRowsSayWhichRule(t *testing.T) {
	tr := runTable{look: stats.OneLook{}, findings: []audit.Finding{
		{Rule: "one", Severity: audit.Warning, Case: rr, Target: "b", Metric: "p50"},
		{Rule: "two", Severity: audit.Note, Case: rr},
		{Rule: "three", Severity: audit.Error, Case: rr, Target: "b"}, // names no run: nothing is left out
		{Rule: "four", Severity: audit.Error, Case: rr, Target: "b", Runs: []string{"0007"}},
		{Rule: "five", Severity: audit.Warning, Case: stream, Target: "b"},
		{Rule: "six", Severity: audit.Warning, Target: "b"}, // about the target as a whole
	}}
	for _, c := range []struct {
		metric, target string
		rules          []string
	}{
		{"p50", "b", []string{"one", "three", "two"}}, {"p99", "b", []string{"three", "two"}}, {"p50", "c", []string{"two"}},
	} {
		want := []Warning{{Code: AuditDoubts, Rules: c.rules}}
		row := Row{Case: rr, Metric: c.metric, Baseline: "a", Target: c.target}
		if diff := cmp.Diff(want, tr.auditWarnings(row)); diff != "" {
			t.Errorf("%s on %s (-want +got)\n%s", c.metric, c.target, diff)
		}
	}
	if got := tr.auditWarnings(Row{Case: "other", Metric: "p50", Baseline: "a", Target: "b"}); len(got) != 0 {
		t.Errorf("another case: %+v", got)
	}
}
