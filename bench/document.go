package main

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/knotmeter/knotmeter/internal/prose"
	"github.com/knotmeter/knotmeter/internal/stats"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// document returns the page about the experiments so far, in Markdown.
func (s study) document(done []experiment) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# %s%s\n\n%s", s.title, s.intervalWidths(done), s.head)
	if len(done) == 0 {
		b.WriteString("\nNone has been measured yet.\n")
		return b.Bytes()
	}
	counted := among(s.counted(), done)
	if len(counted) > 0 {
		fmt.Fprintf(&b, "\n**%s**, wanted: %s.\n", s.foundShare(counted), s.goal)
	}
	b.WriteString("\n| | |\n|---|---|\n")
	row := func(name, format string, values ...any) {
		fmt.Fprintf(&b, "| %s | "+format+" |\n", append([]any{name}, values...)...)
	}
	row("experiments", "%s", s.numbers(done, counted))
	for _, d := range s.designs {
		if len(s.designs) > 1 {
			row(d.title, "%s", s.designText(d, among([]design{d}, done)))
		}
	}
	s.comparisonRows(row, done)
	seconds := apply(done, func(x experiment) float64 { return x.Seconds })
	row("seconds of an experiment, median", "%.0f", stats.Median(seconds))
	row("measured", "%s", period(done))
	row("side by side, each on a CPU of its own", "%d of the experiments",
		countIf(done, func(x experiment) bool { return x.CPU != "" }))
	row("with", "%s", strings.Join(versions(done), ", "))
	fmt.Fprintf(&b, `
Intervals of shares are exact (Clopper and Pearson) at 95 %%. Every experiment is a line of
`+"`bench/rates/`"+`; the command that adds to them, and those that repeat one with its seed:

    make %s
`, s.name)
	for _, d := range s.designs {
		if len(among([]design{d}, done)) > 0 {
			fmt.Fprintf(&b, "    knotmeter run %s --seed SEED\n", quoted(d.args))
		}
	}
	return b.Bytes()
}

// numbers returns how many experiments were measured, are planned, and count in the study's rate.
func (s study) numbers(done, counted []experiment) string {
	text := fmt.Sprint(len(done))
	if len(done) < s.n {
		text += fmt.Sprintf(" of %d planned", s.n)
	}
	if len(counted) < len(done) {
		text += fmt.Sprintf("; %d count above", len(counted))
	}
	return text
}

// designText describes what the experiments of a design found.
func (s study) designText(d design, these []experiment) string {
	if len(these) == 0 {
		return fmt.Sprintf("0 of %d planned: not measured yet", s.planned(d))
	}
	change := stats.Median(apply(comparisons(these), func(c comparison) float64 { return 100 * c.Change }))
	text := fmt.Sprintf("%s; change %+.1f %%, interval %.1f %% wide (medians)",
		s.foundShare(these), change, typicalWidth(these).Median)
	if d.quiet {
		text += "; not counted above, because with so little noise next to delta a difference can hardly be found"
	}
	return text
}

// intervalWidths returns the median widths of the intervals of the designs that count, as in ", with intervals 2.3 and
// 0.3 % wide": rates of verdicts depend on the noise.
func (s study) intervalWidths(done []experiment) string {
	var widths []string
	for _, d := range s.counted() {
		if w := typicalWidth(among([]design{d}, done)).Median; !math.IsNaN(w) {
			widths = append(widths, fmt.Sprintf("%.1f", w))
		}
	}
	if len(widths) == 0 {
		return ""
	}
	return ", with intervals " + prose.Enumerate(widths) + " % wide"
}

// typicalWidth summarises the widths of the intervals that have both ends, in percent.
func typicalWidth(experiments []experiment) stats.Summary {
	return stats.Summarise(apply(comparisons(experiments), func(c comparison) float64 { return 100 * c.width() }))
}

// comparisons returns the comparisons of all experiments.
func comparisons(experiments []experiment) []comparison {
	var all []comparison
	for _, x := range experiments {
		all = append(all, x.Comparisons...)
	}
	return all
}

