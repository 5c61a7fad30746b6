package report

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/prose"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/stats"
)

// timing holds how the wall time of an experiment was spent; zero without runs, and for unpaired comparisons.
type timing struct {
	First   time.Time
	Total   float64    // seconds from the first start of a site or run to the last end
	Share   float64    // share of Total spent measuring, from 0 to 1
	Targets []overhead // in the order of the experiment
}

// overhead holds what the sites and runs of a target took in addition to measuring. Numbers are medians, times are in
// seconds.
type overhead struct {
	Target  string
	Sites   int     // number of closed sites
	Setup   float64 // time to make a site
	Cleanup float64 // time to remove a site
	Runs    float64 // number in a site
	Pods    float64 // number in a site; 0 if there are none
	Calls   float64 // API requests of a site
	Outside float64 // time of a run outside its window
}

// timingOf returns the timing of an input.
func timingOf(in Input) timing {
	if len(in.Runs) == 0 || !in.Comparison.Paired {
		return timing{}
	}
	first, last := in.Runs[0].Start, in.Runs[0].Start
	cover := func(start, end time.Time) {
		if start.Before(first) {
			first = start
		}
		if end.After(last) {
			last = end
		}
	}
	for _, r := range in.Runs {
		cover(r.Start, r.End())
	}
	for _, s := range in.Sites {
		cover(s.Start, s.End())
	}
	t := timing{First: first, Total: last.Sub(first).Seconds()}
	if t.Total > 0 {
		t.Share = measuringSeconds(in.Runs, in.Experiment.Design.Parallel) / t.Total
	}
	for _, target := range in.Experiment.Targets {
		if s, ok := overheadOf(target.Name, in.Sites, in.Runs); ok {
			t.Targets = append(t.Targets, s)
		}
	}
	return t
}

// overheadOf returns the overhead of a target, from its sites and its runs, valid or not; false if there are no runs.
func overheadOf(target string, sites []result.Site, runs []result.Run) (overhead, bool) {
	var outside, setup, cleanup, pods, calls []float64
	inSite := map[int]float64{}
	for _, r := range runs {
		if r.Target != target {
			continue
		}
		outside = append(outside, r.Setup+r.Cleanup)
		if r.Site > 0 {
			inSite[r.Site]++
		}
	}
	if len(outside) == 0 {
		return overhead{}, false
	}
	for _, s := range sites {
		if s.Target != target {
			continue
		}
		setup, cleanup = append(setup, s.Setup), append(cleanup, s.Cleanup)
		if v, ok := s.Value(metric.Pods); ok {
			pods = append(pods, v.Number)
		}
		if v, ok := s.Value(metric.APICalls); ok {
			calls = append(calls, v.Number)
		}
	}
	return overhead{
		Target: target, Sites: len(setup), Setup: medianOrZero(setup), Cleanup: medianOrZero(cleanup),
		Runs: medianOrZero(slices.Collect(maps.Values(inSite))), Pods: medianOrZero(pods), Calls: medianOrZero(calls),
		Outside: medianOrZero(outside),
	}, true
}

// medianOrZero returns the median; 0 for no numbers.
func medianOrZero(x []float64) float64 {
	if len(x) == 0 {
		return 0
	}
	return stats.Median(x)
}

// measuringSeconds returns the total time of measuring. Of parallel runs only the longest counts.
func measuringSeconds(runs []result.Run, parallel bool) (total float64) {
	type attempt struct {
		name          string
		block, number int
	}
	longest := map[attempt]float64{}
	for _, r := range runs {
		if !parallel {
			total += r.Window
			continue
		}
		at := attempt{r.Case, r.Block, r.Attempt}
		if more := r.Window - longest[at]; more > 0 {
			total += more
			longest[at] = r.Window
		}
	}
	return total
}

// seconds converts seconds to a duration.
func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// Headline returns the share of the time that was spent measuring, as a sentence.
func (t timing) Headline() string {
	return fmt.Sprintf("%.0f %% of the %s from start to end were spent measuring.",
		t.Share*100, seconds(t.Total).Round(time.Second))
}

// sentences returns the headline, and the overhead of each target; nil without a total time.
func (t timing) sentences() []string {
	if t.Total <= 0 {
		return nil
	}
	list := []string{t.Headline()}
	for _, s := range t.Targets {
		list = append(list, s.sentence())
	}
	return list
}

// Cells returns a row of the table with the columns of overheadColumns.
func (s overhead) Cells() []string {
	outside := fmt.Sprintf("%.1f s", s.Outside)
	if s.Sites == 0 {
		return []string{"-", "-", "-", "-", "-", "-", outside}
	}
	return []string{
		strconv.Itoa(s.Sites), fmt.Sprintf("%.1f s", s.Setup), fmt.Sprintf("%.1f s", s.Cleanup), formatHalves(s.Runs),
		orDash(s.Pods), orDash(s.Calls), outside,
	}
}

// orDash formats a median of counts; "-" for 0.
func orDash(n float64) string {
	if n == 0 {
		return "-"
	}
	return formatHalves(n)
}

// overheadColumns are the headings of the table of overheads.
var overheadColumns = []string{
	"sites", "to make one", "to remove one", "runs in it", "its pods", "its API requests", "a run outside its window",
}

// Columns returns the headings of Cells.
func (timing) Columns() []string { return overheadColumns }

// sentence returns the overhead of a target as a sentence.
func (s overhead) sentence() string {
	run := fmt.Sprintf("a run took %.1f s outside its window (medians).", s.Outside)
	if s.Sites == 0 {
		return s.Target + ": " + run
	}
	took := []string{fmt.Sprintf("%.1f s to make", s.Setup), fmt.Sprintf("%.1f s to remove", s.Cleanup)}
	if s.Pods > 0 {
		took = append(took, amount(s.Pods, "pod"))
	}
	if s.Calls > 0 {
		took = append(took, amount(s.Calls, "API request"))
	}
	return fmt.Sprintf("%s: a site took %s, for %s; %s", s.Target, prose.Enumerate(took), amount(s.Runs, "run"), run)
}

// amount formats a median of counts, which may be a half, with its noun.
func amount(n float64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return formatHalves(n) + " " + noun + "s"
}

// formatHalves formats a number rounded to halves.
func formatHalves(n float64) string { return strconv.FormatFloat(math.Round(n*2)/2, 'f', -1, 64) }
