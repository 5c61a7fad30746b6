package report

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/plan"
	"github.com/knotmeter/knotmeter/internal/prose"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// planText builds the text of a plan.
type planText struct {
	plan.Document
	prose.Page
}

// Plan writes a plan as text of at most 80 columns. The error is the writer's.
func Plan(w io.Writer, document plan.Document) error {
	d := &planText{Document: document}
	d.cases()
	d.totals()
	d.rotation()
	d.Line("")
	switch {
	case len(d.Detectable) == 0:
		d.Line("There is nothing to decide: no primary case has two targets.")
	case d.Forecast == nil:
		d.examples()
	default:
		d.forecast()
	}
	for _, g := range d.Experiment.Gates {
		d.Line("")
		d.Paragraph("gate: ", "  ", g)
	}
	if len(d.Consent) > 0 {
		d.Line("")
		d.Line("run needs --yes:")
	}
	for _, c := range d.Consent {
		d.Paragraph("  ", "    ", c.String())
	}
	for _, n := range d.Experiment.NotMeasured {
		d.Line("")
		d.Paragraph("not measured: ", "  ", fmt.Sprintf("%s on %s: %s", n.Case, n.Target, n.Reason))
	}
	return write(w, d.Page.String())
}

// cases writes the targets, and the runs and duration of each case.
func (d *planText) cases() {
	e := d.Experiment
	d.Paragraph("", "  ",
		fmt.Sprintf("%s on %s, baseline %s", e.Suite, strings.Join(e.TargetNames(), ", "), e.Baseline))
	d.Line("")
	for _, c := range d.Outline.Cases {
		d.Line(fmt.Sprintf("  %s %-12s %4d runs %7s",
			prose.Left(prose.Plain(c.Name), 42), c.Role, c.Runs, prose.Clock(c.Seconds)))
	}
	d.Line("")
}

// totals writes the duration of the experiment and of a block.
func (d *planText) totals() {
	design := d.Experiment.Design
	runs := fmt.Sprintf("%d runs of %.3g s after %.3g s of warm-up: about %s",
		d.Runs, design.Duration, design.Warmup, prose.Clock(d.Seconds))
	if len(design.Looks) > 1 {
		d.Paragraph("", "", fmt.Sprintf("At most %d blocks, looked at after %s;",
			design.Blocks, prose.Enumerate(integerTexts(design.Looks))))
		d.Line("at most " + runs)
	} else {
		d.Line(fmt.Sprintf("%d blocks, %s", design.Blocks, runs))
	}
	switching := ""
	if d.Visits > 0 {
		switching = secondsText(d.Block.Switches) + " for switches, "
	}
	d.Paragraph("", "", fmt.Sprintf("A block takes about %s: %s%s measuring, %s for sites, %s around runs.",
		secondsText(d.Block.Seconds), switching, secondsText(d.Block.Measuring), secondsText(d.Block.Sites),
		secondsText(d.Block.Seconds-d.Block.Measuring-d.Block.Sites-d.Block.Switches)))
	d.visits()
	if design.Budget > 0 && design.Budget < d.Seconds {
		d.Line(fmt.Sprintf("The budget of %s ends it before that.", prose.Clock(design.Budget)))
	}
	if design.Parallel {
		d.Line("The runs of a case in a block are at the same time, on all targets.")
	}
}

// visits writes the visits of a block and their switches.
func (d *planText) visits() {
	if d.Visits == 0 {
		return
	}
	visits, atMost, extra := d.Visits/d.Outline.Blocks, "", plan.Reinstallations(d.Experiment)
	if len(d.Experiment.Design.Looks) > 1 {
		atMost = "at most "
	}
	d.Paragraph("", "", fmt.Sprintf("Each block visits %s in turn, each after its switch, which is taken to last %s: "+
		"%s%s in all.", unit.Plural(visits, "target"), secondsText(d.Block.Switches/float64(visits)/(1+extra)), atMost,
		unit.Plural(d.Visits, "visit")))
	if n := int(math.Round(extra * float64(d.Visits-visits))); n > 0 {
		d.Paragraph("", "", fmt.Sprintf("Where a block begins with the target that the block before ended with, another "+
			"target is put in place in between, so that no two blocks share an installation: about %s, which the "+
			"time counts.", unit.Plural(n, "further installation")))
	}
	for _, t := range d.Experiment.Targets {
		if t.Switch == nil {
			d.Paragraph("  ", "    ", t.Name+" has no switch: it is measured as the visit before its own leaves it.")
			continue
		}
		d.Paragraph("  ", "    ", t.Name+": "+t.Switch.Text)
	}
	if c := d.Experiment.Restore; c != nil {
		d.Paragraph("  ", "    ", "at the end: "+c.Text)
	} else {
		d.Paragraph("  ", "    ", "No command restores the testbed at the end.")
	}
}

// maxNodePairs is the number of pairs of nodes that are listed.
const maxNodePairs = 6

