package report

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"

	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/prose"
	"github.com/knotmeter/knotmeter/internal/report/chart"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// writeBench writes every run that counts as a line of the Go benchmark format (golang.org/design/14313), with Unit
// lines that say which way is better. The target is a file key, so that
//
//	benchstat -col target bench.txt
//
// compares targets. Node-to-node references are left out, as only one target has them. The format has no blocks:
// benchstat's test is unpaired, and less powerful than the paired comparison.
func writeBench(w io.Writer, in Input) error {
	b, e := bufio.NewWriter(w), in.Experiment // b keeps an error until Flush
	benchConfig(b, "experiment", in.Comparison.Experiment)
	benchConfig(b, "suite", e.Suite)
	benchConfig(b, "seed", fmt.Sprint(e.Seed))
	benchConfig(b, "knotmeter", versions(in))
	benchConfig(b, "changed", strings.Join(sessionChanges(in.Comparison), " "))
	benchConfig(b, "warnings", strings.Join(recordedWarnings(in.Comparison), " "))
	b.WriteString("\n")
	seen, runs := map[string]bool{}, in.benchRuns()
	for _, r := range runs {
		for _, v := range r.Values {
			if name := benchUnit(v); v.Better != metric.Neutral && !seen[name] {
				seen[name] = true
				fmt.Fprintf(b, "Unit %s better=%s\n", name, v.Better)
			}
		}
	}
	for _, target := range runTargets(in, runs) {
		b.WriteString("\n")
		benchConfig(b, "target", target)
		for _, r := range runs {
			if r.Target == target {
				benchLine(b, r.Run)
			}
		}
	}
	if err := b.Flush(); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

// benchRuns returns the runs that count, except those of node-to-node references.
func (in Input) benchRuns() []run {
	cases := in.casesByName()
	return slices.DeleteFunc(in.runs(), func(r run) bool {
		return r.state != chart.Counts || len(r.Values) == 0 || cases[r.Case].Role == result.Bound
	})
}

// benchConfig writes a line of configuration, unless the value is empty.
func benchConfig(b *bufio.Writer, key, value string) {
	if value != "" {
		fmt.Fprintf(b, "%s: %s\n", key, prose.Plain(value))
	}
}

// benchLine writes a run as a line of results.
func benchLine(b *bufio.Writer, r *result.Run) {
	fmt.Fprintf(b, "Benchmark%s 1", benchName(r.Case))
	for _, v := range r.Values {
		fmt.Fprintf(b, " %s %s", formatFloat(v.Number), benchUnit(v))
	}
	b.WriteString("\n")
}

// benchName returns a case as the name of a benchmark, without spaces and without a lower-case first letter. Digits
// after a final dash would be read as a number of CPUs, so a name that ends in such digits gets the suffix -1.
func benchName(name string) string {
	runes := []rune(noSpace(name))
	if len(runes) > 0 {
		runes[0] = unicode.ToUpper(runes[0])
	}
	name = string(runes)
	if cut := strings.TrimRight(name, "0123456789"); cut != name && strings.HasSuffix(cut, "-") {
		name += "-1"
	}
	return name
}

// benchUnit returns metric and unit in one word, because the format distinguishes metrics by their units.
func benchUnit(v result.Value) string {
	if v.Unit == unit.Count {
		return noSpace(v.Metric)
	}
	return noSpace(v.Metric + "-" + string(v.Unit))
}

// noSpace replaces white space by underscores.
func noSpace(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return '_'
		}
		return r
	}, prose.Plain(s))
}
