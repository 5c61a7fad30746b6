package page

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/knotmeter/knotmeter/internal/unit"
)

// A role is what a column of a table has.
type role int

const (
	isLabel     role = iota
	isName           // labels, even if they are numbers
	isFigure         // measured values
	isParameter      // what was measured with, such as numbers of streams and sizes of messages
	isDuration       // of the measurement, if there are figures; otherwise they are the figures
	isCount          // number of runs behind a row
	isIndex          // number of the row, or a fact about the machines: neither label nor figure
	isGoal           // values that were wanted or allowed
	isChange         // change from one figure of the row to another
	isUnit           // units of the figures next to it
	isSpread         // standard deviations of the figures next to it
	isLow            // lower end of an interval around the figures next to it
	isHigh           // upper end
)

// headers matches the headers of columns by role, without a unit in brackets.
var headers = []struct {
	role    role
	pattern *regexp.Regexp
}{
	{isCount, regexp.MustCompile(
		`(?i)^(?:n|(?:#|no\.?|number)?\s*(?:of)?\s*(?:samples|runs|repetitions|repeats|iterations))$`)},
	{isIndex, regexp.MustCompile(
		`(?i)^(?:#|no\.?|nr\.?|id|index|run|test run|iteration|repetition|round|attempt|date` +
			`|nics?|(?:link|port|line|nic)(?: speed| rate)|uplink)$`)},
	{isDuration, regexp.MustCompile(`(?i)^(?:test |run )?(?:duration|run ?time)$`)},
	{isParameter, regexp.MustCompile(
		`(?i)^(?:(?:#|no\.?|num(?:ber)?)?\s*(?:of )?(?:parallel |concurrent |tcp |client )*` +
			`(?:streams?|flows?|connections?|conns?|threads?|process(?:es)?|parallel(?:ism)?|concurrency|clients?|workers?` +
			`|users?|jobs?|numjobs|pods?|nodes?|hosts?|servers?|machines?|instances?|replicas?|v?cpus?|cores?|sockets?)` +
			`|(?:io|queue) ?depth|qd|mtu|mss|port|(?:number|#|no\.?) of [\w ]+` +
			`|total requests|(?:[\w -]+ )?size(?: in \w+)?|payload|bs|price)$`)},
	{isName, regexp.MustCompile(`(?i)^(?:year|(?:[\w-]+ )*versions?|releases?|kernel|tag|branch)$`)},
	{isGoal, regexp.MustCompile(`(?i)^(?:.* )?(?:targets?|goals?|budget|slo|sla|thresholds?|warning|critical|limits?` +
		`|quota|requirements?|expected)$`)},
	{isChange, changeHeader},
	{isSpread, regexp.MustCompile(`(?i)^(?:.* )?(?:sd|std\.?(?: ?dev\.?)?|stddev|stdev|standard deviation|σ|±)$`)},
	{isLow, regexp.MustCompile(
		`(?i)(?:confidence|\bci\b).*\b(?:low|lower|min)\b|\b(?:low|lower) (?:bound|confidence|ci)\b`)},
	{isHigh, regexp.MustCompile(
		`(?i)(?:confidence|\bci\b).*\b(?:high|upper|max)\b|\b(?:high|upper) (?:bound|confidence|ci)\b`)},
}

// changeHeader matches the label of changes.
var changeHeader = regexp.MustCompile(
	`(?i)^(?:(?:%|relative|rel\.?|percent(?:age)?|perf(?:ormance)?\.?|throughput|latency)\s*)?` +
		`(?:change|improvement|difference|diff\.?|delta|δ|gain|loss of performance|drop|regression|overhead|penalty` +
		`|degradation|speed-?\s?up|slow-?\s?down|reduction|increase|decrease|relative|ratio|factor|变化|提升|下降|差异)` +
		`(?:\s*%)?(?:$|\s+(?:to|from|vs\.?|versus|over|against|of|compared)\b)` +
		`|^(?:%\s*)?(?:vs\.?|versus|compared (?:to|with)|relative to)\s`)

// roleOf returns the role that a header names; isLabel if it names none.
func roleOf(l label) role {
	for _, h := range headers {
		if !h.pattern.MatchString(l.name) {
			continue
		}
		if rate := l.measure.unit == unit.BitPerSecond || l.measure.unit == unit.PerSecond; rate && h.role <= isIndex {
			return isLabel
		}
		return h.role
	}
	return isLabel
}

// A column is the head of a column, and its role.
type column struct {
	label
	role role
}

// parseColumns finds the roles of a table's columns: those that their headers name, those of units, and of the others
// figures where most filled cells are figures.
func (t *tableRuns) parseColumns() {
	for i, name := range t.grid.header {
		c := column{label: newLabel(name)}
		c.role = roleOf(c.label)
		if found := t.roleOfCells(i, c.label); c.role == isLabel || c.role == isGoal && found == isLabel {
			c.role = found
		}
		t.columns = append(t.columns, c)
	}
	if len(t.with(isFigure)) == 0 {
		for _, i := range t.with(isDuration) {
			t.columns[i].role = isFigure
		}
	}
	for _, i := range t.with(isFigure) {
		t.unitOfCells(i)
		if of := t.nearest(i, isUnit, 1); of >= 0 && len(t.grid.rows) > 0 && t.columns[i].measure.unit == "" {
			t.columns[i].measure.scaledUnit, _ = unitOf(clean(t.grid.rows[0].cell(of)))
		}
	}
}

