package report

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/doc"
	"github.com/knotmeter/knotmeter/internal/doc/text"
	"github.com/knotmeter/knotmeter/internal/prose"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// TextOptions are the options of a text report.
type TextOptions struct {
	Colour  bool // colours verdicts with escape sequences; the caller honours NO_COLOR
	Verbose bool // adds exploratory cases, notes, facts and times
	Width   int  // columns of a line, raised to [text.MinWidth]; [prose.Columns] if 0 or Verbose
}

// Matrix writes only the table of [Text], for an experiment in progress. The error is the writer's.
func Matrix(w io.Writer, in Input, options TextOptions) error {
	t := newTextReport(options)
	in = in.inStorageUnits()
	t.matrix(in, newAnswer(in, groups(in), nil, nil))
	return write(w, t.String())
}

// Text writes the answer as a table for a terminal, with the caveats below. The error is the writer's.
func Text(w io.Writer, in Input, options TextOptions) error {
	t := newTextReport(options)
	in = in.inStorageUnits()
	if !options.Verbose {
		t.brief(in)
		return write(w, t.String())
	}
	t.head(in.Comparison)
	t.Block(gates(in.Comparison))
	all := groups(in)
	hidden, byRole := 0, map[result.Role][]group{}
	for _, role := range roles {
		kept, others := partition(all, role)
		hidden += others
		byRole[role] = kept
	}
	t.texts, t.omitted = chooseNotes(slices.Concat(byRole[result.Primary], byRole[result.Exploratory]), maxNotes)
	for _, role := range roles {
		t.section(role, byRole[role])
	}
	medians, further := measured(in)
	t.Block(medians)
	hidden += further
	t.blocks(conclusionSections(in))
	t.blocks(sections(in))
	if len(all) == 0 && len(in.Comparison.Medians) == 0 {
		t.Paragraph("", "", nothingToCompareText)
		t.Line("")
	}
	if hidden > 0 {
		t.Paragraph("", "", fmt.Sprintf("%d more metrics of these cases are in the HTML report and in -o json.", hidden))
		t.Line("")
	}
	t.foot(in)
	return write(w, t.String())
}

var roles = []result.Role{result.Primary, result.Exploratory}

type textReport struct {
	*text.Terminal
	texts   []string // notes below the table, in order
	omitted int      // number of notes that did not fit
}

func newTextReport(options TextOptions) *textReport {
	level := doc.Answer
	if options.Verbose {
		options.Width, level = 0, doc.Detail
	}
	w := text.NewTerminal(options.Width)
	w.Colour, w.Level = options.Colour, level
	return &textReport{Terminal: w}
}

// head writes the headline, the summary, and what changed between sessions or visits.
func (t *textReport) head(c compare.Comparison) {
	t.Paragraph("", "", c.Headline+".")
	t.Paragraph("", "", c.Summary)
	if !c.Paired {
		t.Paragraph("", "", unpairedText)
	}
	for _, s := range sessionChanges(c) {
		t.Paragraph("! ", "  ", s)
	}
	t.Line("")
}

// blocks writes sections.
func (t *textReport) blocks(list []doc.Block) {
	for _, b := range list {
		t.Block(b)
	}
}

// conclusions returns the conclusions of the groups for which all pairs were planned, or of all other groups.
func conclusions(groups []compare.Group, declared bool) []string {
	var list []string
	for _, g := range groups {
		if g.Declared == declared {
			list = append(list, fmt.Sprintf("%s, %s: %s", g.Case, g.Metric, g.Conclusion))
		}
	}
	return list
}

// section writes the groups of a role.
func (t *textReport) section(role result.Role, list []group) {
	if len(list) == 0 {
		return
	}
	if role == result.Exploratory {
		t.Paragraph("EXPLORATORY: ", "  ", "no verdict was planned for these; false discoveries are controlled.")
	} else {
		t.Line("PRIMARY")
	}
	t.Line("")
	for _, g := range list {
		t.group(g)
		t.Line("")
	}
}

// Columns of a row: two spaces, then label, value, change, interval, verdict and note, separated by a space.
const (
	valueColumn    = 11
	changeColumn   = 9
	intervalColumn = 18
	wordColumn     = 11
	noteColumn     = 5
	labelColumn    = prose.Columns - 2 - valueColumn - changeColumn - intervalColumn - wordColumn - noteColumn - 5
)

