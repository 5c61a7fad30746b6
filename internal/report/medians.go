package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/doc"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/stats"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// mediansReading explains the numbers of an experiment that compares nothing.
func mediansReading(c compare.Comparison) string {
	return fmt.Sprintf("The median of the runs that count, and an interval that holds it with %s confidence, each for "+
		"itself, by their order alone. An interval takes six runs or more; runs of one experiment do not tell how much "+
		"another day differs. To compare, name another target, or give compare another experiment's directory.",
		stats.Percent(c.Medians[0].Level))
}

// splitMedians separates the medians that a reader looks for first: the main metric of each case (the first metric if
// the runs were too short for that), the p99 of a median latency, the latencies of storage, and each direction of a
// bidirectional throughput.
func splitMedians(in Input) (first, rest []compare.Median) {
	cases, before := in.casesByName(), ""
	for _, m := range in.Comparison.Medians {
		planned, isFirst := cases[m.Case], m.Case+" "+m.Target != before
		before = m.Case + " " + m.Target
		direction := m.Metric == metric.ThroughputTX || m.Metric == metric.ThroughputRX
		m.Unit = planned.ShownUnit(m.Unit)
		tail := planned.Metric == metric.P50 && m.Metric == metric.P99
		if isFirst || direction || tail || isStorageLatency(planned, m.Metric) {
			first = append(first, m)
		} else {
			rest = append(rest, m)
		}
	}
	return first, rest
}

// medianInterval returns the interval of a median in its own unit; "-" if it has no bounds.
func medianInterval(m compare.Median) string {
	if !m.CI.Bounded() {
		return "-"
	}
	return span([2]compare.Number{compare.Number(m.CI.Lo), compare.Number(m.CI.Hi)}, m.Unit)
}

// shareOfReference returns the share of its reference that a median reaches; empty if it has no reference or the share
// is unknown.
func shareOfReference(m compare.Median) string {
	switch {
	case m.UpperBound == nil:
		return ""
	case m.UpperBound.Faster != "":
		return m.UpperBound.Case + exceededText(*m.UpperBound)
	case !m.UpperBound.TargetShare.Known():
		return ""
	}
	return fmt.Sprintf("%.0f %% of %s", m.UpperBound.TargetShare*100, m.UpperBound.Case)
}

// measured returns the medians of an experiment that compares nothing, and the number of medians that it leaves out.
func measured(in Input) (b doc.Block, hidden int) {
	shown, rest := splitMedians(in)
	table := doc.Table{Columns: []doc.Column{{Head: "median"}, {Head: "interval"}, {Head: "runs"},
		{Head: "of the node-to-node reference", Words: true}}}
	for _, m := range shown {
		name := m.Case
		if len(in.Experiment.Targets) > 1 {
			name += " on " + m.Target
		}
		table.Rows = append(table.Rows, doc.Row{Group: name, Head: m.Metric, Cells: []doc.Cell{
			{Text: format(m.Median, m.Unit)}, {Text: medianInterval(m)}, {Text: strconv.Itoa(m.Runs)},
			{Text: shareOfReference(m)},
		}})
	}
	about := "Medians of the runs, each with its own interval."
	if slices.ContainsFunc(shown, func(m compare.Median) bool { return shareOfReference(m) != "" }) {
		about = "Medians of the runs, each with its own interval, and as a share of the node-to-node reference."
	}
	return doc.Block{ID: "measured", Title: "Measured", Parts: parts(table.WithoutEmptyColumns()),
		About: about}, len(rest)
}

// mediansTable returns medians with a row for each metric of a case, and a column for each target.
func mediansTable(list []compare.Median) doc.Table {
	var targets []string
	for _, x := range list {
		targets = append(targets, x.Target)
	}
	targets = distinct(targets)
	var t doc.Table
	for _, name := range targets {
		t.Columns = append(t.Columns, doc.Column{Head: name})
	}
	at := index[[2]string]{}
	for _, x := range list {
		i, first := at.add([2]string{x.Case, x.Metric})
		if first {
			t.Rows = append(t.Rows, doc.Row{Group: x.Case, Head: x.Metric, Sub: betterText(x.Better),
				Cells: slices.Repeat([]doc.Cell{{Text: "-"}}, len(targets))})
		}
		c := doc.Cell{Text: format(x.Median, x.Unit)}
		if x.CI.Bounded() {
			c.Notes = []string{medianInterval(x)}
		}
		c.Notes = append(c.Notes, strings.Join(nonEmpty(unit.Plural(x.Runs, "run"), shareOfReference(x)), ", "))
		t.Rows[i].Cells[slices.Index(targets, x.Target)] = c
	}
	return t
}

// medianGroups returns the medians of an experiment that compares nothing, as groups without rows.
func medianGroups(in Input) []group {
	cases := in.casesByName()
	var list []group
	for _, m := range in.Comparison.Medians {
		g := group{Case: m.Case, Planned: cases[m.Case], Metric: m.Metric, Better: m.Better,
			Unit: cases[m.Case].ShownUnit(m.Unit), Role: result.Exploratory, Baseline: m.Target,
			BaselineMedian: m.Median, Bound: m.UpperBound}
		if g.Main = m.Metric == g.Planned.Metric; g.Main {
			g.Role = m.Role
		}
		list = append(list, g)
	}
	return list
}
