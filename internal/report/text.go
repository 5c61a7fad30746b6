package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/doc"
	"github.com/knotmeter/knotmeter/internal/doc/text"
	"github.com/knotmeter/knotmeter/internal/prose"
	"github.com/knotmeter/knotmeter/internal/result"
)

// TextOptions are the options of a text report.
type TextOptions struct {
	Colour  bool // colours verdicts with escape sequences; the caller honours NO_COLOR
	Verbose bool // adds exploratory cases, notes, facts and times
	Width   int  // columns of a line, raised to [text.MinWidth]; [prose.Columns] if 0 or Verbose
}

// Matrix writes only the table of [Text], for an experiment in progress. The error is the writer's.
func Matrix(w io.Writer, in Input, options TextOptions) error {
	t := options.terminal()
	t.Block(newAnswer(in, groups(in), nil).block(in))
	return write(w, t.String())
}

// Text writes the answer as a table for a terminal, with the caveats below; verbose, with all details. The error is the
// writer's.
func Text(w io.Writer, in Input, options TextOptions) error {
	t := options.terminal()
	c, blocks := in.Comparison, document(in, groups(in))
	t.Paragraph("", "", c.Headline+".")
	t.Faint(c.Summary)
	t.Block(notices(in))
	t.Line("")
	for _, b := range blocks {
		t.Block(b)
	}
	if options.Verbose {
		t.Block(method(in))
		t.Block(timeSpent(in))
		return write(w, strings.TrimRight(t.String(), "\n")+"\n")
	}
	if len(t.Omitted) > 0 {
		where := "--verbose and the report"
		if slices.ContainsFunc(blocks, func(b doc.Block) bool { return b.ID == "why" }) {
			where = "--verbose, 'knotmeter explain' and the report"
		}
		t.Faint("Also: " + prose.Enumerate(t.Omitted) + "; " + where + " have them.")
	}
	t.Faint(scopeLine(in))
	return write(w, t.String())
}

// terminal returns an empty text.
func (o TextOptions) terminal() *text.Terminal {
	level := doc.Answer
	if o.Verbose {
		o.Width, level = 0, doc.Detail
	}
	t := text.NewTerminal(o.Width)
	t.Colour, t.Level = o.Colour, level
	return t
}

// faint returns the texts that are not empty as paragraphs.
func faint(texts ...string) []doc.Element {
	var list []doc.Element
	for _, text := range nonEmpty(texts...) {
		list = append(list, doc.Paragraph{Text: text, Tone: doc.Faint})
	}
	return list
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

// blocksNeededText returns a sentence with the largest number of blocks that would decide a shown comparison; empty if
// there is none.
func blocksNeededText(h answer) string {
	most := 0
	for _, row := range h.Rows {
		for _, c := range row.Cells {
			most = max(most, c.Needed)
		}
	}
	if most == 0 {
		return ""
	}
	return fmt.Sprintf("About %d blocks would decide what is undecided, as far as these runs tell.", most)
}

// scopeLine returns the scope of the results in a line, with the time of the runs.
func scopeLine(in Input) string {
	when := "at this time"
	if len(in.Runs) > 0 {
		byStart := func(a, b result.Run) int { return a.Start.Compare(b.Start) }
		first := slices.MinFunc(in.Runs, byStart).Start.UTC().Format("2006-01-02 15:04")
		last := slices.MaxFunc(in.Runs, byStart).Start.UTC().Format("2006-01-02 15:04")
		switch {
		case slices.ContainsFunc(in.Runs, func(r result.Run) bool { return r.Start.IsZero() }):
		case in.Comparison.Paired || first == last:
			when = "at " + first + " UTC"
		default:
			when = "between " + first + " and " + last + " UTC"
		}
	}
	return "This holds for these targets, on these machines, " + when + "."
}
