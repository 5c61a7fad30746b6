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

// perBlock is a number for each block that has one.
type perBlock map[int]float64

// paired combines the numbers of the blocks that both have.
func paired(a, b perBlock, combine func(a, b float64) float64) perBlock {
	both := perBlock{}
	for block, x := range a {
		if y, has := b[block]; has {
			both[block] = combine(x, y)
		}
	}
	return both
}

func less(a, b float64) float64 { return a - b }

func logRatio(a, b float64) float64 { return math.Log(a / b) }

// values are those of a metric in the runs of a case on a target that count, as for [compare.Compare].
func (x exhibit) values(caseName, metricName, target string) perBlock {
	of, last := perBlock{}, result.LastAttempts(x.Runs)
	for i := range x.Runs {
		r := &x.Runs[i]
		v, has := r.Value(metricName)
		if r.Case == caseName && r.Target == target && r.Valid() && last(r) && !x.mistaken(r.ID) &&
			has && v.Usable() && v.Number > 0 {
			of[r.Block] = v.Number
		}
	}
	return of
}

// mistaken reports whether the audit found an error in a run.
func (x exhibit) mistaken(run string) bool {
	return slices.ContainsFunc(x.Findings, func(f audit.Finding) bool {
		return f.Severity == audit.Error && slices.Contains(f.Runs, run)
	})
}

// takesTime reports whether a case is judged by a time, not by a rate.
func takesTime(c result.Case) bool {
	m, known := metric.Find(c.Metric)
	return known && m.Unit == unit.Second
}

// beyondReference is what a path takes in addition to the same target's node-to-node reference in the same block:
// seconds of requests, logarithms of the ratio of rates.
func (x exhibit) beyondReference(c result.Case, target string) perBlock {
	combine := logRatio
	if takesTime(c) {
		combine = less
	}
	return paired(x.values(c.Name, c.Metric, target), x.values(c.Bound, c.Metric, target), combine)
}

// writeAdded writes what the pods' network of each target takes in addition to the network of its nodes, and what that
// is more than in the lab.
func writeAdded(b *bytes.Buffer, x exhibit, cases []result.Case) {
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
			fmt.Fprintf(b, " %s |", added(of(c), takesTime(c), alpha))
		}
		b.WriteByte('\n')
	}
	table := func(what string) {
		fmt.Fprintf(b, "\n| %s | %s |\n|---%s|\n", what, strings.Join(headings, " | "), strings.Repeat("|---", len(cases)))
	}
	b.WriteString("\n## Pods' networks, less those of their nodes\n\n" + lines(fmt.Sprintf("What a cluster of any CNI "+
		"has, such as kube-proxy, takes time between nodes too, and is no product's cost. So each path "+
		"between pods on different nodes is compared with the path between the nodes of the same target, in the same "+
		"block: requests by the difference of their medians in µs, streams by the change of throughput. All %d "+
		"intervals of the two tables hold at once at %s.",
		intervals, stats.Percent(1-e.Design.Alpha))) + "\n")
	table("between pods, less node to node")
	for _, target := range e.TargetNames() {
		line(target, func(c result.Case) perBlock { return x.beyondReference(c, target) })
	}
	b.WriteString("\n" + lines("What this is more than in the lab's bare datapath of the same kind, again within blocks. "+
		"It is what a product's pod network adds to the datapath that it is built on, with what kube-proxy's rules do to "+
		"packets that a node forwards. What a product does to packets between nodes is not in it.") + "\n")
	table("product, less bare datapath")
	for _, p := range pairs {
		line(p.product+", less "+p.bare, func(c result.Case) perBlock {
			return paired(x.beyondReference(c, p.product), x.beyondReference(c, p.bare), less)
		})
	}
}

// added is the estimate over blocks with its interval: a time in µs, or a change.
func added(of perBlock, time bool, alpha float64) string {
	var list []float64
	for _, v := range of {
		list = append(list, v)
	}
	if len(list) == 0 {
		return "–"
	}
	e := stats.Paired(list, alpha, stats.OneLook{})
	scaled, sign := func(v float64) float64 { return 1e6 * v }, "µs"
	if !time {
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
