package compare

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/stats"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// percent formats a fraction without sign, with one decimal, or more if that would be 0.
func percent(fraction float64) string {
	p := math.Abs(fraction) * 100
	if p >= 0.095 || p == 0 {
		return strconv.FormatFloat(p, 'f', 1, 64) + " %"
	}
	return strconv.FormatFloat(p, 'g', 2, 64) + " %"
}

// signed formats a fraction as percent does, with a sign.
func signed(fraction float64) string {
	switch {
	case fraction < 0:
		return "-" + percent(fraction)
	case fraction > 0:
		return "+" + percent(fraction)
	}
	return percent(0)
}

// marginText formats delta: 0.02 is "±2 %".
func marginText(delta float64) string {
	return "±" + strconv.FormatFloat(math.Round(delta*1e6)/1e4, 'f', -1, 64) + " %"
}

// deltaText formats delta without its sign.
func deltaText(delta float64) string { return strings.TrimPrefix(marginText(delta), "±") }

// sentence describes a row in plain words, with its change, interval, delta and blocks. It never claims that there is
// no difference.
func sentence(r Row, paired bool, delta float64) string {
	text := verdictWords(r, paired, delta)
	if r.Role != result.Primary {
		return "Exploratory: " + text
	}
	return text
}

func verdictWords(r Row, paired bool, delta float64) string {
	subject := fmt.Sprintf("%s: %s %s", r.Target, r.Case, r.Metric)
	against := fmt.Sprintf("%s against %s: undecided", subject, r.Baseline)
	switch {
	case r.atLastLook:
		against += " at the last look"
	case r.awaited > 0:
		against += fmt.Sprintf(" after %d of %s", r.Blocks, unit.Plural(r.awaited, "planned block"))
	}
	switch {
	case r.Blocks == 0:
		return against + "; there is nothing to compare."
	case r.Shift == nil && !r.Change.Known() && r.BaselineMedian == 0:
		return fmt.Sprintf("%s; both are 0 (%s).", against, sampleSizeText(r.Blocks, paired))
	case r.Shift != nil:
		return against + shiftWords(r, paired)
	case r.Verdict == Equivalent:
		return fmt.Sprintf("%s is equivalent to %s within %s (change %s, %s)%s.",
			subject, r.Baseline, marginText(delta), signed(float64(r.Change)), evidence(r, paired), equivalentWords(r))
	case r.Verdict == Different:
		way := "higher"
		if r.Change < 0 {
			way = "lower"
		}
		return fmt.Sprintf("%s is %s %s than %s (%s): different, %s%s.",
			subject, percent(float64(r.Change)), way, r.Baseline, evidence(r, paired), r.Direction, differentWords(r, delta))
	}
	if r.drifts {
		against += " because the runs rise or fall from run to run"
	}
	words := fmt.Sprintf("%s; estimated change %s (%s), where %s matter",
		against, signed(float64(r.Change)), evidence(r, paired), deltaText(delta))
	if r.BlocksNeeded > 0 {
		words += fmt.Sprintf("; about %d blocks would decide", Roughly(r.BlocksNeeded))
	}
	return words + "."
}

// Roughly rounds a number of at least 100 up to two significant digits, the precision of an estimate.
func Roughly(n int) int {
	unit := 1
	for n/unit >= 100 {
		unit *= 10
	}
	return (n + unit - 1) / unit * unit
}

// evidence returns the interval and the number of blocks.
func evidence(r Row, paired bool) string {
	return interval(r.CI, r.Level, signed) + ", " + sampleSizeText(r.Blocks, paired)
}

func interval(ci Interval, level float64, format func(float64) string) string {
	if !ci.Bounded() {
		return "no bounds at " + stats.Percent(level) + " confidence"
	}
	return fmt.Sprintf("%s CI %s to %s", stats.Percent(level), format(ci.Lo), format(ci.Hi))
}

func sampleSizeText(n int, paired bool) string {
	switch {
	case !paired:
		return fmt.Sprintf("unpaired, at least %s each", unit.Plural(n, "run"))
	case n == 1:
		return "1 block"
	}
	return fmt.Sprintf("%d blocks", n)
}

