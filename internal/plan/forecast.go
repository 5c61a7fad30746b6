package plan

import (
	"fmt"
	"slices"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/result"
)

// EarlierResults holds the results that were measured before an experiment, with the names of the experiment's targets.
type EarlierResults struct {
	Source  Source
	Results result.Results
}

// A Source is the origin of the spreads and durations of a forecast.
type Source struct {
	Kind      string  `json:"kind"`                // pilot or directory
	Directory string  `json:"directory,omitempty"` // of earlier results; empty for a pilot
	Blocks    int     `json:"blocks"`              // of its design
	Seconds   float64 `json:"seconds"`             // duration of a pilot; 0 for a directory
}

// Earlier returns the results of a results directory for the cases and targets of e. A target is matched by its spec,
// else by its name. It returns an error if there are none, or if they were imported, because these have no blocks.
func Earlier(dir string, earlier result.Results, e result.Experiment) (EarlierResults, error) {
	before := earlier.Experiment
	if before.Imported != "" {
		return EarlierResults{}, fmt.Errorf("%s holds numbers of another tool (%s), without blocks; how much pairs of runs "+
			"differ cannot be told from them", dir, before.Imported)
	}
	names := map[string]string{}
	for _, t := range before.Targets {
		i := slices.IndexFunc(e.Targets, func(x result.Target) bool { return x.Spec.Text == t.Spec.Text })
		if i < 0 {
			i = slices.IndexFunc(e.Targets, func(x result.Target) bool { return x.Name == t.Name })
		}
		if i >= 0 {
			names[t.Name] = e.Targets[i].Name
		}
	}
	k := EarlierResults{
		Source:  Source{Kind: "directory", Directory: dir, Blocks: before.Design.Blocks},
		Results: result.Results{Experiment: before},
	}
	for _, run := range earlier.Runs {
		planned := slices.ContainsFunc(e.Cases, func(c result.Case) bool { return c.Name == run.Case })
		if name, ok := names[run.Target]; ok && planned {
			run.Target = name
			k.Results.Runs = append(k.Results.Runs, run)
		}
	}
	for _, site := range earlier.Sites {
		if name, ok := names[site.Target]; ok {
			site.Target = name
			k.Results.Sites = append(k.Results.Sites, site)
		}
	}
	for _, s := range earlier.Switches {
		if name, ok := names[s.Target]; ok {
			s.Target = name
			k.Results.Switches = append(k.Results.Switches, s)
		}
	}
	if len(k.Results.Runs) == 0 {
		return EarlierResults{}, fmt.Errorf("%s has no run of any of these cases on any of these targets", dir)
	}
	return k, nil
}

// A Forecast predicts the duration and the verdicts of an experiment from earlier results.
type Forecast struct {
	Source      Source       `json:"source"`
	Comparisons []Prediction `json:"comparisons"` // the primary ones
	// The expected seconds if all targets are alike, and if all differ by delta.
	SecondsAlike     float64      `json:"seconds_alike"`
	SecondsDifferent float64      `json:"seconds_different"`
	BudgetBlocks     int          `json:"budget_blocks,omitempty"` // blocks of all cases within the budget; 0: none
	LongerRuns       []LongerRuns `json:"windows,omitempty"`       // of the primary cases whose runs have a series
	Missing          []string     `json:"missing"`                 // sentences about what is not known, and why
}

// A Prediction is the forecast of one primary comparison.
type Prediction struct {
	Case     string         `json:"case"`
	Metric   string         `json:"metric"`
	Target   string         `json:"target"`
	Baseline string         `json:"baseline"`
	Pairs    int            `json:"pairs"`  // of runs that the spread is estimated from
	Spread   compare.Number `json:"spread"` // standard deviation of a pair's log ratio; null: not known
	// The expected blocks and seconds of the case until the comparison has a verdict, if the targets are alike or
	// differ by delta.
	BlocksAlike      compare.Number `json:"blocks_alike"`
	BlocksDifferent  compare.Number `json:"blocks_different"`
	SecondsAlike     compare.Number `json:"seconds_alike"`
	SecondsDifferent compare.Number `json:"seconds_different"`
	// Change is the smallest change that is detected with a probability of 80 % at the last look, ChangeInBudget within
	// the blocks of the budget, as fractions.
	Change         compare.Number `json:"change"`
	ChangeInBudget compare.Number `json:"change_in_budget"`
	// BlocksEnough is the number of blocks, fixed beforehand, that detects delta with a probability of 80 %; null if
	// the planned ones do, or if it is more than MaxBlocks.
	BlocksEnough compare.Number `json:"blocks_enough"`

	alpha float64
}

