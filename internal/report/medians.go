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

// runCountText returns the number of runs of medians: "11 runs each", or "2 to 11 runs each".
func runCountText(list []compare.Median) string {
	least, most := list[0].Runs, list[0].Runs
	for _, m := range list {
		least, most = min(least, m.Runs), max(most, m.Runs)
	}
	if least == most {
		return unit.Plural(most, "run") + " each"
	}
	return fmt.Sprintf("%d to %s each", least, unit.Plural(most, "run"))
}

// Columns of a median: two spaces, then case, metric, median and interval, separated by a space.
const (
	metricColumn         = 10
	medianIntervalColumn = 25
)

// medians writes the medians of an experiment that compares nothing, and returns the number of medians that it leaves
// out.
func (t *textReport) medians(in Input) (hidden int) {
	list, rest := splitMedians(in)
	if len(list) == 0 {
		return 0
	}
	t.Paragraph("MEASURED: ", "  ", fmt.Sprintf("medians, with their intervals; %s.", runCountText(list)))
	t.Line("")
	for i, l := range medianRows(in, list) {
		t.median(l, shortValue(list[i].Median, list[i].Unit))
	}
	t.Line("")
	return len(rest)
}

// median writes a median, with long names on lines of their own.
func (t *textReport) median(l medianRow, value string) {
	name, metricName := prose.Plain(l.Case), prose.Plain(l.Metric)
	caseColumn := t.Width - 2 - metricColumn - valueColumn - medianIntervalColumn - 3
	if prose.Width(name) > caseColumn {
		t.Paragraph("  ", "  ", name)
		name = ""
	}
	if prose.Width(metricName) > metricColumn {
		t.Paragraph("  ", "  ", strings.TrimSpace(name+" "+metricName))
		name, metricName = "", ""
	}
	t.Line("  " + strings.Join([]string{prose.Left(name, caseColumn), prose.Left(metricName, metricColumn),
		prose.Right(value, valueColumn), prose.Right(l.Interval, medianIntervalColumn)}, " "))
	if l.Share != "" {
		t.Line("  " + prose.Left("", caseColumn) + " " + l.Share)
	}
}

// medians writes a table of the medians of an experiment that compares nothing.
func (m *comment) medians(in Input) {
	list, rest := splitMedians(in)
	var rows [][]string
	for _, x := range list {
		rows = append(rows, []string{
			x.Case, x.Target, x.Metric, format(x.Median, x.Unit), medianInterval(x), strconv.Itoa(x.Runs), shareOfReference(x)})
	}
	m.rows("Measured", "", "| case | target | metric | median | interval | runs | |\n|--|--|--|--:|--:|--:|--|\n", rows)
	if len(rest) > 0 {
		m.line("%d more metrics of these cases are in the report and its JSON.", len(rest))
	}
}

// A medianRow is a median as a row of a table; only the first row of a case names it.
type medianRow struct{ Case, Metric, Median, Interval, Runs, Share string }

// medianRows returns the rows of the table on the first screen.
func medianRows(in Input, list []compare.Median) []medianRow {
	var lines []medianRow
	before := ""
	for _, m := range list {
		name := m.Case
		if len(in.Experiment.Targets) > 1 {
			name += " on " + m.Target
		}
		l := medianRow{name, m.Metric, format(m.Median, m.Unit), medianInterval(m), strconv.Itoa(m.Runs), shareOfReference(m)}
		if name == before {
			l.Case = ""
		}
		before = name
		lines = append(lines, l)
	}
	return lines
}

// mediansMatrix returns a table of medians with a column for each target.
func mediansMatrix(list []compare.Median) *matrix {
	var targets []string
	for _, x := range list {
		targets = append(targets, x.Target)
	}
	m := &matrix{Columns: distinct(targets)}
	at := index[[2]string]{}
	for _, x := range list {
		i, first := at.add([2]string{x.Case, x.Metric})
		if first {
			m.Rows = append(m.Rows, matrixRow{Head: x.Case, Sub: x.Metric + ", " + betterText(x.Better),
				Cells: slices.Repeat([]cell{{Text: "-"}}, len(m.Columns))})
		}
		m.Rows[i].Cells[slices.Index(m.Columns, x.Target)] = cell{Text: format(x.Median, x.Unit),
			Sub: strings.Join(nonEmpty(medianInterval(x), unit.Plural(x.Runs, "run"), shareOfReference(x)), ", ")}
	}
	return m.capped()
}

// medianGroups returns the medians of an experiment that compares nothing, as groups without rows.
func medianGroups(in Input) []group {
	cases := in.casesByName()
	var list []group
	for _, m := range in.Comparison.Medians {
		g := group{Case: m.Case, Planned: cases[m.Case], Metric: m.Metric, Unit: m.Unit, Better: m.Better,
			Role: result.Exploratory, Baseline: m.Target, BaselineMedian: m.Median, Bound: m.UpperBound}
		if g.Main = m.Metric == g.Planned.Metric; g.Main {
			g.Role = m.Role
		}
		list = append(list, g)
	}
	return list
}