// rotation writes the pairs of nodes that the blocks use in turn.
func (d *planText) rotation() {
	for _, t := range d.Experiment.Targets {
		pairs := d.Rotation[t.Name]
		if len(pairs) == 0 {
			continue
		}
		d.Paragraph("", "  ",
			fmt.Sprintf("Blocks on %s take %d pairs of nodes in turn (client's, server's):", t.Name, len(pairs)))
		for i, n := range pairs[:min(maxNodePairs, len(pairs))] {
			d.Paragraph("  ", "    ", fmt.Sprintf("block %d: %s, %s", i+1, n.Client, n.Server))
		}
		if more := len(pairs) - maxNodePairs; more > 0 {
			d.Line(fmt.Sprintf("  and %d more", more))
		}
	}
}

// exampleNames name the example spreads of a plan without a forecast.
var exampleNames = []string{"quiet path", "usual path", "noisy path"}

// examples writes the detectable changes at the example spreads.
func (d *planText) examples() {
	design := d.Experiment.Design
	d.Paragraph("", "", fmt.Sprintf(
		"Primary comparisons: %d, which share alpha = %g. With a probability of %.0f %%, each of them shows a change of "+
			"at least",
		plan.Comparisons(d.Experiment), design.Alpha, 100*plan.Power))
	for i, v := range d.Detectable {
		if !v.Change.Known() {
			d.Line(fmt.Sprintf("  %s: none at all; these are too few blocks", exampleNames[i]))
			continue
		}
		d.Line(fmt.Sprintf("  %4.1f %%  on a %s (pairs of runs differ by %.1f %%)",
			100*v.Change, exampleNames[i], 100*v.Spread))
	}
	if len(design.Looks) > 1 {
		d.Paragraph("", "",
			fmt.Sprintf("and is decided, if the targets are alike or differ by %.3g %%, after about", 100*design.Delta))
		for i, v := range d.Detectable {
			d.Line(fmt.Sprintf("  %4.1f or %4.1f blocks on a %s", v.BlocksAlike, v.BlocksDifferent, exampleNames[i]))
		}
	}
	d.Paragraph("", "", "How much pairs of runs differ here is not known: --pilot measures it, --from takes it from "+
		"earlier results.")
}

// forecast writes a line for each primary comparison, and the conclusions.
func (d *planText) forecast() {
	f, design := d.Forecast, d.Experiment.Design
	d.Paragraph("", "", sourceText(f.Source))
	d.Line("")
	differ := fmt.Sprintf("%.3g %%", 100*design.Delta)
	shared := fmt.Sprintf("%d, which share alpha = %g", len(f.Comparisons), design.Alpha)
	d.Line(fmt.Sprintf("%-32s %8s %19s %9s %7s",
		"Primary comparisons:", "spread", "blocks expected if", "smallest", "minutes"))
	d.Line(fmt.Sprintf("%-32s %8s %9s %9s %9s %7s", shared, "of pairs", "alike", differ+" off", "change", "up to"))
	name := ""
	for _, c := range f.Comparisons {
		if head := c.Case + ", " + c.Metric; head != name {
			name = head
			d.Paragraph("", "  ", head)
		}
		d.prediction(c)
	}
	d.Line("")
	d.Paragraph("", "", fmt.Sprintf("\"Smallest change\" is what %d blocks show with a probability of %.0f %%.",
		design.Blocks, 100*plan.Power))
	if len(design.Looks) > 1 {
		d.Paragraph("", "", fmt.Sprintf("In all about %s if all targets are alike, %s if all differ by %s.",
			prose.Clock(f.SecondsAlike), prose.Clock(f.SecondsDifferent), differ))
	}
	d.budget()
	d.tooFewBlocks()
	d.longerRuns()
	for _, m := range f.Missing {
		d.Paragraph("", "", m)
	}
}

// prediction writes the line of a comparison, below its label if that is long.
func (d *planText) prediction(c plan.Prediction) {
	const most = 30
	label := prose.Plain(c.Target)
	if c.Baseline != d.Experiment.Baseline {
		label += " / " + prose.Plain(c.Baseline)
	}
	if prose.Width(label) > most {
		d.Paragraph("  ", "  ", label)
		label = ""
	}
	d.Line(fmt.Sprintf("  %s %8s %9s %9s %9s %7s",
		prose.Left(label, most), numberCell("%.1f %%", 100*c.Spread), numberCell("%.1f", c.BlocksAlike),
		numberCell("%.1f", c.BlocksDifferent), numberCell("%.1f %%", 100*c.Change), secondsCell(c)))
}

// sourceText names the source of the forecast, and how reliable it is.
func sourceText(s plan.Source) string {
	if s.Kind == "pilot" {
		return fmt.Sprintf("From a pilot of %d blocks, which took %s. So few tell a spread only roughly: in truth it may "+
			"well be from half to three times of what is shown.", s.Blocks, prose.Clock(s.Seconds))
	}
	return fmt.Sprintf("From the runs in %s, of which it is taken that they differed as much as those to come.",
		s.Directory)
}