// group writes a group: the baseline, each target, and the reference.
func (t *textReport) group(g group) {
	t.Paragraph("", "  ", fmt.Sprintf("%s, %s, %s", g.Case, g.Metric, betterText(g.Better)))
	t.row(g.Baseline, prose.Right(shortValue(g.BaselineMedian, g.Unit),
		valueColumn)+" "+prose.Right("baseline", changeColumn))
	for _, r := range g.Rows {
		t.comparison(r)
	}
	for _, n := range g.Missing {
		t.row(n.Target, prose.Right("not measured", valueColumn+1))
	}
	t.bound(g)
}

// row writes a label and its cells, on two lines if the label is long.
func (t *textReport) row(label, cells string) {
	label = prose.Plain(label)
	if prose.Width(label) <= labelColumn {
		t.Line("  " + prose.Left(label, labelColumn) + " " + cells)
		return
	}
	t.Paragraph("  ", "  ", label)
	t.Line("  " + prose.Left("", labelColumn) + " " + cells)
}

// comparison writes a target's row. Note numbers that do not fit get a line of their own.
func (t *textReport) comparison(r compare.Row) {
	cells := []string{
		prose.Right(shortValue(r.TargetMedian, r.Unit), valueColumn),
		prose.Right(change(r.Change), changeColumn),
		prose.Right(interval(r.CI), intervalColumn),
		t.colouredVerdict(r),
	}
	numbers := t.marks(r)
	marks := "[" + strings.Join(numbers, ",") + "]"
	fits := prose.Width(marks) <= noteColumn
	if len(numbers) > 0 && fits {
		cells = append(cells, marks)
	}
	t.row(r.Target, strings.Join(cells, " "))
	if !fits {
		t.Paragraph("    ", "    ", "notes "+strings.Join(numbers, ", "))
	}
	t.why(whyUndecided(r))
}

// why writes the reason for which the row above is undecided, if there is one.
func (t *textReport) why(reason string) {
	if reason != "" {
		t.Line(t.Style("2", "    undecided: "+reason))
	}
}

// shortValue formats a value within its column: a count may have more digits.
func shortValue(n compare.Number, u unit.Unit) string {
	text := format(n, u)
	if prose.Width(text) <= valueColumn {
		return text
	}
	return fmt.Sprintf("%.3g %s", float64(n), u)
}

// marks returns the numbers of a row's notes, and a plus if some are omitted.
func (t *textReport) marks(r compare.Row) []string {
	var marks []string
	all := notes(r)
	for i, text := range t.texts {
		if slices.Contains(all, text) {
			marks = append(marks, strconv.Itoa(i+1))
		}
	}
	if slices.ContainsFunc(all, func(n string) bool { return !slices.Contains(t.texts, n) }) {
		marks = append(marks, "+")
	}
	return marks
}

// colouredVerdict returns the verdict, padded without counting the escape sequences.
func (t *textReport) colouredVerdict(r compare.Row) string {
	text := verdictWord(r)
	if r.Verdict == compare.Undecided {
		text = "~ " + text
	}
	padding := strings.Repeat(" ", max(wordColumn-prose.Width(text), 0))
	return t.Style(verdictCodes[mark(r)], text) + padding
}

// bound writes the node-to-node reference of a group, and the shares that targets reach.
func (t *textReport) bound(g group) {
	b := g.Bound
	if b == nil {
		return
	}
	text := fmt.Sprintf("%s %s (%s)%s", referenceName, g.references(), b.Case, exceededText(*b))
	var shares []string
	if b.BaselineShare.Known() {
		shares = append(shares, fmt.Sprintf("%s %.0f %%", g.Baseline, b.BaselineShare*100))
	}
	for _, r := range g.Rows {
		if u := r.UpperBound; u != nil && u.TargetShare.Known() {
			shares = append(shares, fmt.Sprintf("%s %.0f %%", r.Target, u.TargetShare*100))
		}
	}
	if len(shares) > 0 {
		text += "; of that: " + strings.Join(shares, ", ")
	}
	t.Paragraph("  ", "    ", text)
}

