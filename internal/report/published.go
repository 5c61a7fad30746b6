package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/prose"
	"github.com/knotmeter/knotmeter/internal/report/chart"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// publishedMetrics holds the names of metrics in Constellation's published measurements of Vault, each with our metric,
// in the published order.
var publishedMetrics = [][2]string{
	{"Mean", metric.Mean}, {"P99", metric.P99}, {"Max", metric.Max}, {"Min", metric.Min},
}

// asPublished is the text below the results: how means and changes were computed. Its argument is the estimate.
const asPublished = "Each mean is over the runs' own values, as published; a mean of percentiles or of maxima is " +
	"none of the requests. Changes are ours: the second target against the first, as a fraction of the first, by the " +
	"median of %s, with its interval and verdict. Below each is the same as it would have been published: the " +
	"difference of the means, as a fraction of the second."

const noneAsPublished = `No case has runs with a mean, a 99th percentile, a maximum and a minimum,
which is what this form is of.
`

// writePublished writes cases that have a mean, 99th percentile, maximum and minimum in the form in which
// Constellation's measurements of Vault were published, with added intervals and verdicts.
func writePublished(w io.Writer, in Input) error {
	p := &publishedReport{in: in, values: in.valuesByMetric()}
	notes := ""
	for _, s := range slices.Concat(recordedWarnings(in.Comparison), sessionChanges(in.Comparison)) {
		notes += strings.Join(prose.Wrap(prose.Plain(s), prose.Columns), "\n") + "\n\n"
	}
	for _, c := range in.Experiment.Cases {
		p.writeCase(c.Name)
	}
	if p.b.Len() == 0 {
		return write(w, noneAsPublished)
	}
	estimate := "Walsh averages of paired runs"
	if !in.Comparison.Paired {
		estimate = "the changes between a run of each, which are not paired"
	}
	method := strings.Join(prose.Wrap(fmt.Sprintf(asPublished, estimate), prose.Columns), "\n")
	return write(w, notes+p.b.String()+method+"\n")
}

type publishedReport struct {
	in     Input
	values map[[3]string][]float64 // by case, target and metric
	b      strings.Builder
}

// valuesByMetric returns the values of the runs that count, by case, target and metric.
func (in Input) valuesByMetric() map[[3]string][]float64 {
	all := map[[3]string][]float64{}
	for _, r := range in.runs() {
		if r.state != chart.Counts {
			continue
		}
		for _, v := range r.Values {
			at := [3]string{r.Case, r.Target, v.Metric}
			all[at] = append(all[at], v.Number)
		}
	}
	return all
}

// writeCase writes the results and changes of a case, if it has all metrics.
func (p *publishedReport) writeCase(name string) {
	var targets []string
	for _, t := range p.in.Comparison.Targets {
		if p.complete(name, t.Name) {
			targets = append(targets, t.Name)
		}
	}
	if len(targets) == 0 {
		return
	}
	fmt.Fprintf(&p.b, "%s\n\n", name)
	for _, t := range targets {
		p.results(name, t)
	}
	for _, row := range p.in.Comparison.Comparisons {
		if row.Case == name && row.Metric == publishedMetrics[0][1] {
			p.against(row.Case, row.Baseline, row.Target)
		}
	}
	p.b.WriteString("\n")
}

// complete reports whether runs of a case on a target have all metrics of the form.
func (p *publishedReport) complete(name, target string) bool {
	return !slices.ContainsFunc(publishedMetrics, func(m [2]string) bool {
		return len(p.values[[3]string{name, target, m[1]}]) == 0
	})
}

// results writes mean and variance of each metric of a case on a target.
func (p *publishedReport) results(name, target string) {
	fmt.Fprintf(&p.b, "========== Results %s ==========\n", target)
	runs := 0
	for _, m := range publishedMetrics {
		moments := compare.MomentsOf(p.values[[3]string{name, target, m[1]}])
		runs = moments.Runs
		variance := "-"
		if moments.Variance.Known() {
			variance = fmt.Sprintf("%.6f", float64(moments.Variance))
		}
		fmt.Fprintf(&p.b, "%-7s mean: %.6f, variance: %s\n", m[0]+":", float64(moments.Mean), variance)
	}
	fmt.Fprintf(&p.b, "(%d runs; seconds)\n", runs)
}

// against writes the changes of a case between two targets.
func (p *publishedReport) against(name, baseline, target string) {
	fmt.Fprintf(&p.b, "========== %s vs %s ==========\n", baseline, target)
	for _, m := range publishedMetrics {
		for _, r := range p.in.Comparison.Comparisons {
			if r.Case == name && r.Metric == m[1] && r.Baseline == baseline && r.Target == target && r.Unit == unit.Second {
				fmt.Fprintf(&p.b, "%-7s %s  %s%s\n", m[0]+":", difference(r), r.Verdict, faster(r))
				p.asPublished(name, baseline, target, m[1])
				p.whyUndecided(r)
			}
		}
	}
}

// asPublished writes the change as it would have been published, with its sign.
func (p *publishedReport) asPublished(name, baseline, target, metricName string) {
	change := compare.PublishedChange(compare.MomentsOf(p.values[[3]string{name, baseline, metricName}]),
		compare.MomentsOf(p.values[[3]string{name, target, metricName}]))
	if change.Known() {
		fmt.Fprintf(&p.b, "        published as: %+.6f %%\n", 100*float64(change))
	}
}

// whyUndecided writes why a row is undecided although its interval excludes zero.
func (p *publishedReport) whyUndecided(r compare.Row) {
	w, withheld := r.Withheld()
	if !withheld {
		return
	}
	const indent = "        "
	for _, line := range prose.Wrap(prose.Plain(warningSentence(w)), prose.Columns-len(indent)) {
		p.b.WriteString(indent + line + "\n")
	}
}

// faster returns a remark on whether the baseline is faster or slower; empty if the interval does not show it.
func faster(r compare.Row) string {
	switch r.Direction {
	case compare.WorseThan:
		return " (" + r.Baseline + " is faster)"
	case compare.BetterThan:
		return " (" + r.Baseline + " is slower)"
	}
	return ""
}