// budget writes the number of blocks that the budget allows, and the change that they detect.
func (d *planText) budget() {
	f, budget := d.Forecast, d.Experiment.Design.Budget
	switch {
	case budget == 0:
		return
	case f.BudgetBlocks == 0:
		d.Line(fmt.Sprintf("The budget of %s does not pay for one block of all cases.", prose.Clock(budget)))
		return
	}
	largest, sees, blind := 0.0, 0, 0
	for _, c := range f.Comparisons {
		switch {
		case c.ChangeInBudget.Known():
			largest, sees = max(largest, float64(c.ChangeInBudget)), sees+1
		case c.Spread.Known():
			blind++
		}
	}
	text := fmt.Sprintf("The budget of %s pays for %d blocks of all cases", prose.Clock(budget), f.BudgetBlocks)
	shows := fmt.Sprintf(": with a probability of %.0f %% it shows a change of %.1f %% in ", 100*plan.Power, 100*largest)
	switch {
	case sees == 0:
		d.Paragraph("", "", text+", too few to decide anything.")
		return
	case blind == 0:
		text += shows + "every comparison."
	default:
		text += shows + fmt.Sprintf("%d comparisons, and nothing in %d.", sees, blind)
	}
	d.Paragraph("", "", text+" What cases that are decided early leave goes to the others.")
}

// tooFewBlocks writes the comparisons for which the blocks are too few to decide on delta, and what would suffice.
func (d *planText) tooFewBlocks() {
	design := d.Experiment.Design
	var missed []plan.Prediction
	for _, c := range d.Forecast.Comparisons {
		if c.Misses(design.Delta) {
			missed = append(missed, c)
		}
	}
	if len(missed) == 0 {
		return
	}
	d.Line("")
	d.Paragraph("", "", fmt.Sprintf("%d blocks are too few to decide with that probability on a delta of %.3g %%:",
		design.Blocks, 100*design.Delta))
	for _, c := range missed {
		d.Paragraph("  - ", "    ", fmt.Sprintf("%s, %s: it would take %s", c.Case, c.Target,
			strings.Join(waysToDecide(c, d.Forecast.LongerRuns), ", or ")))
	}
}

// longerRuns writes the effect of longer runs.
func (d *planText) longerRuns() {
	if len(d.Forecast.LongerRuns) == 0 {
		return
	}
	d.Line("")
	d.Line("How much pairs of runs differ, by the length of runs:")
	for _, l := range d.Forecast.LongerRuns {
		d.Paragraph("  - ", "    ", fmt.Sprintf("%s, %s: %s", l.Case, l.Metric, longerRunsText(l)))
	}
}

// longerRunsText describes the effect of longer runs on a case.
func longerRunsText(l plan.LongerRuns) string {
	if l.CI == nil {
		return "whether longer runs would differ less is not known: " + l.Lack
	}
	words := fmt.Sprintf("%.2g %% in runs of %.3g s, %.2g %% in runs of %.3g s; %.0f %% of the variance (%.0f to "+
		"%.0f %%) is within runs: ", 100*l.Spread, l.Seconds, 100*l.SpreadLonger, plan.LongerFactor*l.Seconds,
		100*l.Share, 100*l.CI.Lo, 100*l.CI.Hi)
	switch l.Advice() {
	case plan.AdviseLongerRuns:
		return words + "longer runs help"
	case plan.AdviseMoreBlocks:
		return words + "more blocks help, longer runs hardly"
	}
	return words + "too few blocks to tell whether longer runs help"
}

// waysToDecide returns the options that would decide a comparison for which the blocks are too few.
func waysToDecide(c plan.Prediction, longer []plan.LongerRuns) []string {
	var ways []string
	if c.BlocksEnough.Known() {
		ways = append(ways, fmt.Sprintf("--blocks %.0f", c.BlocksEnough))
	}
	if c.Change.Known() && c.Change < 1 {
		ways = append(ways, fmt.Sprintf("--delta %s%%", roundUp(100*float64(c.Change))))
	}
	less := "a longer --duration, a quieter machine"
	if slices.ContainsFunc(longer, func(l plan.LongerRuns) bool {
		return l.Case == c.Case && l.Advice() == plan.AdviseMoreBlocks
	}) {
		less = "a quieter machine"
	}
	return append(ways, "runs that differ less ("+less+")")
}

// roundUp formats a percentage with two digits, rounded up.
func roundUp(percent float64) string {
	scale := math.Pow(10, math.Floor(math.Log10(percent))-1)
	return fmt.Sprintf("%.3g", math.Ceil(percent/scale-1e-9)*scale)
}

// numberCell formats a number; "-" if it is missing.
func numberCell(format string, n compare.Number) string {
	if !n.Known() {
		return "-"
	}
	return fmt.Sprintf(format, n)
}

// secondsText formats seconds, with a decimal below 10 s.
func secondsText(seconds float64) string {
	if seconds < 10 {
		return fmt.Sprintf("%.1f s", seconds)
	}
	return fmt.Sprintf("%.0f s", seconds)
}

// secondsCell returns the longer of the two expected durations.
func secondsCell(c plan.Prediction) string {
	if !c.SecondsAlike.Known() {
		return "-"
	}
	return prose.Clock(float64(max(c.SecondsAlike, c.SecondsDifferent)))
}
