package cli

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/prose"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/runner"
	"github.com/knotmeter/knotmeter/internal/store"
)

// known is what was measured before an experiment: its runs, under the names that the experiment has.
type known struct {
	source   source
	runs     result.Results
	estimate runner.Estimate // nil: not known
}

// A source is where the spread and the duration of runs are from.
type source struct {
	Kind      string  `json:"kind"`                // pilot or directory
	Directory string  `json:"directory,omitempty"` //
	Blocks    int     `json:"blocks"`              // of the design there
	Seconds   float64 `json:"seconds"`             // that a pilot took; 0 of a directory
}

// earlier reads what a results directory knows of the cases and targets of e. A target is matched by
// its text, and else by its name.
func earlier(dir string, e result.Experiment) (known, error) {
	r, err := store.Open(dir)
	if err != nil {
		return known{}, fmt.Errorf("--from: %w", err)
	}
	if r.Experiment.Imported != "" {
		return known{}, fmt.Errorf("--from: %s holds numbers of another tool (%s), without blocks; how much pairs of runs differ can not be told from them", dir, r.Experiment.Imported)
	}
	names := map[string]string{}
	for _, t := range r.Experiment.Targets {
		i := slices.IndexFunc(e.Targets, func(x result.Target) bool { return x.Spec == t.Spec })
		if i < 0 {
			i = slices.IndexFunc(e.Targets, func(x result.Target) bool { return x.Name == t.Name })
		}
		if i >= 0 {
			names[t.Name] = e.Targets[i].Name
		}
	}
	k := known{source: source{Kind: "directory", Directory: dir, Blocks: r.Experiment.Design.Blocks}, runs: result.Results{Experiment: r.Experiment}}
	for _, run := range r.Runs {
		planned := slices.ContainsFunc(e.Cases, func(c result.Case) bool { return c.Name == run.Case })
		if name, ok := names[run.Target]; ok && planned {
			run.Target = name
			k.runs.Runs = append(k.runs.Runs, run)
		}
	}
	if len(k.runs.Runs) == 0 {
		return known{}, fmt.Errorf("--from: %s has no run of any of these cases on any of these targets", dir)
	}
	k.estimate = runner.EstimateFrom(e.Design, k.runs)
	return k, nil
}

// pilotBlocks are enough for a first idea of the spread, and cheap.
const pilotBlocks = 4

// pilot measures the primary cases of an experiment in a few blocks. Nothing is written: the runs
// are kept in memory, and what they say of the targets is not looked at, only how much they spread.
func pilot(ctx context.Context, c runner.Config) (known, error) {
	e := c.Experiment
	p := e
	p.Design.Blocks, p.Design.Looks, p.Design.Budget, p.Gates = pilotBlocks, nil, 0, nil
	p.Cases = nil
	for _, rc := range e.Cases {
		if rc.Role == result.Primary {
			rc.Bound = ""
			p.Cases = append(p.Cases, rc)
		}
	}
	if primaries(p) == 0 {
		return known{}, errors.New("--pilot: there is nothing to decide: no primary case has two targets")
	}
	var m memory
	c.Experiment, c.Sink, c.Decide = p, &m, nil
	summary, err := runner.Run(ctx, c)
	switch {
	case err != nil:
		return known{}, &statusError{statusRunFailed, fmt.Errorf("--pilot: %w", err)}
	case summary.Stopped == runner.StopInterrupted:
		return known{}, &statusError{statusInterrupted, errors.New("interrupted; nothing is kept of a pilot")}
	case summary.Stopped == runner.StopUnavailable:
		return known{}, &statusError{statusRunFailed, fmt.Errorf("--pilot: %s", summary.Unavailable)}
	case summary.Runs == 0:
		return known{}, &statusError{statusRunFailed, fmt.Errorf("--pilot: no run succeeded: %s", m.why(summary))}
	}
	p.NotMeasured = summary.NotMeasured
	k := known{source: source{Kind: "pilot", Blocks: pilotBlocks, Seconds: summary.Total}, runs: result.Results{Experiment: p, Runs: m.runs}}
	k.estimate = runner.EstimateFrom(e.Design, k.runs)
	return k, nil
}

// A memory is a sink that keeps the runs until the program ends.
type memory struct{ runs []result.Run }

