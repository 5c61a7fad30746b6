package report

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/doc"
	"github.com/knotmeter/knotmeter/internal/result"
)

// TestRankingOfPairs checks that targets are ranked if all pairs are compared, and that the page has the changes
// against each of them.
func TestRankingOfPairs(t *testing.T) {
	in := inputs(t)["pairs"]
	choice := newAnswer(in, groups(in), nil).block(in).Parts[0].(doc.Choice)
	if len(choice.Options) != 6 {
		t.Fatalf("%d baselines", len(choice.Options))
	}
	for _, o := range choice.Options {
		rows, before := o.Table.Rows, 0.0
		if len(rows) != 6 || !strings.Contains(o.Table.Legend, "share a letter") ||
			!strings.Contains(o.Table.Legend, "each against "+o.Name) {
			t.Fatalf("%d rows, %s", len(rows), o.Table.Legend)
		}
		for i, row := range rows {
			if number := medianOf(t, in, row.Head); i > 0 && number > before {
				t.Errorf("%s is faster than the row above it", row.Head)
			} else {
				before = number
			}
			for _, cell := range row.Cells {
				if compared := len(cell.Parts) > 0; compared == (row.Head == o.Name) || cell.Letters == "" {
					t.Errorf("%s against %s: %+v", row.Head, o.Name, cell)
				}
			}
		}
	}
	page := inFormat(t, "html", in)
	if n := strings.Count(page, `type="radio"`); n != 6 {
		t.Errorf("%d targets can be chosen", n)
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
	table := newAnswer(in, groups(in), nil).block(in).Parts[0].(doc.Table)
	for _, row := range table.Rows {
		if compared := len(row.Cells[0].Parts) > 0; compared == (row.Sub == "baseline") {
			t.Errorf("%s: %+v", row.Head, row.Cells[0])
		}
	}
	if page := inFormat(t, "html", in); strings.Contains(page, `type="radio"`) {
		t.Error("a baseline can be chosen")
	}
	few, err := manyInput(smallShape("lab:native", "lab:bridge", "lab:vxlan", "lab:macvlan", "lab:geneve"))
	if err != nil {
		t.Fatal(err)
	}
	if newAnswer(few, groups(few), nil).ranked(few) {
		t.Error("four others than the baseline are ranked")
	}
}

// TestRankingOfExperiments checks that six experiments are ranked with letters, like the targets of one experiment, in
// every format with text.
func TestRankingOfExperiments(t *testing.T) {
	in := inputs(t)["several"]
	ranking := newAnswer(in, groups(in), nil).block(in).Parts[0].(doc.Table)
	if len(ranking.Rows) != 6 || ranking.Rows[0].Cells[0].Letters == "" {
		t.Fatalf("%+v", ranking.Rows)
	}
	if last := ranking.Rows[5]; last.Head != "native (cluster-6)" || last.Cells[0].Mark != doc.Worse {
		t.Errorf("the last line is %+v", last)
	}
	if timingOf(in).Total != 0 || command(in) != nil {
		t.Error("the time between experiments, or a command that repeats them, is in the page")
	}
	if strings.Contains(inFormat(t, "html", in), ">paired change<") {
		t.Error("a change without blocks is called paired")
	}
	for _, f := range Formats() {
		if f.Write == nil {
			continue // pictures
		}
		if text := written(t, f, in); !strings.Contains(text, "(cluster-6)") {
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
