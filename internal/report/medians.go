package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/prose"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/stats"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// mediansReading says what the numbers of an experiment mean that compares nothing.
func mediansReading(c compare.Comparison) string {
	return fmt.Sprintf("The median of the runs that count, and an interval that holds it with %s confidence, each for "+
		"itself, by their order alone. An interval takes six runs or more; runs of one experiment do not tell how much "+
		"another day differs. To compare, name another target, or give compare another experiment's directory.",
		stats.Percent(c.Medians[0].Level))
}

// split takes the medians that a reader looks for first from the rest: what each case is measured for, or, where the
// runs were too short for that, the first metric that they have; beside a median latency its tail, beside a rate of
// storage its latency, and beside the sum of both directions each of them.
func split(in Input) (first, rest []compare.Median) {
	cases, before := in.casesByName(), ""
	for _, m := range in.Comparison.Medians {
		of, begins := cases[m.Case], m.Case+" "+m.Target != before
		before = m.Case + " " + m.Target
		way := m.Metric == metric.ThroughputTX || m.Metric == metric.ThroughputRX
		if begins || way || of.Metric == metric.P50 && m.Metric == metric.P99 || isWait(of, m.Metric) {
			first = append(first, m)
		} else {
			rest = append(rest, m)
		}
	}
	return first, rest
}

// around is a median's interval in its own unit.
func around(m compare.Median) string {
	if !m.CI.Bounded() {
		return "-"
	}
	return span([2]compare.Number{compare.Number(m.CI.Lo), compare.Number(m.CI.Hi)}, m.Unit)
}

// share says what part of its reference a median is; empty if there is none.
func share(m compare.Median) string {
	switch {
	case m.UpperBound == nil:
		return ""
	case m.UpperBound.Faster != "":
		return m.UpperBound.Case + noLimit(*m.UpperBound)
	case !m.UpperBound.TargetShare.Known():
		return ""
	}
	return fmt.Sprintf("%.0f %% of %s", m.UpperBound.TargetShare*100, m.UpperBound.Case)
}

// runsOfMedians says how many runs are behind a number: "11 runs each", or "2 to 11 runs each".
func runsOfMedians(list []compare.Median) string {
	least, most := list[0].Runs, list[0].Runs
	for _, m := range list {
		least, most = min(least, m.Runs), max(most, m.Runs)
	}
	if least == most {
		return unit.Plural(most, "run") + " each"
	}
	return fmt.Sprintf("%d to %s each", least, unit.Plural(most, "run"))
}

// Columns of a median: two spaces, then case, metric, median and interval with one between.
const (
	ownColumn    = 10
	aroundColumn = 25
)

// medians writes what was measured where nothing is compared, and returns how many numbers it leaves out.
func (t *textReport) medians(in Input) (hidden int) {
	list, rest := split(in)
	if len(list) == 0 {
		return 0
	}
	t.Paragraph("MEASURED: ", "  ", fmt.Sprintf("medians, with their intervals; %s.", runsOfMedians(list)))
	t.Line("")
	for i, l := range levels(in, list) {
		t.median(l, shortValue(list[i].Median, list[i].Unit))
	}
	t.Line("")
	return len(rest)
}

func (t *textReport) median(l level, value string) {
	name, metric := prose.Plain(l.Case), prose.Plain(l.Metric)
	caseColumn := t.proseWidth() - 2 - ownColumn - valueColumn - aroundColumn - 3
	if prose.Width(name) > caseColumn {
		t.Paragraph("  ", "  ", name)
		name = ""
	}
	if prose.Width(metric) > ownColumn {
		t.Paragraph("  ", "  ", strings.TrimSpace(name+" "+metric))
		name, metric = "", ""
	}
	t.Line("  " + strings.Join([]string{prose.Left(name, caseColumn), prose.Left(metric, ownColumn),
		prose.Right(value, valueColumn), prose.Right(l.Interval, aroundColumn)}, " "))
	if l.Share != "" {
		t.Line("  " + prose.Left("", caseColumn) + " " + l.Share)
	}
}

// medians are a table of what was measured, where nothing is compared.
func (m *markdown) medians(in Input) {
	list, rest := split(in)
	var rows [][]string
	for _, x := range list {
		rows = append(rows, []string{
			x.Case, x.Target, x.Metric, format(x.Median, x.Unit), around(x), strconv.Itoa(x.Runs), share(x)})
	}
	m.rows("Measured", "", "| case | target | metric | median | interval | runs | |\n|--|--|--|--:|--:|--:|--|\n", rows)
	if len(rest) > 0 {
		m.line("%d more metrics of these cases are in the report and its JSON.", len(rest))
	}
}

// A level is a median as a line of a table; its case is said on the first one alone.
type level struct{ Case, Metric, Median, Interval, Runs, Share string }

// levels are the lines of the table on the first screen.
func levels(in Input, list []compare.Median) []level {
	var lines []level
	before := ""
	for _, m := range list {
		name := m.Case
		if len(in.Experiment.Targets) > 1 {
			name += " on " + m.Target
		}
		l := level{name, m.Metric, format(m.Median, m.Unit), around(m), strconv.Itoa(m.Runs), share(m)}
		if name == before {
			l.Case = ""
		}
		before = name
		lines = append(lines, l)
	}
	return lines
}

// mediansMatrix is a table of medians with a column for each target.
func mediansMatrix(list []compare.Median) *matrix {
	var targets []string
	for _, x := range list {
		targets = append(targets, x.Target)
	}
	m := &matrix{Columns: distinct(targets)}
	at := index[[2]string]{}
	for _, x := range list {
		i, first := at.of([2]string{x.Case, x.Metric})
		if first {
			m.Rows = append(m.Rows, matrixRow{Head: x.Case, Sub: x.Metric + ", " + betterText(x.Better),
				Cells: slices.Repeat([]cell{{Text: "-"}}, len(m.Columns))})
		}
		m.Rows[i].Cells[slices.Index(m.Columns, x.Target)] = cell{Text: format(x.Median, x.Unit),
			Sub: strings.Join(nonEmpty(around(x), unit.Plural(x.Runs, "run"), share(x)), ", ")}
	}
	return m.capped()
}

// groupsAlone are the medians of an experiment that compares nothing, as groups without rows.
func groupsAlone(in Input) []group {
	cases := in.casesByName()
	var list []group
	for _, m := range in.Comparison.Medians {
		g := group{Case: m.Case, Of: cases[m.Case], Metric: m.Metric, Unit: m.Unit, Better: m.Better,
			Role: result.Exploratory, Baseline: m.Target, BaselineMedian: m.Median, Bound: m.UpperBound}
		if g.Main = m.Metric == g.Of.Metric; g.Main {
			g.Role = m.Role
		}
		list = append(list, g)
	}
	return list
}