func (m *memory) WriteFacts(string, []result.Fact) error    { return nil }
func (m *memory) WriteSession(result.Session) error         { return nil }
func (m *memory) WriteNotMeasured(result.NotMeasured) error { return nil }
func (m *memory) Append(r result.Run, _ []result.File) error {
	r.Series, r.Histograms = nil, nil
	m.runs = append(m.runs, r)
	return nil
}

// why says what stood in the way.
func (m *memory) why(s runner.Summary) string {
	if len(s.NotMeasured) > 0 {
		return s.NotMeasured[len(s.NotMeasured)-1].Reason
	}
	return "there is nothing to measure"
}

// A forecast is what an experiment is expected to take and to show, by what was measured before.
type forecast struct {
	Source      source       `json:"source"`
	Comparisons []prediction `json:"comparisons"` // the primary ones
	// The seconds that it is expected to take if all targets are alike, and if all differ by delta.
	SecondsAlike     float64  `json:"seconds_alike"`
	SecondsDifferent float64  `json:"seconds_different"`
	BudgetBlocks     int      `json:"budget_blocks,omitempty"` // blocks of all cases that the budget pays for; 0: there is no budget
	Missing          []string `json:"missing"`                 // what is not known, and why; sentences
}

// A prediction is about one primary comparison.
type prediction struct {
	Case     string         `json:"case"`
	Metric   string         `json:"metric"`
	Target   string         `json:"target"`
	Baseline string         `json:"baseline"`
	Pairs    int            `json:"pairs"`  // that the spread is from
	Spread   compare.Number `json:"spread"` // standard deviation of a pair's log ratio; null, like all that follows from it: not known
	// The expected blocks and seconds of the case until the comparison has a verdict.
	BlocksAlike      compare.Number `json:"blocks_alike"`
	BlocksDifferent  compare.Number `json:"blocks_different"`
	SecondsAlike     compare.Number `json:"seconds_alike"`
	SecondsDifferent compare.Number `json:"seconds_different"`
	// Change is the smallest that is shown with a probability of 80 % at the last look, ChangeInBudget
	// by the blocks that the budget pays for, as fractions.
	Change         compare.Number `json:"change"`
	ChangeInBudget compare.Number `json:"change_in_budget"`
	// BlocksEnough is the number of blocks, fixed beforehand, that shows delta with a probability of
	// 80 %; null where the planned ones do, and where no number that can be planned does.
	BlocksEnough compare.Number `json:"blocks_enough"`

	alpha float64
}

// newForecast reads the spreads from the runs and predicts everything that follows from them.
func newForecast(e result.Experiment, p runner.Plan, k known, t test) (*forecast, error) {
	rows, err := spreads(e, k)
	if err != nil {
		return nil, err
	}
	f := &forecast{Source: k.source, Comparisons: []prediction{}, Missing: []string{}}
	blocks := map[string]float64{} // seconds that a block takes, by case
	all := 0.0
	for _, c := range p.Cases {
		blocks[c.Name], all = c.Block, all+c.Block
	}
	if budget := e.Design.Budget; budget > 0 && all > 0 {
		f.BudgetBlocks = min(e.Design.Blocks, int(budget/all))
	}
	for _, r := range rows {
		f.Comparisons = append(f.Comparisons, t.predict(r, blocks[r.Case], f.BudgetBlocks))
		if !r.Spread.Known() {
			f.Missing = append(f.Missing, fmt.Sprintf("How much runs of %s differ between %s and %s is not known: %s.", r.Case, r.Baseline, r.Target, lack(k, r)))
		}
	}
	f.SecondsAlike = f.total(p, func(c prediction) compare.Number { return c.BlocksAlike })
	f.SecondsDifferent = f.total(p, func(c prediction) compare.Number { return c.BlocksDifferent })
	return f, nil
}

// lack says why a row has no spread.
func lack(k known, r compare.Row) string {
	for _, n := range k.runs.Experiment.NotMeasured {
		if k.source.Kind == "pilot" && n.Covers(r.Target, r.Case) {
			return n.Reason
		}
	}
	if r.Blocks == 1 {
		return "there is one pair of runs only"
	}
	return "there are no runs of both in the same blocks"
}