// unitOfCells gives a column that names what it measures the unit of its cells, if all have the same.
func (t *tableRuns) unitOfCells(i int) {
	m := &t.columns[i].measure
	if m.unit != "" || m.metric == "" || len(m.parts) > 0 {
		return
	}
	var of unit.Unit
	for _, r := range t.grid.rows {
		parsed, reason := t.style.peek(r.cell(i))
		if reason != "" {
			continue
		}
		if of != "" && parsed[0].unit != of || parsed[0].unit == "" {
			return
		}
		of = parsed[0].unit
	}
	if of != "" {
		m.scaledUnit = scaledUnit{of, 1}
	}
}

// roleOfCells returns the role of a column without a header that names it.
func (t *tableRuns) roleOfCells(i int, header label) role {
	figures, units, changes, sizes, filled := 0, 0, 0, 0, 0
	for _, r := range t.grid.rows {
		text := r.cell(i)
		if missing(text) {
			continue
		}
		filled++
		if _, ok := unitOf(clean(text)); ok {
			units++
		}
		parsed, reason := t.style.peek(text)
		switch {
		case reason != "":
			if looksMeasured(text, header.measure) {
				figures++
			}
		case parsed[0].suffix && !header.measure.describesMeasurement() && header.measure.unit == "":
		case len(parsed) == 1 && parsed[0].isChange():
			changes++
		default:
			figures++
			if parsed[0].unit == unit.Byte {
				sizes++
			}
		}
	}
	switch {
	case i == 0 && sizes > 0 && sizes == filled:
		return isParameter // of what was sent
	case units > 0 && units == filled:
		return isUnit
	case 2*changes > filled && header.measure.metric == "":
		return isChange
	case 2*(figures+changes) > filled:
		return isFigure
	}
	return isLabel
}

// with returns the columns of a role.
func (t *tableRuns) with(r role) (columns []int) {
	for i, c := range t.columns {
		if c.role == r {
			columns = append(columns, i)
		}
	}
	return columns
}

// nearest returns the column of a role next to a column of figures, without others of figures between them: first in
// the direction of step, then in the other; -1 if there is none.
func (t *tableRuns) nearest(figure int, wanted role, step int) int {
	for _, step := range []int{step, -step} {
		for i := figure + step; i >= 0 && i < len(t.columns) && t.columns[i].role != isFigure; i += step {
			if t.columns[i].role == wanted {
				return i
			}
		}
	}
	return -1
}

// repeatLabels fills in the empty first cells of a row from the row above, as of a cell that spans both, if the
// row has a label of its own before the first figure.
func (t *tableRuns) repeatLabels(first int) {
	for at, r := range t.grid.rows {
		own := slices.IndexFunc(r.cells, func(cell string) bool { return clean(cell) != "" })
		if at == 0 || own < 1 || own >= first {
			continue
		}
		for i := range own {
			r.cells[i] = t.grid.rows[at-1].cell(i)
		}
	}
}

// rowLabel joins the cells of a row before the first figure, and the words for its parameters.
func (t *tableRuns) rowLabel(r gridRow) (name, params string) {
	var names, words []string
	first := t.with(isFigure)[0]
	for i, c := range t.columns {
		text := clean(r.cell(i))
		switch {
		case text == "":
		case c.role == isParameter && unicode.IsDigit([]rune(text)[0]):
			differs := func(other gridRow) bool { return clean(other.cell(i)) != clean(t.grid.rows[0].cell(i)) }
			if len(t.grid.rows) == 1 || slices.ContainsFunc(t.grid.rows, differs) {
				words = append(words, parameterWords(c.name, text))
			}
		case c.role <= isParameter && c.role != isFigure && i < first:
			if answer, is := booleanWords(c.name, text); is {
				text = answer
			}
			names = append(names, text)
		}
	}
	return strings.Join(names, " "), strings.Join(words, " ")
}

// parameterWords returns a parameter as labels have it: "4 streams", "1400 B", "mtu 9000".
func parameterWords(header, cell string) string {
	low := strings.ToLower(header)
	_, err := strconv.Atoi(cell)
	switch {
	case containsAny(low, "parallel"):
		return cell + " streams"
	case flowsWord.MatchString("1 " + strings.TrimLeft(low, "#. ")):
		return cell + " " + strings.TrimLeft(low, "#. ")
	case containsAny(low, "size", "payload") && err == nil:
		return cell + " B"
	case containsAny(low, "size", "payload"):
		return cell
	}
	return low + " " + cell
}

// booleanWords returns the words of a label for a cell with yes or no, and whether it is such a cell.
func booleanWords(header, cell string) (string, bool) {
	yes := strings.EqualFold(cell, "true") || strings.EqualFold(cell, "yes")
	if !yes && !strings.EqualFold(cell, "false") && !strings.EqualFold(cell, "no") {
		return "", false
	}
	low := strings.ToLower(header)
	words := [2]string{"", low} // for no and yes
	switch {
	case strings.Contains(low, "same node"):
		words = [2]string{"other node", "same node"}
	case strings.Contains(strings.ReplaceAll(low, " ", ""), "hostnetwork"):
		words = [2]string{"pod to pod", "host to host"}
	}
	if yes {
		return words[1], true
	}
	return words[0], true
}
