package rates

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/knotmeter/knotmeter/internal/stats"
)

// document is the page about the experiments so far.
func (s study) document(done []experiment) []byte {
	var b bytes.Buffer
	b.WriteString(s.head)
	if len(done) == 0 {
		b.WriteString("\nNone has been measured yet.\n")
		return b.Bytes()
	}
	found := count(done, s.found)
	fmt.Fprintf(&b, "\n**%s**, wanted: %s.\n\n", share(found, len(done), s.rate), s.goal)
	var all []comparison
	blocks := map[int]int{}
	verdicts := map[string]int{}
	for _, x := range done {
		all = append(all, x.Comparisons...)
	}
	for _, c := range all {
		verdicts[c.Verdict]++
		blocks[c.Blocks]++
	}
	b.WriteString("| | |\n|---|---|\n")
	row := func(name, value string) { fmt.Fprintf(&b, "| %s | %s |\n", name, value) }
	row("experiments", fmt.Sprint(len(done)))
	for _, d := range s.designs {
		these := slices.DeleteFunc(slices.Clone(done), func(x experiment) bool { return !slices.Equal(x.Args, d.args) })
		if len(these) > 0 && len(s.designs) > 1 {
			row(d.title, share(count(these, s.found), len(these), s.rate))
		}
	}
	row("primary comparisons", fmt.Sprint(len(all)))
	row("verdicts", counts(verdicts, []string{"different", "equivalent", "undecided"}))
	row("blocks until the verdict", blockCounts(blocks))
	if found := count(all, comparison.excludesZero); s.name == "aa" {
		row("intervals that exclude 0, whatever the verdict", share(found, len(all), "of the comparisons"))
	}
	row("change, median (quartiles)", changes(all))
	row("seconds of an experiment, median", fmt.Sprintf("%.0f", stats.Median(secondsOf(done))))
	row("measured", period(done))
	pinned := count(done, func(x experiment) bool { return x.CPU != "" })
	row("side by side, each on a CPU of its own", fmt.Sprintf("%d of the experiments", pinned))
	row("with", strings.Join(versions(done), ", "))
	fmt.Fprintf(&b, "\nIntervals of shares are exact (Clopper and Pearson) at 95 %%. Every experiment is a line of\n`bench/rates/`; the command that adds to them, and those that repeat one with its seed:\n\n    make %s\n", s.name)
	for _, d := range s.designs {
		fmt.Fprintf(&b, "    knotmeter run %s --seed SEED\n", quoted(d.args))
	}
	return b.Bytes()
}

func count[T any](list []T, is func(T) bool) int {
	n := 0
	for _, x := range list {
		if is(x) {
			n++
		}
	}
	return n
}

// share is "3 of 200 (1.5 %, 95 % interval 0.3 to 4.3 %) what".
func share(hits, n int, what string) string {
	lo, hi := stats.Proportion(hits, n, 0.95)
	return fmt.Sprintf("%d of %d (%.1f %%, interval %.1f to %.1f %%) %s",
		hits, n, 100*float64(hits)/math.Max(1, float64(n)), 100*lo, 100*hi, what)
}

func counts(of map[string]int, order []string) string {
	var parts []string
	for _, name := range order {
		parts = append(parts, fmt.Sprintf("%d %s", of[name], name))
	}
	return strings.Join(parts, ", ")
}

func blockCounts(of map[int]int) string {
	var numbers []int
	for n := range of {
		numbers = append(numbers, n)
	}
	slices.Sort(numbers)
	var parts []string
	for _, n := range numbers {
		parts = append(parts, fmt.Sprintf("%d: %d times", n, of[n]))
	}
	return strings.Join(parts, ", ")
}

func changes(all []comparison) string {
	var values []float64
	for _, c := range all {
		values = append(values, c.Change*100)
	}
	s := stats.Summarise(values)
	return fmt.Sprintf("%+.2f %% (%+.2f to %+.2f %%)", s.Median, s.Q1, s.Q3)
}

func secondsOf(done []experiment) []float64 {
	var values []float64
	for _, x := range done {
		values = append(values, x.Seconds)
	}
	return values
}

// period is when the first and the last of the experiments began.
func period(done []experiment) string {
	began := func(a, b experiment) int { return a.Began.Compare(b.Began) }
	const minute = "2006-01-02 15:04"
	return fmt.Sprintf("%s to %s UTC",
		slices.MinFunc(done, began).Began.Format(minute), slices.MaxFunc(done, began).Began.Format(minute))
}

// versions lists the versions of the program, with how many experiments each made.
func versions(done []experiment) []string {
	n := map[string]int{}
	var order []string
	for _, x := range done {
		if n[x.Version]++; n[x.Version] == 1 {
			order = append(order, x.Version)
		}
	}
	for i, v := range order {
		order[i] = fmt.Sprintf("%s (%d)", v, n[v])
	}
	return order
}

func quoted(args []string) string {
	var parts []string
	for _, a := range args {
		if strings.ContainsAny(a, "?*&") {
			a = "'" + a + "'"
		}
		parts = append(parts, a)
	}
	return strings.Join(parts, " ")
}

// line tells of one experiment on the terminal.
func (x experiment) line(of int) string {
	var parts []string
	for _, c := range x.Comparisons {
		parts = append(parts, fmt.Sprintf("%s %+.1f %% after %d blocks: %s", c.Case, 100*c.Change, c.Blocks, c.Verdict))
	}
	return fmt.Sprintf("%d of %d, %.0f s: %s", x.Seed, of, x.Seconds, strings.Join(parts, "; "))
}