func equivalentWords(r Row) string {
	if r.Direction == None {
		return ""
	}
	return fmt.Sprintf(": %s, but by less than matters", r.Direction)
}

// differentWords compares a difference with the smallest one that matters.
func differentWords(r Row, delta float64) string {
	if r.CI.Lo < delta && r.CI.Hi > -delta {
		return fmt.Sprintf(", perhaps by less than the %s that matter", deltaText(delta))
	}
	return fmt.Sprintf(", by more than the %s that matter", deltaText(delta))
}

// shiftWords describes values without a ratio by their medians and their difference.
func shiftWords(r Row, paired bool) string {
	value := func(v float64) string { return unit.Format(v, r.Unit) }
	difference := func(v float64) string {
		if v > 0 {
			return "+" + value(v)
		}
		return value(v)
	}
	return fmt.Sprintf("; values of 0 have no ratio, the median is %s against %s, the difference %s (%s, %s).",
		value(float64(r.TargetMedian)), value(float64(r.BaselineMedian)), difference(float64(r.Shift.Estimate)),
		interval(r.Shift.CI, r.Level, difference), sampleSizeText(r.Blocks, paired))
}

// summary counts the verdicts in a sentence.
func summary(c Comparison) string {
	if len(c.Medians) > 0 && len(c.Targets) == 1 {
		return measuredSummary(c)
	}
	counts := map[Verdict]int{}
	rows := c.Primary()
	for _, r := range rows {
		counts[r.Verdict]++
	}
	if c.Primaries == 0 {
		return "No comparison was declared primary; everything here is exploratory."
	}
	words := fmt.Sprintf("%s: %d different, %d equivalent within %s, %d undecided", unit.Plural(c.Primaries,
		"primary comparison"), counts[Different], counts[Equivalent], marginText(c.Delta), counts[Undecided])
	if missing := c.Primaries - len(rows); missing > 0 {
		words += fmt.Sprintf(", %d not measured", missing)
	}
	return words + "."
}

// Beginnings of the sentence about the scope of results.
const (
	verdictsHold = "These verdicts hold for these targets"
	numbersHold  = "These numbers hold for this target" // with a single target
)

// scope returns the sentence about the targets, machines and times that the results cover. what is its beginning;
// starts are the start times of all runs.
func scope(what string, starts []time.Time) string {
	words := what + ", on the machines and at the time of the measurement"
	if len(starts) > 0 {
		first, last := slices.MinFunc(starts, time.Time.Compare), slices.MaxFunc(starts, time.Time.Compare)
		from, to := first.Format("2006-01-02 15:04"), last.Format("2006-01-02 15:04")
		if from != to {
			from += " to " + to
		}
		words += " (" + from + " UTC)"
	}
	return words + "; other machines and other days need an experiment of their own."
}

// confidence returns the sentence about the confidence of all primary intervals together; empty if there are none.
// Unpaired intervals have none where runs drift, and otherwise only as far as nothing but the targets differs.
func (c Comparison) confidence() string {
	joint := " The intervals of the primary comparisons hold all together with at least " + stats.Percent(1-c.Alpha) +
		" confidence"
	switch {
	case c.Primaries == 0:
		return ""
	case c.Paired:
		return joint + "."
	case slices.ContainsFunc(c.Primary(), func(r Row) bool { return r.drifts }):
		return " Runs drift, so the intervals of the primary comparisons have no confidence to state for all together."
	}
	return joint + " only if nothing but the targets changed from the runs of one to those of the other."
}

// scope returns the scope of the table's runs.
func (t *runTable) scope() string {
	what := verdictsHold
	if len(t.e.Targets) == 1 {
		what = numbersHold
	}
	return scope(what, t.startTimes())
}

// startTimes returns the known start times of the runs.
func (t *runTable) startTimes() []time.Time {
	var starts []time.Time
	for _, byTarget := range t.all {
		for _, runs := range byTarget {
			for _, r := range runs {
				if !r.Start.IsZero() {
					starts = append(starts, r.Start.UTC())
				}
			}
		}
	}
	return starts
}
