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

// tolerance is the largest accepted effect on a run, as a fraction, of earlier runs in its site.
const tolerance = 0.01

// benchPosition estimates, from results directories, the effect of a run's position within its site: it compares runs
// of a case and target in the later half of their sites with those in the earlier half, and runs directly after another
// case with the rest. The order of cases is random, so that both groups are alike without an effect.
func benchPosition(_ context.Context, args []string) error {
	set := flag.NewFlagSet("position", flag.ContinueOnError)
	if err := set.Parse(args); err != nil {
		return err
	}
	if set.NArg() == 0 {
		return errors.New("name at least one results directory")
	}
	values := map[series][]placedValue{}
	for _, dir := range set.Args() {
		r, err := store.Open(dir)
		if err != nil {
			return err
		}
		collect(values, dir, r)
	}
	return writeEffects(os.Stdout, effects(values))
}

// A series identifies the runs of a case on a target of one experiment.
type series struct{ dir, name, target string }

// A placedValue is a value of a series with its position.
type placedValue struct {
	log      float64 // logarithm of the value of the case's metric
	position float64 // within the site, from 0 for the first run to 1 for the last
	after    string  // case of the run before it in the site; empty: none
}

// laterHalf is the effect of the later half of a site; other effects are "after CASE".
const laterHalf = "later half"

// hasEffect reports whether the value is subject to an effect.
func (p placedValue) hasEffect(effect string) bool {
	return effect == laterHalf && p.position > 0.5 || effect == "after "+p.after
}

// collect adds the valid runs of sites with more than one run to values.
func collect(values map[series][]placedValue, dir string, r *store.Results) {
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
			v, found := run.Value(metrics[run.Case])
			if !run.Valid() || !found || v.Number <= 0 || len(runs) < 2 {
				continue
			}
			p := placedValue{log: math.Log(v.Number), position: float64(i) / float64(len(runs)-1)}
			if i > 0 {
				p.after = runs[i-1].Case
			}
			key := series{dir, run.Case, run.Target}
			values[key] = append(values[key], p)
		}
	}
}

// An effect is the change of a case's metric that a position causes.
type effect struct {
	name     string         // laterHalf or "after CASE"
	on       string         // case
	with     int            // runs with the effect
	estimate stats.Estimate // of the change, as a logarithm
}

// exceedsTolerance reports whether the whole interval is beyond the tolerance.
func (e effect) exceedsTolerance() bool {
	return e.estimate.Lo > math.Log1p(tolerance) || e.estimate.Hi < math.Log1p(-tolerance)
}

// effects estimates the effects on each case from all of its series, each centred on its median. The intervals hold
// simultaneously with 95 % confidence.
func effects(values map[series][]placedValue) []effect {
	byCase := map[string][]placedValue{}
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
		names := map[string]bool{laterHalf: true}
		for _, p := range all {
			if p.after != "" {
				names["after "+p.after] = true
			}
		}
		for effectName := range names {
			list = append(list, effect{name: effectName, on: name})
		}
	}
	for i := range list {
		e := &list[i]
		var with, without []float64
		for _, p := range byCase[e.on] {
			if p.hasEffect(e.name) {
				with = append(with, p.log)
			} else {
				without = append(without, p.log)
			}
		}
		e.with, e.estimate = len(with), stats.Unpaired(with, without, 0.05/float64(len(list)))
	}
	slices.SortFunc(list, func(a, b effect) int {
		return slices.Compare([]string{a.on, b.name}, []string{b.on, a.name}) // laterHalf first
	})
	return list
}

// writeEffects prints the effects. It returns an error if one exceeds the tolerance.
func writeEffects(out io.Writer, list []effect) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "case\teffect of\truns\tchange\tinterval")
	bad := 0
	for _, e := range list {
		mark := ""
		if e.exceedsTolerance() {
			bad++
			mark = "  above 1 %"
		}
		percent := func(log float64) float64 { return 100 * math.Expm1(log) }
		fmt.Fprintf(table, "%s\t%s\t%d\t%+.1f %%\t[%+.1f, %+.1f] %%%s\n", e.on, e.name, e.with,
			percent(e.estimate.Shift), percent(e.estimate.Lo), percent(e.estimate.Hi), mark)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if bad > 0 {
		return fmt.Errorf("%d effects are above %g %%", bad, 100*tolerance)
	}
	return nil
}