// foot writes notes, warnings, differences and times below the tables.
func (t *textReport) foot(in Input) {
	c := in.Comparison
	for i, text := range t.texts {
		t.Paragraph(prose.Left(fmt.Sprintf("[%d]", i+1), 5), "     ", text)
	}
	if t.omitted > 0 {
		t.Paragraph("[+]  ", "     ", fmt.Sprintf(
			"%d more notes on single comparisons are in the HTML report and in -o json.", t.omitted))
	}
	t.gap(len(t.texts))
	t.blocks(caveats(in))
	t.Paragraph("", "", c.Scope)
	t.Paragraph("", "", howToRead(c))
	if time := timingOf(in).sentences(); len(time) > 0 {
		t.Line("")
		t.Block(list("Time", time, ""))
	}
}

// gap writes an empty line after a part that has lines.
func (t *textReport) gap(lines int) {
	if lines > 0 {
		t.Line("")
	}
}

// unpairedText is the warning about a comparison without blocks.
const unpairedText = "Unpaired: the runs are not of the same blocks, so drift between them counts as difference."

// nothingToCompareText is the message for an experiment without results.
const nothingToCompareText = "There is nothing to compare: no block is complete on the baseline and a target."

// howToRead explains the signs of the table.
func howToRead(c compare.Comparison) string {
	if len(c.Medians) > 0 {
		return mediansReading(c)
	}
	return fmt.Sprintf("Change: estimate and interval of target against %s. Better and worse: the interval excludes "+
		"zero; equivalent: it lies within ±%.3g %%; undecided (~): the runs do not tell.",
		prose.Enumerate(baselines(c)), c.Delta*100)
}

// findings returns the findings of the audit as sentences.
func findings(c compare.Comparison) []string {
	var list []string
	for _, f := range c.Findings {
		rule := f.Rule
		if where := nonEmpty(f.Case, f.Metric, f.Target); len(where) > 0 {
			rule += " (" + strings.Join(where, ", ") + ")"
		}
		list = append(list, strings.TrimSpace(fmt.Sprintf("%s: %s %s", rule, f.Saw, f.Why)))
	}
	return list
}

// nonEmpty returns the parts that are not empty.
func nonEmpty(parts ...string) []string {
	return slices.DeleteFunc(parts, func(p string) bool { return p == "" })
}

// notMeasured returns what was not measured, with the reasons.
func notMeasured(all []result.NotMeasured) []string {
	var list []string
	for _, n := range expandWildcards(all) {
		list = append(list, fmt.Sprintf("%s, %s: %s", n.Target, n.Case, n.Reason))
	}
	return list
}

// differsFrom names the baseline that facts are compared with; several for unpaired comparisons.
func differsFrom(c compare.Comparison) string {
	if c.Paired {
		return c.Baseline
	}
	return prose.Enumerate(baselines(c))
}

// alsoDiffers returns the facts in which each compared target differs, in the order of the targets.
func alsoDiffers(c compare.Comparison) []string {
	var list []string
	for _, name := range comparedTargets(c) {
		var facts []string
		for _, d := range c.Differences[name] {
			perhaps := ""
			if d.Target == result.Unknown || d.Baseline == result.Unknown {
				perhaps = "perhaps "
			}
			facts = append(facts, fmt.Sprintf("%s%s %s (%s)", perhaps, d.Fact, d.Target, d.Baseline))
		}
		if len(facts) > 0 {
			list = append(list, name+": "+strings.Join(facts, ", "))
		}
	}
	return list
}

// maxReasons is the number of listed reasons for invalid runs of a target, the most frequent first.
const maxReasons = 3

// invalidRuns returns the number of invalid runs of each target, with reasons.
func invalidRuns(c compare.Comparison) []string {
	var list []string
	for _, t := range c.Targets {
		if t.Invalid == 0 {
			continue
		}
		var reasons []string
		for _, r := range t.Reasons[:min(maxReasons, len(t.Reasons))] {
			reasons = append(reasons, fmt.Sprintf("%s (%d)", r.Text, r.Runs))
		}
		if more := len(t.Reasons) - len(reasons); more > 0 {
			reasons = append(reasons, fmt.Sprintf("and %d more reasons, which -o json has", more))
		}
		list = append(list, fmt.Sprintf("%s: %d of %d: %s", t.Name, t.Invalid, t.Runs, strings.Join(reasons, "; ")))
	}
	return list
}
