package report

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/prose"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// writeOpenMetrics writes the comparison as gauges in OpenMetrics 1.0 text: medians of baseline and targets by metric,
// changes with their intervals, verdicts as a state set, and counts of runs. It writes no time stamps: the program that
// scrapes or pushes the metrics adds its own.
func writeOpenMetrics(w io.Writer, in Input) error {
	o := &openMetrics{samples: map[string][]string{}}
	c := in.Comparison
	for _, g := range slices.Concat(groups(in), medianGroups(in)) {
		o.medians(g)
	}
	for _, r := range c.Comparisons {
		o.row(r)
	}
	for _, s := range c.Sessions {
		for _, change := range s.Changes {
			o.add(metricFamily{"knotmeter_session_change", "gauge", "",
				"A fact that was not the same in an earlier session of the experiment."},
				labels("experiment", s.Experiment, "session", strconv.Itoa(s.Number), "target",
					change.Target, "fact", change.Fact, "before", change.Before, "now", change.Now), 1)
		}
	}
	for _, sentence := range recordedWarnings(c) {
		o.add(metricFamily{"knotmeter_warning", "gauge", "", "A warning about the whole experiment."},
			labels("text", sentence), 1)
	}
	runs := metricFamily{"knotmeter_runs", "gauge", "", "Runs, by whether they passed every validity gate."}
	for _, t := range c.Targets {
		o.add(runs, labels("target", t.Name, "valid", "true"), float64(t.Runs-t.Invalid))
		o.add(runs, labels("target", t.Name, "valid", "false"), float64(t.Invalid))
	}
	return write(w, o.String())
}

// A metricFamily describes a metric family, whose samples must be contiguous in the output.
type metricFamily struct{ name, kind, unit, help string }

type openMetrics struct {
	families []metricFamily
	samples  map[string][]string
}

// add adds a sample to a family.
func (o *openMetrics) add(f metricFamily, labels string, v float64) {
	if o.samples[f.name] == nil {
		o.families = append(o.families, f)
	}
	o.samples[f.name] = append(o.samples[f.name], f.name+labels+" "+openMetricsNumber(v))
}

func (o *openMetrics) String() string {
	var b strings.Builder
	for _, f := range o.families {
		fmt.Fprintf(&b, "# TYPE %s %s\n", f.name, f.kind)
		if f.unit != "" {
			fmt.Fprintf(&b, "# UNIT %s %s\n", f.name, f.unit)
		}
		fmt.Fprintf(&b, "# HELP %s %s\n", f.name, escapeOpenMetrics(f.help))
		b.WriteString(strings.Join(o.samples[f.name], "\n") + "\n")
	}
	b.WriteString("# EOF\n")
	return b.String()
}

// medians adds the medians of a group.
func (o *openMetrics) medians(g group) {
	suffix := openMetricsUnit(g.Unit)
	f := metricFamily{openMetricsName(g.Metric, suffix), "gauge", suffix,
		"Median over the blocks: " + g.Metric + ", " + betterText(g.Better) + "."}
	if g.BaselineMedian.Known() {
		o.add(f, labels("case", g.Case, "target", g.Baseline), float64(g.BaselineMedian))
	}
	for _, r := range g.Rows {
		if r.TargetMedian.Known() {
			o.add(f, labels("case", g.Case, "target", r.Target), float64(r.TargetMedian))
		}
	}
}

// row adds the change, interval, blocks and verdict of a comparison.
func (o *openMetrics) row(r compare.Row) {
	pairs := []string{"case", r.Case, "metric", r.Metric, "target",
		r.Target, "baseline", r.Baseline, "role", string(r.Role)}
	gauge := func(name, suffix, help string, v float64) {
		o.add(metricFamily{"knotmeter_" + name, "gauge", suffix, help}, labels(pairs...), v)
	}
	if r.Change.Known() {
		gauge("change_ratio", "ratio", "Change of the target against the baseline.", float64(r.Change))
	}
	if !math.IsNaN(r.CI.Lo) && !math.IsNaN(r.CI.Hi) {
		gauge("change_low_ratio", "ratio", "Lower end of the change's confidence interval.", r.CI.Lo)
		gauge("change_high_ratio", "ratio", "Upper end of the change's confidence interval.", r.CI.Hi)
	}
	gauge("blocks", "", "Blocks that the comparison rests on.", float64(r.Blocks))
	for _, v := range []compare.Verdict{compare.Different, compare.Equivalent, compare.Undecided} {
		on := 0.0
		if r.Verdict == v {
			on = 1
		}
		o.add(metricFamily{"knotmeter_verdict", "stateset", "", "What the data allow to be said."},
			labels(append(pairs, "knotmeter_verdict", string(v))...), on)
	}
}

var openMetricsUnits = map[unit.Unit]string{
	unit.BitPerSecond: "bits_per_second", unit.BytePerSecond: "bytes_per_second", unit.Second: "seconds",
	unit.PerSecond: "operations_per_second", unit.Byte: "bytes", unit.Ratio: "ratio", unit.Count: "",
	unit.SecondPerGB: "seconds_per_gigabyte", unit.SecondPerOp: "seconds_per_operation",
}

// openMetricsUnit returns a unit as the suffix that the format requires in a family's name.
func openMetricsUnit(u unit.Unit) string {
	if name, ok := openMetricsUnits[u]; ok {
		return name
	}
	return metricWord(string(u))
}

func openMetricsName(metric, suffix string) string {
	name := "knotmeter_median_" + metricWord(metric)
	if suffix != "" {
		name += "_" + suffix
	}
	return name
}

// metricWord replaces the characters that the name of a metric may not have.
func metricWord(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_':
			return r
		}
		return '_'
	}, s)
}

// labels returns a label set; pairs are names and values in turn.
func labels(pairs ...string) string {
	var parts []string
	for i := 0; i+1 < len(pairs); i += 2 {
		parts = append(parts, pairs[i]+`="`+escapeOpenMetrics(pairs[i+1])+`"`)
	}
	return "{" + strings.Join(parts, ",") + "}"
}

var openMetricsEscapes = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)

func escapeOpenMetrics(s string) string {
	return openMetricsEscapes.Replace(prose.PlainLines(strings.ToValidUTF8(s, "\uFFFD")))
}

func openMetricsNumber(v float64) string {
	switch {
	case math.IsInf(v, 1):
		return "+Inf"
	case math.IsInf(v, -1):
		return "-Inf"
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}
