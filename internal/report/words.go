package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// verdictWord returns the verdict as readers see it: "different" becomes its direction.
func verdictWord(r compare.Row) string {
	if r.Verdict == compare.Different && r.Direction != compare.None {
		return string(r.Direction)
	}
	return string(r.Verdict)
}

// verdictWithReason returns the verdict, with the reason of one that is undecided although the interval excludes zero.
func verdictWithReason(r compare.Row) string {
	if why := whyUndecided(r); why != "" {
		return verdictWord(r) + " (" + why + ")"
	}
	return verdictWord(r)
}

// whyUndecided returns the reason for which a row is undecided although its interval excludes zero; empty for others.
func whyUndecided(r compare.Row) string {
	w, withheld := r.Withheld()
	switch {
	case !withheld:
		return ""
	case w.Code == compare.FewRuns:
		return fmt.Sprintf("fewer than %d runs on a side", w.Needed)
	case w.Code == compare.Drift:
		return "the runs rise or fall from run to run"
	case w.Code == compare.OneOfMany:
		return fmt.Sprintf("too weak among %d exploratory comparisons", w.Count)
	}
	return "values of 0 have no ratio"
}

// betterText returns a text about which direction of a metric is better.
func betterText(b metric.Better) string {
	switch b {
	case metric.Higher:
		return "higher is better"
	case metric.Lower:
		return "lower is better"
	}
	return "neither way is better"
}

// format formats a value with its unit.
func format(n compare.Number, u unit.Unit) string { return unit.Format(float64(n), u) }

// span formats two values, with one unit if both have the same: "22.7 to 22.9 µs".
func span(ends [2]compare.Number, u unit.Unit) string {
	return unit.Join(format(ends[0], u), format(ends[1], u))
}

// slashed formats two values with a slash, with one unit if both have the same: "12.0/11.0 Gbit/s".
func slashed(a, b compare.Number, u unit.Unit) string {
	first, second := format(a, u), format(b, u)
	if number, symbol, found := strings.Cut(first, " "); found && strings.HasSuffix(second, " "+symbol) {
		first = number
	}
	return first + "/" + second
}

// change formats a relative change in percent, or as a factor from unit.FactorFrom on.
func change(n compare.Number) string {
	if n.Known() && n >= unit.FactorFrom {
		return unit.FormatFactor(float64(n))
	}
	return unit.FormatChange(float64(n))
}

// interval formats an interval of changes in percent: "[-33.0, -26.0] %", or of factors: "[×9.5, ×12.0]". Without
// bounds it is "no interval"; if unknown, "-".
func interval(i compare.Interval) string {
	switch {
	case math.IsNaN(i.Lo) || math.IsNaN(i.Hi):
		return "-"
	case math.IsInf(i.Lo, -1) && math.IsInf(i.Hi, 1):
		return "no interval"
	case i.Lo >= unit.FactorFrom && math.IsInf(i.Hi, 1):
		return "[" + unit.FormatFactor(i.Lo) + ", +∞]"
	case i.Lo >= unit.FactorFrom:
		return "[" + unit.FormatFactor(i.Lo) + ", " + unit.FormatFactor(i.Hi) + "]"
	}
	return "[" + percentEnd(i.Lo) + ", " + percentEnd(i.Hi) + "] %"
}

func percentEnd(v float64) string {
	switch {
	case math.IsInf(v, -1):
		return "-∞"
	case math.IsInf(v, 1):
		return "+∞"
	case v >= 100:
		return ">+9999"
	case math.Abs(v) >= 0.9995:
		return fmt.Sprintf("%+.0f", v*100)
	}
	return fmt.Sprintf("%+.1f", v*100)
}

// difference returns a row's change with its interval or, if values of 0 leave no ratio, the difference in the unit of
// the metric.
func difference(r compare.Row) string {
	if r.Shift == nil {
		return change(r.Change) + " " + interval(r.CI)
	}
	return fmt.Sprintf("difference %s [%s, %s]",
		format(r.Shift.Estimate, r.Unit), intervalEnd(r.Shift.CI.Lo, r.Unit), intervalEnd(r.Shift.CI.Hi, r.Unit))
}

// intervalEnd formats an end of an interval in a unit.
func intervalEnd(v float64, u unit.Unit) string {
	switch {
	case math.IsInf(v, -1):
		return "-∞"
	case math.IsInf(v, 1):
		return "+∞"
	}
	return unit.Format(v, u)
}

// referenceName is the name of a bound in reports. It is not called a limit, because targets may exceed it.
const referenceName = "node-to-node reference"

// references formats the reference of the first target, and those of other targets that differ from it, with the names
// of these targets.
func references(names []string, medians map[string]compare.Number, u unit.Unit) []string {
	var list []string
	for i, name := range names {
		switch v, ok := medians[name]; {
		case !ok || !v.Known():
		case i == 0:
			list = append(list, format(v, u))
		case v != medians[names[0]]:
			list = append(list, "on "+name+" "+format(v, u))
		}
	}
	return list
}

// references returns the references of a group, the baseline's first.
func (g group) references() string {
	names := []string{g.Baseline}
	for _, r := range g.Rows {
		names = append(names, r.Target)
	}
	return strings.Join(references(names, g.bounds(), g.Unit), ", ")
}

// exceededText returns a remark that a target exceeds the reference; empty if none does.
func exceededText(b compare.UpperBound) string {
	if b.Faster == "" {
		return ""
	}
	percent := strconv.FormatFloat(math.Round(float64(b.ExceededBy)*1000)/10, 'f', -1, 64)
	return fmt.Sprintf(": not a limit here, %s is faster by %s %%", b.Faster, percent)
}
