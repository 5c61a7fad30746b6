package main

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/knotmeter/knotmeter/internal/audit"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/stats"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// perBlock holds numbers by block.
type perBlock map[int]float64

// paired combines the numbers of two targets or cases in the blocks that both have.
func paired(a, b perBlock, combine func(a, b float64) float64) perBlock {
	both := perBlock{}
	for block, x := range a {
		if y, has := b[block]; has {
			both[block] = combine(x, y)
		}
	}
	return both
}

func difference(a, b float64) float64 { return a - b }

func logRatio(a, b float64) float64 { return math.Log(a / b) }

// values returns the values of a metric in the runs of a case on a target that [compare.Compare] uses.
func (x galleryExperiment) values(caseName, metricName, target string) perBlock {
	values, last := perBlock{}, result.LastAttempts(x.Runs)
	for i := range x.Runs {
		r := &x.Runs[i]
		v, has := r.Value(metricName)
		if r.Case == caseName && r.Target == target && r.Valid() && last(r) && !x.hasError(r.ID) &&
			has && v.Usable() && v.Number > 0 {
			values[r.Block] = v.Number
		}
	}
	return values
}

// hasError reports whether the audit found an error in a run.
func (x galleryExperiment) hasError(run string) bool {
	return slices.ContainsFunc(x.Findings, func(f audit.Finding) bool {
		return f.Severity == audit.Error && slices.Contains(f.Runs, run)
	})
}

// hasTimeMetric reports whether the metric of a case is a time, not a rate.
func hasTimeMetric(c result.Case) bool {
	m, known := metric.Find(c.Metric)
	return known && m.Unit == unit.Second
}

// beyondReference returns the overhead of a case over the same target's node-to-node reference in the same block: the
// difference of times in seconds, or the logarithm of the ratio of rates.
func (x galleryExperiment) beyondReference(c result.Case, target string) perBlock {
	combine := logRatio
	if hasTimeMetric(c) {
		combine = difference
	}
	return paired(x.values(c.Name, c.Metric, target), x.values(c.Bound, c.Metric, target), combine)
}

// writeAdded writes the overhead of each target's pod network over the network of its nodes, and how much more that is
// than in the lab.
func writeAdded(b *bytes.Buffer, x galleryExperiment, cases []result.Case) {
	e := x.Results.Experiment
	pairs := slices.DeleteFunc(slices.Clone(pairings), func(p pairing) bool {
		return !slices.Contains(e.TargetNames(), p.product) || !slices.Contains(e.TargetNames(), p.bare)
	})
	intervals := len(cases) * (len(e.Targets) + len(pairs))
	alpha := e.Design.Alpha / float64(max(intervals, 1))
	var headings []string
	for _, c := range cases {
		headings = append(headings, c.Workload+", "+c.Metric)
	}
	line := func(name string, of func(result.Case) perBlock) {
		fmt.Fprintf(b, "| %s |", name)
		for _, c := range cases {
			fmt.Fprintf(b, " %s |", formatEstimate(of(c), hasTimeMetric(c), alpha))
		}
		b.WriteByte('\n')
	}
	table := func(what string) {
		fmt.Fprintf(b, "\n| %s | %s |\n|---%s|\n", what, strings.Join(headings, " | "), strings.Repeat("|---", len(cases)))
	}
	b.WriteString("\n## Pods' networks, less those of their nodes\n\n" + wrap(fmt.Sprintf("What a cluster of any CNI "+
		"has, such as kube-proxy, takes time between nodes too, and is no product's cost. So each path "+
		"between pods on different nodes is compared with the path between the nodes of the same target, in the same "+
		"block: requests by the difference of their medians in µs, streams by the change of throughput. The "+
		"%d intervals of the two tables, at %s each, hold at once at %s; with those of the next section, all hold at %s.",
		intervals, stats.Percent(1-alpha), stats.Percent(1-e.Design.Alpha), stats.Percent(1-2*e.Design.Alpha))) + "\n")
	table("between pods, less node to node")
	for _, target := range e.TargetNames() {
		line(target, func(c result.Case) perBlock { return x.beyondReference(c, target) })
	}
	b.WriteString("\n" + wrap("What this is more than in the lab's bare datapath of the same kind, again within blocks. "+
		"It is what a product's pod network adds to the datapath that it is built on, with what kube-proxy's rules do to "+
		"packets that a node forwards. What a product does to packets between nodes is not in it.") + "\n")
	table("product, less bare datapath")
	for _, p := range pairs {
		line(p.product+", less "+p.bare, func(c result.Case) perBlock {
			return paired(x.beyondReference(c, p.product), x.beyondReference(c, p.bare), difference)
		})
	}
}

// formatEstimate formats the estimate over blocks with its interval: a time in µs, or a change in percent if isTime is
// false.
func formatEstimate(values perBlock, isTime bool, alpha float64) string {
	var list []float64
	for _, v := range values {
		list = append(list, v)
	}
	if len(list) == 0 {
		return "–"
	}
	e := stats.Paired(list, alpha, stats.OneLook{})
	scaled, sign := func(v float64) float64 { return 1e6 * v }, "µs"
	if !isTime {
		scaled, sign = func(v float64) float64 { return 100 * math.Expm1(v) }, "%"
	}
	text := fmt.Sprintf("%+.1f %s", scaled(e.Shift), sign)
	switch {
	case !e.Bounded():
		return text + ", no interval: undecided"
	case !e.Excludes(0):
		return fmt.Sprintf("%s [%+.1f, %+.1f] undecided", text, scaled(e.Lo), scaled(e.Hi))
	}
	return fmt.Sprintf("%s [%+.1f, %+.1f]", text, scaled(e.Lo), scaled(e.Hi))
}
