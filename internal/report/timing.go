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

// timing is what the wall time of an experiment was spent on; zero if there were no runs, or nothing pairs them.
type timing struct {
	First   time.Time
	Total   float64 // seconds from the first beginning of a site or run to the last end
	Share   float64 // of it in measuring windows
	Targets []spent // in the order of the plan
}

// spent is what a target's sites and runs took besides measuring. Numbers are medians, times are in seconds.
type spent struct {
	Target  string
	Sites   int     // that were closed
	Setup   float64 // of a site
	Cleanup float64 // of a site
	Runs    float64 // in a site
	Pods    float64 // of a site; 0 where there are none
	Calls   float64 // to an API server, of a site
	Outside float64 // the window of a run
}

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
		t.Share = measuring(in.Runs, in.Experiment.Design.Parallel) / t.Total
	}
	for _, target := range in.Experiment.Targets {
		if s, ok := spentOf(target.Name, in.Sites, in.Runs); ok {
			t.Targets = append(t.Targets, s)
		}
	}
	return t
}

// spentOf is what the sites of a target took, and its runs, valid or not; false if there are no runs.
func spentOf(target string, sites []result.Site, runs []result.Run) (spent, bool) {
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
		return spent{}, false
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
	return spent{
		Target: target, Sites: len(setup), Setup: typical(setup), Cleanup: typical(cleanup),
		Runs: typical(slices.Collect(maps.Values(inSite))), Pods: typical(pods), Calls: typical(calls),
		Outside: typical(outside),
	}, true
}

// typical is the median, 0 of no numbers.
func typical(x []float64) float64 {
	if len(x) == 0 {
		return 0
	}
	return stats.Median(x)
}

// measuring adds up the seconds in which runs measured. Of runs at the same time the longest counts.
func measuring(runs []result.Run, parallel bool) (total float64) {
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

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// Headline is how much of the time was measuring.
func (t timing) Headline() string {
	return fmt.Sprintf("%.0f %% of the %s from start to end were spent measuring.",
		t.Share*100, seconds(t.Total).Round(time.Second))
}

// sentences are the headline, and of each target what else the time was spent on; none of no time.
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

// Cells are a line of a table with the columns of spentColumns.
func (s spent) Cells() []string {
	outside := fmt.Sprintf("%.1f s", s.Outside)
	if s.Sites == 0 {
		return []string{"-", "-", "-", "-", "-", "-", outside}
	}
	return []string{
		strconv.Itoa(s.Sites), fmt.Sprintf("%.1f s", s.Setup), fmt.Sprintf("%.1f s", s.Cleanup), halves(s.Runs),
		orDash(s.Pods), orDash(s.Calls), outside,
	}
}

// orDash is a median of counts in a table.
func orDash(n float64) string {
	if n == 0 {
		return "-"
	}
	return halves(n)
}

// spentColumns are the heads of a table of what targets took.
var spentColumns = []string{
	"sites", "to make one", "to remove one", "runs in it", "its pods", "its API requests", "a run outside its window",
}

// Columns are the heads of the columns of Cells.
func (timing) Columns() []string { return spentColumns }

func (s spent) sentence() string {
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

// amount is a median of counts, which may have a half, with its noun.
func amount(n float64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return halves(n) + " " + noun + "s"
}

func halves(n float64) string { return strconv.FormatFloat(math.Round(n*2)/2, 'f', -1, 64) }
