package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"text/tabwriter"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/stats"
	"github.com/knotmeter/knotmeter/internal/store"
)

// tolerated is the largest effect, as a fraction, that what was measured before in a site may have on a run.
const tolerated = 0.01

// benchPosition says from results directories what effect the position of a run within its site has: the runs of a case
// and target in the later half of their sites against those in the earlier half, and those that directly follow one
// other case against the rest. Cases come in random order, so that without an effect the two are alike.
func benchPosition(_ context.Context, args []string) error {
	set := flag.NewFlagSet("position", flag.ContinueOnError)
	if err := set.Parse(args); err != nil {
		return err
	}
	if set.NArg() == 0 {
		return errors.New("name at least one results directory")
	}
	values := map[series][]placed{}
	for _, dir := range set.Args() {
		r, err := store.Open(dir)
		if err != nil {
			return err
		}
		collect(values, dir, r)
	}
	return writeEffects(os.Stdout, effects(values))
}

// A series is the runs of a case on a target of one experiment.
type series struct{ dir, name, target string }

// A placed value is one of a series.
type placed struct {
	log      float64 // of the case's metric
	position float64 // within the site, from 0 for the first run to 1 for the last
	after    string  // the case that was measured before it in the site; empty: none
}

// laterHalf is the effect of what a site has behind it; others are "after CASE".
const laterHalf = "later half"

// has says whether a value is one with the effect.
func (p placed) has(effect string) bool {
	return effect == laterHalf && p.position > 0.5 || effect == "after "+p.after
}

// collect takes the valid runs of sites with more than one.
func collect(values map[series][]placed, dir string, r *store.Results) {
	metrics := map[string]string{}
	for _, c := range r.Experiment.Cases {
		metrics[c.Name] = c.Metric
	}
	bySite := map[int][]result.Run{}
	for _, run := range r.Runs {
		if run.Site > 0 {
			bySite[run.Site] = append(bySite[run.Site], run)
		}
	}
	for _, runs := range bySite {
		slices.SortFunc(runs, func(a, b result.Run) int { return a.Start.Compare(b.Start) })
		for i, run := range runs {
			v, has := run.Value(metrics[run.Case])
			if !run.Valid() || !has || v.Number <= 0 || len(runs) < 2 {
				continue
			}
			p := placed{log: math.Log(v.Number), position: float64(i) / float64(len(runs)-1)}
			if i > 0 {
				p.after = runs[i-1].Case
			}
			key := series{dir, run.Case, run.Target}
			values[key] = append(values[key], p)
		}
	}
}

// An effect is what something does to a case: the change of its metric, as a fraction, with an interval.
type effect struct {
	of, on   string // the case is the second
	with     int    // runs with it
	estimate stats.Estimate
}

// excluded says whether the interval has no change that is tolerated.
func (e effect) excluded() bool {
	return e.estimate.Lo > math.Log1p(tolerated) || e.estimate.Hi < math.Log1p(-tolerated)
}

// effects compares the runs of each case, of all series, each centred on its own median. The intervals hold together
// with 95 % confidence.
func effects(values map[series][]placed) []effect {
	byCase := map[string][]placed{}
	for key, all := range values {
		logs := make([]float64, len(all))
		for i, p := range all {
			logs[i] = p.log
		}
		median := stats.Median(logs)
		for _, p := range all {
			p.log -= median
			byCase[key.name] = append(byCase[key.name], p)
		}
	}
	var list []effect
	for name, all := range byCase {
		of := map[string]bool{laterHalf: true}
		for _, p := range all {
			if p.after != "" {
				of["after "+p.after] = true
			}
		}
		for what := range of {
			list = append(list, effect{of: what, on: name})
		}
	}
	for i := range list {
		e := &list[i]
		var with, without []float64
		for _, p := range byCase[e.on] {
			if p.has(e.of) {
				with = append(with, p.log)
			} else {
				without = append(without, p.log)
			}
		}
		e.with, e.estimate = len(with), stats.Unpaired(with, without, 0.05/float64(len(list)))
	}
	slices.SortFunc(list, func(a, b effect) int {
		return slices.Compare([]string{a.on, b.of}, []string{b.on, a.of}) // the later half first
	})
	return list
}

// writeEffects prints the effects; one above what is tolerated is an error.
func writeEffects(out io.Writer, list []effect) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "case\teffect of\truns\tchange\tinterval")
	bad := 0
	for _, e := range list {
		mark := ""
		if e.excluded() {
			bad++
			mark = "  above 1 %"
		}
		percent := func(log float64) float64 { return 100 * math.Expm1(log) }
		fmt.Fprintf(table, "%s\t%s\t%d\t%+.1f %%\t[%+.1f, %+.1f] %%%s\n", e.on, e.of, e.with,
			percent(e.estimate.Shift), percent(e.estimate.Lo), percent(e.estimate.Hi), mark)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if bad > 0 {
		return fmt.Errorf("%d effects are above %g %%", bad, 100*tolerated)
	}
	return nil
}