// comparisonRows writes the rows about the comparisons of all experiments.
func (s study) comparisonRows(row func(name, format string, values ...any), done []experiment) {
	all := comparisons(done)
	verdicts, blocks := map[string]int{}, map[int]int{}
	for _, c := range all {
		verdicts[c.Verdict]++
		blocks[c.Blocks]++
	}
	row("primary comparisons", "%d", len(all))
	row("verdicts", "%d different, %d equivalent, %d undecided",
		verdicts["different"], verdicts["equivalent"], verdicts["undecided"])
	row("blocks until the verdict", "%s", strings.Join(apply(slices.Sorted(maps.Keys(blocks)), func(n int) string {
		return fmt.Sprintf("%d: %s", n, unit.Plural(blocks[n], "time"))
	}), ", "))
	if width := typicalWidth(done); width.N > 0 {
		row("width of the intervals, median (quartiles)", "%.2f %% (%.2f to %.2f %%), %d without an end",
			width.Median, width.Q1, width.Q3, len(all)-width.N)
	}
	if s.sameTargets {
		row("intervals that exclude 0, whatever the verdict", "%s",
			formatShare(countIf(all, comparison.excludesZero), len(all), "of the comparisons"))
	}
	change := stats.Summarise(apply(all, func(c comparison) float64 { return 100 * c.Change }))
	row("change, median (quartiles)", "%+.2f %% (%+.2f to %+.2f %%)", change.Median, change.Q1, change.Q3)
}

// apply returns the results of f for each element of a list.
func apply[A, B any](list []A, f func(A) B) []B {
	out := make([]B, len(list))
	for i, x := range list {
		out[i] = f(x)
	}
	return out
}

// countIf returns the number of elements that match.
func countIf[T any](list []T, matches func(T) bool) int {
	return len(slices.DeleteFunc(slices.Clone(list), func(x T) bool { return !matches(x) }))
}

// foundShare formats the share of experiments with a comparison that s.found selects.
func (s study) foundShare(experiments []experiment) string {
	found := countIf(experiments, func(x experiment) bool { return slices.ContainsFunc(x.Comparisons, s.found) })
	return formatShare(found, len(experiments), s.rate)
}

// formatShare formats a share with its exact 95 % interval, as in "3 of 200 (1.5 %, interval 0.3 to 4.3 %) what".
func formatShare(hits, n int, what string) string {
	lo, hi := stats.Proportion(hits, n, 0.95)
	return fmt.Sprintf("%d of %d (%.1f %%, interval %.1f to %.1f %%) %s",
		hits, n, 100*float64(hits)/float64(n), 100*lo, 100*hi, what)
}

// period formats when the first and the last of the experiments began.
func period(done []experiment) string {
	began := func(a, b experiment) int { return a.Began.Compare(b.Began) }
	const minute = "2006-01-02 15:04"
	return fmt.Sprintf("%s to %s UTC",
		slices.MinFunc(done, began).Began.Format(minute), slices.MaxFunc(done, began).Began.Format(minute))
}

// versions returns the versions of the program, each with its number of experiments.
func versions(done []experiment) []string {
	n := map[string]int{}
	var order []string
	for _, x := range done {
		if n[x.Version]++; n[x.Version] == 1 {
			order = append(order, x.Version)
		}
	}
	return apply(order, func(v string) string { return fmt.Sprintf("%s (%d)", v, n[v]) })
}

// quoted joins arguments, with quotes around those with special characters of shells.
func quoted(args []string) string {
	return strings.Join(apply(args, func(a string) string {
		if strings.ContainsAny(a, "?*&") {
			return "'" + a + "'"
		}
		return a
	}), " ")
}

// progressLine returns a line about the experiment, for the terminal; n is the number of experiments wanted.
func (x experiment) progressLine(n int) string {
	return fmt.Sprintf("%d of %d, %.0f s: %s", x.Seed, n, x.Seconds,
		strings.Join(apply(x.Comparisons, func(c comparison) string {
			return fmt.Sprintf("%s %+.1f %% after %d blocks: %s", c.Case, 100*c.Change, c.Blocks, c.Verdict)
		}), "; "))
}