// newForecast estimates the spreads from the known runs and predicts everything that follows from them.
func newForecast(e result.Experiment, d *Durations, p Outline, k EarlierResults, t verdictTest) (*Forecast, error) {
	rows, err := spreads(e, k)
	if err != nil {
		return nil, err
	}
	f := &Forecast{Source: k.Source, Comparisons: []Prediction{}, Missing: []string{}}
	blocks := map[string]float64{} // seconds of a block, by case
	all := p.Sites + p.Switches
	for _, c := range p.Cases {
		blocks[c.Name], all = c.Block, all+c.Block
	}
	if budget := e.Design.Budget; budget > 0 && all > 0 {
		f.BudgetBlocks = min(e.Design.Blocks, int(budget/all))
	}
	for _, r := range rows {
		f.Comparisons = append(f.Comparisons, t.predict(r, blocks[r.Case], f.BudgetBlocks))
		if !r.Spread.Known() {
			f.Missing = append(f.Missing, fmt.Sprintf("How much runs of %s differ between %s and %s is not known: %s.",
				r.Case, r.Baseline, r.Target, whyNoSpread(k, r)))
		}
	}
	f.LongerRuns = longerRuns(rows, k.Results.Runs)
	f.SecondsAlike = f.total(p, d, func(c Prediction) compare.Number { return c.BlocksAlike })
	f.SecondsDifferent = f.total(p, d, func(c Prediction) compare.Number { return c.BlocksDifferent })
	return f, nil
}

// whyNoSpread returns the reason why a row has no spread.
func whyNoSpread(k EarlierResults, r compare.Row) string {
	for _, n := range k.Results.Experiment.NotMeasured {
		if k.Source.Kind == "pilot" && n.Covers(r.Target, r.Case) {
			return n.Reason
		}
	}
	switch r.Blocks {
	case 0:
		return "there are no runs of both in the same blocks"
	case 1:
		return "there is one pair of runs only"
	}
	return noRatio
}

// spreads compares the known runs as the experiment would and returns the primary rows.
func spreads(e result.Experiment, k EarlierResults) ([]compare.Row, error) {
	e.Design.Looks, e.Gates = nil, nil
	for _, r := range k.Results.Runs {
		e.Design.Blocks = max(e.Design.Blocks, r.Block)
	}
	c, err := compare.Compare(result.Results{Experiment: e, Runs: k.Results.Runs})
	if err != nil {
		return nil, err
	}
	return c.Primary(), nil
}

// predict returns the forecast of one row. block is the predicted seconds of a block of its case; budget is the number
// of blocks within the budget, 0 if there is none.
func (t verdictTest) predict(r compare.Row, block float64, budget int) Prediction {
	missing := compare.Missing()
	p := Prediction{
		Case: r.Case, Metric: r.Metric, Target: r.Target, Baseline: r.Baseline,
		Pairs: r.Blocks, Spread: r.Spread, alpha: 1 - r.Level,
		BlocksAlike: missing, BlocksDifferent: missing, SecondsAlike: missing, SecondsDifferent: missing,
		Change: missing, ChangeInBudget: missing, BlocksEnough: missing,
	}
	if !r.Spread.Known() {
		return p
	}
	spread := float64(r.Spread)
	v := t.detectable(spread, p.alpha)
	p.Change, p.BlocksAlike, p.BlocksDifferent = v.Change, v.BlocksAlike, v.BlocksDifferent
	p.SecondsAlike, p.SecondsDifferent = v.BlocksAlike*compare.Number(block), v.BlocksDifferent*compare.Number(block)
	if budget > 0 {
		p.ChangeInBudget = t.change(spread, p.alpha, budget)
	}
	if n := t.sufficientBlocks(spread, p.alpha); n > 0 && p.Misses(t.design.Delta) {
		p.BlocksEnough = compare.Number(n)
	}
	return p
}

// Misses reports whether the planned blocks detect delta with a probability of less than 80 %.
func (p Prediction) Misses(delta float64) bool {
	return p.Spread.Known() && !(float64(p.Change) <= delta)
}

// total returns the seconds of all cases. A primary case continues until the last of its comparisons is decided, a
// bound as long as a case that it bounds, other cases as long as any primary one. Comparisons without a forecast need
// all blocks.
func (f *Forecast) total(p Outline, d *Durations, of func(Prediction) compare.Number) float64 {
	blocks := map[string]float64{}
	longest := 0.0
	for _, c := range f.Comparisons {
		n := float64(p.Blocks)
		if of(c).Known() {
			n = float64(of(c))
		}
		blocks[c.Case], longest = max(blocks[c.Case], n), max(longest, n)
	}
	blocksOf := func(c Case) float64 {
		if n, known := blocks[c.Name]; known {
			return n
		}
		return longest
	}
	bounded := map[string]float64{} // most blocks of the cases that a case bounds
	for _, c := range p.Cases {
		if c.Role != result.Bound {
			bounded[c.Bound] = max(bounded[c.Bound], blocksOf(c))
		}
	}
	total, all := 0.0, map[string]float64{}
	for _, c := range p.Cases {
		n := blocksOf(c)
		if own, is := bounded[c.Name]; is && c.Role == result.Bound {
			n = own
		}
		total, all[c.Name] = total+n*c.Block, n
	}
	return total + d.Sites(all) + d.Switches(all)
}