// spreads compares the runs that are known as the experiment would, for its primary rows.
func spreads(e result.Experiment, k known) ([]compare.Row, error) {
	e.Design.Looks, e.Gates = nil, nil
	for _, r := range k.runs.Runs {
		e.Design.Blocks = max(e.Design.Blocks, r.Block)
	}
	c, err := compare.Compare(e, k.runs.Runs, nil)
	if err != nil {
		return nil, err
	}
	return c.Primary(), nil
}

// predict is about one row, of a case of which a block takes so many seconds.
func (t test) predict(r compare.Row, block float64, budget int) prediction {
	missing := compare.Missing()
	p := prediction{
		Case: r.Case, Metric: r.Metric, Target: r.Target, Baseline: r.Baseline, Pairs: r.Blocks, Spread: r.Spread, alpha: 1 - r.Level,
		BlocksAlike: missing, BlocksDifferent: missing, SecondsAlike: missing, SecondsDifferent: missing,
		Change: missing, ChangeInBudget: missing, BlocksEnough: missing,
	}
	if !r.Spread.Known() {
		return p
	}
	spread := float64(r.Spread)
	v := t.at(spread, p.alpha)
	p.Change, p.BlocksAlike, p.BlocksDifferent = v.Change, v.BlocksAlike, v.BlocksDifferent
	p.SecondsAlike, p.SecondsDifferent = v.BlocksAlike*compare.Number(block), v.BlocksDifferent*compare.Number(block)
	if budget > 0 {
		p.ChangeInBudget = t.change(spread, p.alpha, budget)
	}
	if n := t.enough(spread, p.alpha); n > 0 && t.misses(p) {
		p.BlocksEnough = compare.Number(n)
	}
	return p
}

// misses says whether the planned blocks do not show delta with a probability of 80 %.
func (t test) misses(p prediction) bool {
	return p.Spread.Known() && !(float64(p.Change) <= t.design.Delta)
}

// total adds up the seconds of all cases. A primary case goes on until the last of its comparisons is
// decided, a bound as long as a case that it bounds, the others as long as any primary. What is not
// known takes all blocks.
func (f *forecast) total(p runner.Plan, of func(prediction) compare.Number) float64 {
	blocks := map[string]float64{}
	longest := 0.0
	for _, c := range f.Comparisons {
		n := of(c)
		if !n.Known() {
			n = compare.Number(p.Blocks)
		}
		blocks[c.Case] = max(blocks[c.Case], float64(n))
		longest = max(longest, float64(n))
	}
	bound := map[string]float64{}
	for _, c := range p.Cases {
		n, primary := blocks[c.Name]
		if !primary {
			n = longest
		}
		if c.Role != result.Bound {
			bound[c.Bound] = max(bound[c.Bound], n)
		}
	}
	total := 0.0
	for _, c := range p.Cases {
		n := longest
		if own, primary := blocks[c.Name]; primary {
			n = own
		} else if own, ok := bound[c.Name]; ok && c.Role == result.Bound {
			n = own
		}
		total += n * c.Block
	}
	return total
}

// printForecast writes a line for each primary comparison, and what follows.
func (d *planDocument) printForecast(p *prose.Page) {
	f, design := d.Forecast, d.Experiment.Design
	p.Paragraph("", "", f.Source.String())
	p.Line("")
	differ := fmt.Sprintf("%.3g %%", 100*design.Delta)
	shared := fmt.Sprintf("%d, which share alpha = %g", len(f.Comparisons), design.Alpha)
	p.Line(fmt.Sprintf("%-32s %8s %19s %9s %7s", "Primary comparisons:", "spread", "blocks expected if", "smallest", "minutes"))
	p.Line(fmt.Sprintf("%-32s %8s %9s %9s %9s %7s", shared, "of pairs", "alike", differ+" off", "change", "up to"))
	name := ""
	for _, c := range f.Comparisons {
		if head := c.Case + ", " + c.Metric; head != name {
			name = head
			p.Paragraph("", "  ", head)
		}
		d.printPrediction(p, c)
	}
	p.Line("")
	p.Paragraph("", "", fmt.Sprintf("\"Smallest change\" is what %d blocks show with a probability of %.0f %%.",
		design.Blocks, 100*power))
	if len(design.Looks) > 1 {
		p.Paragraph("", "", fmt.Sprintf("In all about %s if all targets are alike, %s if all differ by %s.",
			clock(f.SecondsAlike), clock(f.SecondsDifferent), differ))
	}
	d.printBudget(p)
	d.printMisses(p)
	for _, m := range f.Missing {
		p.Paragraph("", "", m)
	}
}

