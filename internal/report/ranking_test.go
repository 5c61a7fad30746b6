package report

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/report/chart"
	"github.com/knotmeter/knotmeter/internal/result"
)

// TestRankingOfPairs checks that targets are ranked if all pairs are compared, and that the page has the changes
// against each of them.
func TestRankingOfPairs(t *testing.T) {
	in := inputs(t)["pairs"]
	p := newPage(in.inStorageUnits())
	if len(p.Rankings) == 0 {
		t.Fatal("they are not ranked")
	}
	r := p.Rankings[0]
	if len(r.Baselines) != 6 || len(r.Tables) != 1 || len(r.Tables[0].Lines) != 6 || !r.Letters {
		t.Fatalf("%+v", r)
	}
	before := 0.0
	for i, line := range r.Tables[0].Lines {
		if number := medianOf(t, in, line.Cells[0].Column); i > 0 && number > before {
			t.Errorf("%s is faster than the line above it", line.Name)
		} else {
			before = number
		}
		for _, cell := range line.Cells {
			seen := map[int]bool{line.At: true}
			for _, change := range cell.Against {
				if seen[change.At] {
					t.Errorf("%s against %d: twice, or against itself", line.Name, change.At)
				}
				seen[change.At] = true
			}
			if len(seen) != 6 {
				t.Errorf("%s is compared with %d of 6", line.Name, len(seen)-1)
			}
		}
	}
	page := inFormat(t, "html", in)
	if n := strings.Count(page, `type="radio"`); n != 6 {
		t.Errorf("%d targets can be chosen", n)
	}
	if !strings.Contains(page, "body:has(#against-5:checked) .against-5 { display: block; }") {
		t.Error("choosing the last target shows nothing")
	}
}

// medianOf returns the median of a target in the first case.
func medianOf(t *testing.T, in Input, short string) float64 {
	t.Helper()
	for _, m := range in.Comparison.Groups[0].Members {
		if strings.HasSuffix(m.Target, short) {
			return float64(m.Median)
		}
	}
	t.Fatalf("no median of %q", short)
	return 0
}

// TestRankingAgainstTheBaseline checks that many targets against a baseline are ranked without a choice of the
// baseline: they are not compared with each other.
func TestRankingAgainstTheBaseline(t *testing.T) {
	in, err := manyInput(smallShape("lab:native", "lab:bridge", "lab:vxlan", "lab:macvlan", "lab:geneve",
		"lab:vxlan+wireguard"))
	if err != nil {
		t.Fatal(err)
	}
	p := newPage(in.inStorageUnits())
	if len(p.Rankings) == 0 || len(p.Rankings[0].Baselines) != 0 {
		t.Fatalf("%+v", p.Rankings)
	}
	for _, line := range p.Rankings[0].Tables[0].Lines {
		if want := map[bool]int{true: 0, false: 1}[line.Note == "baseline"]; len(line.Cells[0].Against) != want {
			t.Errorf("%s has %d changes", line.Name, len(line.Cells[0].Against))
		}
	}
	if page := inFormat(t, "html", in); strings.Contains(page, `type="radio"`) {
		t.Error("a baseline can be chosen")
	}
	few, err := manyInput(smallShape("lab:native", "lab:bridge", "lab:vxlan", "lab:macvlan", "lab:geneve"))
	if err != nil {
		t.Fatal(err)
	}
	if p := newPage(few.inStorageUnits()); len(p.Rankings) > 0 {
		t.Error("four others than the baseline are ranked")
	}
}

// TestRankingOfExperiments checks that six experiments are ranked with letters, like the targets of one experiment, in
// every format with text.
func TestRankingOfExperiments(t *testing.T) {
	in := inputs(t)["several"]
	p := newPage(in.inStorageUnits())
	if len(p.Rankings) == 0 || len(p.Rankings[0].Tables[0].Lines) != 6 || !p.Rankings[0].Letters || len(p.Forests) != 1 {
		t.Fatalf("%+v", p.Rankings)
	}
	if last := p.Rankings[0].Tables[0].Lines[5]; last.Name != "native (cluster-6)" || last.Cells[0].Mark != chart.Worse {
		t.Errorf("the last line is %+v", last)
	}
	if p.Timing.Total != 0 || p.Order != nil || p.Command != nil {
		t.Error("the time between experiments, or a command that repeats them, is in the page")
	}
	if strings.Contains(inFormat(t, "html", in), ">paired change<") {
		t.Error("a change without blocks is called paired")
	}
	for _, f := range Formats() {
		if f.Write == nil {
			continue // pictures
		}
		if text := written(t, f, in); f.Name != "published" && strings.Count(text, "(cluster-6)") == 0 {
			t.Errorf("%s does not name the target of the sixth experiment", f.Name)
		}
	}
	table := textOf(t, in, TextOptions{})
	for _, want := range []string{"slower than", "▼d", "not paired"} {
		if !strings.Contains(table, want) {
			t.Errorf("the table lacks %q:\n%s", want, table)
		}
	}
}

// TestRankingNamesTellTargetsApart checks that long names that differ only at their ends are whole, and that every
// baseline is named.
func TestRankingNamesTellTargetsApart(t *testing.T) {
	var all []result.Results
	for _, id := range []string{"upgrade-of-cluster-1", "upgrade-of-cluster-2", "upgrade-of-cluster-3"} {
		r, err := manyRuns(smallShape("lab:native", "lab:vxlan+wireguard"))
		if err != nil {
			t.Fatal(err)
		}
		r.Experiment.ID = id
		all = append(all, r)
	}
	in, err := several(all...)
	if err != nil {
		t.Fatal(err)
	}
	table := textOf(t, in, TextOptions{})
	for _, want := range []string{"\nnative (upgrade-of-cluster-1) ", "\nvxlan+wireguard (upgrade-of-cluster-3)\n"} {
		if strings.Count(table, want) < 1 {
			t.Errorf("no line begins with %q:\n%s", want, table)
		}
	}
	if all := strings.Join(strings.Fields(table), " "); !strings.Contains(all,
		"each against native (upgrade-of-cluster-1) and vxlan+wireguard (upgrade-of-cluster-1)") {
		t.Errorf("the baselines are not named:\n%s", table)
	}
}

// TestBestTargets checks that a target is not marked as best if another is known to be better.
func TestBestTargets(t *testing.T) {
	for letters, want := range map[string]string{
		"a b c": "0", "a a b": "01", "ab a b": "01", "ab b a": "01", "a ab b": "01", "a a a": "", "": "",
	} {
		var g compare.Group
		for i, l := range strings.Fields(letters) {
			g.Members = append(g.Members, compare.Member{Target: strconv.Itoa(i), Letters: l})
		}
		best := bestTargets(g)
		if got := strings.Join(slices.Sorted(maps.Keys(best)), ""); got != want {
			t.Errorf("letters %q: best are %q, want %q", letters, got, want)
		}
	}
}
