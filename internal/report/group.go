package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/prose"
	"github.com/knotmeter/knotmeter/internal/report/chart"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// A group is one metric of one case on a baseline and on every target that is compared with it: a line
// of a table in the shape of case x target.
type group struct {
	Case     string
	Metric   string
	Unit     unit.Unit
	Better   metric.Better
	Role     result.Role
	Main     bool // the metric that the case is measured for
	Baseline string
	// BaselineMedian is that of the row with the most blocks; a row with fewer has its own.
	BaselineMedian compare.Number
	Rows           []compare.Row
	Bound          *compare.UpperBound
	Missing        []result.NotMeasured // targets for which this case in particular was not measured
}

// groups collects the rows of a comparison, in its order: primaries first.
func groups(in Input) []group {
	main := map[string]string{}
	for _, c := range in.Experiment.Cases {
		main[c.Name] = c.Metric
	}
	var all []group
	at := map[[3]string]int{}
	for _, r := range in.Comparison.Comparisons {
		key := [3]string{r.Case, r.Metric, r.Baseline}
		i, seen := at[key]
		if !seen {
			i = len(all)
			at[key] = i
			all = append(all, group{
				Case: r.Case, Metric: r.Metric, Unit: r.Unit, Better: r.Better, Role: r.Role, Baseline: r.Baseline,
				Main: main[r.Case] == "" || main[r.Case] == r.Metric, Missing: missing(in.Comparison, r.Case),
			})
		}
		all[i].add(r)
	}
	return all
}

func (g *group) add(r compare.Row) {
	most := true
	for _, other := range g.Rows {
		most = most && r.Blocks > other.Blocks
	}
	if most {
		g.BaselineMedian, g.Bound = r.BaselineMedian, r.UpperBound
	}
	g.Rows = append(g.Rows, r)
}

// referenceName is what a bound is called: it is a limit only until a target exceeds it.
const referenceName = "node-to-node reference"

// noLimit says, behind a reference, that a target exceeds it; nothing if none does.
func noLimit(b compare.UpperBound) string {
	if b.Faster == "" {
		return ""
	}
	percent := strconv.FormatFloat(math.Round(float64(b.ExceededBy)*1000)/10, 'f', -1, 64)
	return fmt.Sprintf(": not a limit here, %s is faster by %s %%", b.Faster, percent)
}

func missing(c compare.Comparison, name string) []result.NotMeasured {
	var list []result.NotMeasured
	for _, n := range inWords(c.NotMeasured) {
		if n.Case == name {
			list = append(list, n)
		}
	}
	return list
}

// inWords is a list of what was not measured, with words where it says "*".
func inWords(list []result.NotMeasured) []result.NotMeasured {
	list = slices.Clone(list)
	for i := range list {
		if list[i].Target == "*" {
			list[i].Target = "all targets"
		}
		if list[i].Case == "*" {
			list[i].Case = "all cases"
		}
	}
	return list
}

// absent is the cell of a target that a group has no row of.
func absent(g group, target string) string {
	for _, n := range g.Missing {
		if n.Target == target {
			return "not measured"
		}
	}
	return "-"
}

// partition keeps the groups of a role, and of those the main metrics of their cases, and the latencies of storage,
// whose rate alone says nothing of the wait; others counts the rest.
func partition(all []group, role result.Role) (kept []group, others int) {
	for _, g := range all {
		switch {
		case g.Role != role:
		case g.Main || g.Role == result.Primary || isWait(g.Case, g.Metric):
			kept = append(kept, g)
		default:
			others++
		}
	}
	return kept, others
}

// isWait says whether a metric is a latency of a storage case, of all operations or of its reads or writes.
func isWait(name, of string) bool {
	of = strings.TrimPrefix(strings.TrimPrefix(of, metric.Reads), metric.Writes)
	return strings.HasPrefix(name, "storage/") && (of == metric.P50 || of == metric.P99)
}

// word is the verdict as a reader sees it: different is said with its direction.
func word(r compare.Row) string {
	if r.Verdict == compare.Different && r.Direction != compare.None {
		return string(r.Direction)
	}
	return string(r.Verdict)
}

// sign is a mark of one column for a verdict, for tables.
func sign(r compare.Row) string {
	switch mark(r) {
	case chart.Better:
		return "▲"
	case chart.Worse:
		return "▼"
	case chart.Same:
		return "="
	}
	return "~"
}