// printPrediction writes the line of a comparison, below its label where that is long.
func (d *planDocument) printPrediction(p *prose.Page, c prediction) {
	const most = 30
	label := prose.Plain(c.Target)
	if c.Baseline != d.Experiment.Baseline {
		label += " / " + prose.Plain(c.Baseline)
	}
	if prose.Width(label) > most {
		p.Paragraph("  ", "  ", label)
		label = ""
	}
	p.Line(fmt.Sprintf("  %s %8s %9s %9s %9s %7s", prose.Left(label, most), percentCell(c.Spread), blocksCell(c.BlocksAlike),
		blocksCell(c.BlocksDifferent), percentCell(c.Change), secondsCell(c)))
}

// String says where the figures are from, and how far to trust them.
func (s source) String() string {
	if s.Kind == "pilot" {
		return fmt.Sprintf("From a pilot of %d blocks, which took %s. So few tell a spread only roughly: in truth it may well be "+
			"from half to three times of what is shown.", s.Blocks, clock(s.Seconds))
	}
	return fmt.Sprintf("From the runs in %s, of which it is taken that they differed as much as those to come.", s.Directory)
}

func (d *planDocument) printBudget(p *prose.Page) {
	f, budget := d.Forecast, d.Experiment.Design.Budget
	switch {
	case budget == 0:
		return
	case f.BudgetBlocks == 0:
		p.Line(fmt.Sprintf("The budget of %s does not pay for one block of all cases.", clock(budget)))
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
	text := fmt.Sprintf("The budget of %s pays for %d blocks of all cases", clock(budget), f.BudgetBlocks)
	shows := fmt.Sprintf(": with a probability of %.0f %% it shows a change of %.1f %% in ", 100*power, 100*largest)
	switch {
	case sees == 0:
		p.Paragraph("", "", text+", too few to decide anything.")
		return
	case blind == 0:
		text += shows + "every comparison."
	default:
		text += shows + fmt.Sprintf("%d comparisons, and nothing in %d.", sees, blind)
	}
	p.Paragraph("", "", text+" What cases that are decided early leave goes to the others.")
}

// printMisses says for which comparisons delta is too fine, and what would do.
func (d *planDocument) printMisses(p *prose.Page) {
	design := d.Experiment.Design
	t := test{design: design}
	var missed []prediction
	for _, c := range d.Forecast.Comparisons {
		if t.misses(c) {
			missed = append(missed, c)
		}
	}
	if len(missed) == 0 {
		return
	}
	p.Line("")
	p.Paragraph("", "", fmt.Sprintf("%d blocks are too few to decide with that probability on a delta of %.3g %%:",
		design.Blocks, 100*design.Delta))
	for _, c := range missed {
		p.Paragraph("  - ", "    ", fmt.Sprintf("%s, %s: it would take %s", c.Case, c.Target, strings.Join(c.ways(), ", or ")))
	}
}

// ways are what would decide a comparison for which delta is too fine.
func (c prediction) ways() []string {
	var ways []string
	if c.BlocksEnough.Known() {
		ways = append(ways, fmt.Sprintf("--blocks %.0f", c.BlocksEnough))
	}
	if c.Change.Known() && c.Change < 1 {
		ways = append(ways, fmt.Sprintf("--delta %s%%", upTo(100*float64(c.Change))))
	}
	return append(ways, "runs that differ less (a longer --duration, a quieter machine)")
}

// upTo writes a percentage with two digits, rounded up.
func upTo(percent float64) string {
	scale := math.Pow(10, math.Floor(math.Log10(percent))-1)
	return fmt.Sprintf("%.3g", math.Ceil(percent/scale-1e-9)*scale)
}

func percentCell(n compare.Number) string {
	if !n.Known() {
		return "-"
	}
	return fmt.Sprintf("%.1f %%", 100*n)
}

func blocksCell(n compare.Number) string {
	if !n.Known() {
		return "-"
	}
	return fmt.Sprintf("%.1f", n)
}

// secondsCell is the longer of the two expectations.
func secondsCell(c prediction) string {
	if !c.SecondsAlike.Known() {
		return "-"
	}
	return clock(float64(max(c.SecondsAlike, c.SecondsDifferent)))
}