// columns lists baselines and targets for a table, each once: without two directories there is one
// baseline, unless every target is compared with every other.
func columns(c compare.Comparison) []string {
	names := baselines(c)
	for _, name := range compared(c) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

func baselines(c compare.Comparison) []string {
	names := []string{}
	for _, r := range c.Comparisons {
		if !slices.Contains(names, r.Baseline) {
			names = append(names, r.Baseline)
		}
	}
	if len(names) == 0 {
		names = append(names, c.Baseline)
	}
	return names
}

// title says what is compared with what.
func title(c compare.Comparison) string {
	return strings.TrimPrefix(prose.Enumerate(compared(c))+" against "+prose.Enumerate(baselines(c)), " against ")
}

// compared lists the targets that have results beside the baseline's, in the order of the plan.
func compared(c compare.Comparison) []string {
	var names []string
	add := func(name string) {
		if !slices.Contains(names, name) && slices.ContainsFunc(c.Comparisons, func(r compare.Row) bool { return r.Target == name }) {
			names = append(names, name)
		}
	}
	for _, t := range c.Targets {
		add(t.Name)
	}
	for _, r := range c.Comparisons {
		add(r.Target)
	}
	return names
}

func betterText(b metric.Better) string {
	switch b {
	case metric.Higher:
		return "higher is better"
	case metric.Lower:
		return "lower is better"
	}
	return "neither way is better"
}

func format(n compare.Number, u unit.Unit) string { return unit.Format(float64(n), u) }

func change(n compare.Number) string { return unit.FormatChange(float64(n)) }

// interval writes an interval of changes in percent: "[-33.0, -26.0] %".
func interval(i compare.Interval) string {
	if math.IsNaN(i.Lo) || math.IsNaN(i.Hi) {
		return "-"
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
	case math.Abs(v) >= 10:
		return fmt.Sprintf("%+.0f", v*100)
	}
	return fmt.Sprintf("%+.1f", v*100)
}

// difference is a row's change with its interval, or where values of 0 leave no ratio, the difference
// in the metric's own unit.
func difference(r compare.Row) string {
	if r.Shift == nil {
		return change(r.Change) + " " + interval(r.CI)
	}
	return fmt.Sprintf("difference %s [%s, %s]",
		format(r.Shift.Estimate, r.Unit), end(r.Shift.CI.Lo, r.Unit), end(r.Shift.CI.Hi, r.Unit))
}

func end(v float64, u unit.Unit) string {
	switch {
	case math.IsInf(v, -1):
		return "-∞"
	case math.IsInf(v, 1):
		return "+∞"
	}
	return unit.Format(v, u)
}

// notes are the sentences that belong beside a row.
func notes(r compare.Row) []string {
	if r.Shift == nil {
		return r.Warnings
	}
	return append([]string{"In its own unit: " + difference(r) + "."}, r.Warnings...)
}

// mostNotes is how many notes on single comparisons a table bears.
const mostNotes = 12

// choose returns the notes of the rows of groups, each text once, in order, and how many were left
// out: where there are more than most, those that say something of few rows.
func choose(list []group, most int) (kept []string, untold int) {
	rows := map[string]int{}
	var texts []string
	for _, g := range list {
		for _, r := range g.Rows {
			for _, n := range notes(r) {
				if rows[n]++; rows[n] == 1 {
					texts = append(texts, n)
				}
			}
		}
	}
	if len(texts) <= most {
		return texts, 0
	}
	common := slices.Clone(texts)
	slices.SortStableFunc(common, func(a, b string) int { return cmp.Compare(rows[b], rows[a]) })
	common = common[:most]
	for _, n := range texts {
		if slices.Contains(common, n) {
			kept = append(kept, n)
		}
	}
	return kept, len(texts) - len(kept)
}

// command is the command line that repeats an experiment: the command, then each flag with its value.
func command(e result.Experiment) []string {
	args := []string{"knotmeter run"}
	add := func(flag, value string) { args = append(args, flag+" "+quote(value)) }
	for _, t := range e.Targets {
		add("--target", t.Spec)
	}
	if len(e.Targets) > 0 && e.Baseline != e.Targets[0].Name {
		add("--baseline", e.Baseline)
	}
	if e.Suite != "" {
		add("--suite", e.Suite)
	}
	for _, pattern := range e.Chosen {
		add("--case", pattern)
	}
	for _, pattern := range e.Primaries {
		add("--primary", pattern)
	}
	if e.Tool != "" {
		add("--tool", e.Tool)
	}
	if len(e.Design.Looks) > 0 {
		add("--looks", strings.Trim(strings.ReplaceAll(fmt.Sprint(e.Design.Looks), " ", ","), "[]"))
	} else {
		add("--blocks", strconv.Itoa(e.Design.Blocks))
	}
	if e.Design.Budget > 0 {
		add("--budget", seconds(e.Design.Budget).String())
	}
	if e.Design.AllPairs {
		args = append(args, "--all-pairs")
	}
	if e.Design.Parallel {
		args = append(args, "--parallel")
	}
	for _, gate := range e.Gates {
		add("--gate", gate)
	}
	add("--duration", seconds(e.Design.Duration).String())
	add("--warmup", seconds(e.Design.Warmup).String())
	add("--alpha", fmt.Sprint(e.Design.Alpha))
	add("--delta", fmt.Sprintf("%g%%", e.Design.Delta*100))
	add("--seed", strconv.FormatUint(e.Seed, 10))
	return args
}

// quote protects an argument from a shell.
func quote(arg string) string {
	if arg != "" && !strings.ContainsFunc(arg, func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:=,+%@", r)
	}) {
		return arg
	}
	return "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
}
