package audit

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/stats"
	"github.com/knotmeter/knotmeter/internal/targets"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// Thresholds of the rules about paths.
const (
	clearly   = 0.05 // beyond node-node, of single numbers
	slower    = 0.02 // within a node than between nodes, of single numbers
	fewBlocks = 6    // below which nothing is said of runs of ours
	toolsPart = 0.10 // two tools may differ by, on one path
	apart     = 0.05 // from where on two targets are ranked
)

// pathRules are the rules that hold one path beside another, or one tool beside another.
var pathRules = []Rule{
	{Name: "above-bound", Severity: Warning, all: aboveBound,
		About: "A path between nodes is not clearly faster than node-node: not beyond the smallest difference that " +
			"matters in paired runs, not by more than 5 % in single numbers.",
		Why: "A pod network is seldom faster than the nodes' own. Either the two were not measured alike (other nodes, " +
			"another time, another MTU, traffic that never left the node), or eBPF takes pods' packets past the netfilter " +
			"of the node, which packets between nodes pass, as Cilium can."},
	{Name: "same-node-slower", Severity: Warning, all: sameSlower,
		About: "A path within a node is not slower than the same kind of path between nodes.",
		Why: "The path between nodes has the same ends and an additional wire: the two were not measured alike, were " +
			"mixed up, or the node had no CPU left for both ends."},
	{Name: "sources-disagree", Severity: Warning, all: disagree,
		About: "Two tools, or two rows of a table, that measure the same thing on the same target differ by less than 10 " +
			"%.",
		Why: "At least one of them measures something else, or the target changed in between; neither can be compared " +
			"with a third."},
	{Name: "sources-rank-otherwise", Severity: Warning, all: rankOtherwise,
		About: "Two rows of a table that measure the same thing put two targets in the same order, where both have them 5 " +
			"% apart.",
		Why: "Then the better target depends on the tool, or on the moment: the table supports no ranking of the two."},
}

// bounded lists the metrics by which paths are held beside each other, the most telling first.
var bounded = []string{
	metric.Throughput, metric.P50, metric.Mean, metric.Latency, metric.Rate, metric.P90, metric.P99,
}

// aboveBound looks at each case between nodes beside node-node of the same workload.
func aboveBound(recs *records) (found []Finding, looked int) {
	for _, name := range recs.cases {
		of := recs.planned[name]
		if path := targets.Path(of.Path); !path.Other() || path == targets.NodeNode {
			continue
		}
		bound := recs.byCase[cmp.Or(of.Bound, recs.on[way{targets.NodeNode, of.Workload}])]
		for _, target := range recs.targets(name) {
			on := recs.Experiment.BoundsOf(target)
			if bound[on] == nil && recs.Experiment.Imported != "" {
				on = recs.Experiment.Baseline // a table's targets are of one testbed
			}
			c := recs.beside(name, bound[on], recs.byCase[name][target])
			if !c.known {
				continue
			}
			looked++
			if c.least > math.Max(recs.margin(c), 0) {
				found = append(found, Finding{
					Case: name, Target: target, Metric: c.metric, Runs: ids(recs.byCase[name][target]), Place: c.place,
					Saw: fmt.Sprintf("%s, where node-node %s.", c.words(c.y), c.tells(c.x, on, target)),
				})
			}
		}
	}
	return found, looked
}

// margin is by how much a path may be faster than its bound.
func (recs *records) margin(c contrast) float64 {
	if c.paired && recs.Experiment.Design.Delta > 0 {
		return recs.Experiment.Design.Delta
	}
	return clearly
}

func sameSlower(recs *records) (found []Finding, looked int) {
	for _, name := range recs.cases {
		of := recs.planned[name]
		path := targets.Path(of.Path)
		if !path.Same() {
			continue
		}
		between := recs.byCase[recs.on[way{path.Between(), of.Workload}]]
		for _, target := range recs.targets(name) {
			// The path between nodes takes the part of the one that should not be the better.
			c := recs.beside(name, recs.byCase[name][target], between[target])
			if !c.known {
				continue
			}
			looked++
			if c.least > slower {
				found = append(found, Finding{
					Case: name, Target: target, Metric: c.metric, Runs: ids(recs.byCase[name][target]), Place: c.placeX,
					Saw: fmt.Sprintf("%s within a node, %s between nodes.", c.words(c.x), c.words(c.y)),
				})
			}
		}
	}
	return found, looked
}

// A contrast is by how much y is better than x, as a logarithm.
type contrast struct {
	known         bool
	metric        string
	unit          unit.Unit
	x, y          float64 // medians
	least         float64 // by how much at least, as a fraction; of single numbers by how much
	paired        bool
	place, placeX string // of y, of x
}

// beside contrasts runs of two cases in the first metric that both have and that has a better.
func (recs *records) beside(caseName string, x, y []*result.Run) contrast {
	for _, metric := range recs.metrics(caseName) {
		c := contrastOf(metric, x, y)
		if c.known {
			return c
		}
	}
	return contrast{}
}

// metrics are those of the plan's case, or all that paths are held beside each other by.
func (recs *records) metrics(caseName string) []string {
	if metric := recs.planned[caseName].Metric; metric != "" {
		return []string{metric}
	}
	return bounded
}

// contrastOf is unknown unless both sides have the metric, in one unit, and are published numbers or
// enough blocks of ours.
func contrastOf(of string, x, y []*result.Run) contrast {
	c := contrast{metric: of}
	a, b := map[int]float64{}, map[int]float64{}
	var better metric.Better
	for side, runs := range [][]*result.Run{x, y} {
		for _, r := range runs {
			v, ok := r.Value(of)
			if !ok || !(v.Number > 0) || math.IsInf(v.Number, 0) ||
				v.Better == metric.Neutral || c.unit != "" && v.Unit != c.unit {
				continue
			}
			c.unit, better = v.Unit, v.Better
			if place := placeOf(r, of); side == 0 && c.placeX == "" {
				c.placeX = place
			} else if side == 1 && c.place == "" {
				c.place = place
			}
			[]map[int]float64{a, b}[side][r.Block] = v.Number
		}
	}
	if len(a) == 0 || len(b) == 0 {
		return c
	}
	var xs, ys, logs []float64
	for block, v := range a {
		xs = append(xs, v)
		if w, ok := b[block]; ok {
			logs = append(logs, math.Log(w)-math.Log(v))
		}
	}
	for _, w := range b {
		ys = append(ys, w)
	}
	c.x, c.y = stats.Median(xs), stats.Median(ys)
	return c.judge(logs, better)
}

// judge fills in what is known of the difference.
func (c contrast) judge(logs []float64, better metric.Better) contrast {
	sign := 1.0
	if better == metric.Lower {
		sign = -1
	}
	switch {
	case c.place != "" && c.placeX != "":
		c.known, c.least = true, math.Expm1(sign*math.Log(c.y/c.x))
	case len(logs) >= fewBlocks:
		e := stats.Paired(logs, 1-confidence, stats.OneLook{})
		end := e.Lo
		if sign < 0 {
			end = -e.Hi
		}
		c.known, c.paired, c.least = true, true, math.Expm1(end)
	}
	return c
}

// words is a value with its metric, for a sentence.
func (c contrast) words(v float64) string {
	text := unit.Format(v, c.unit)
	if c.metric != metric.Throughput {
		text = c.metric + " " + text
	}
	return text
}

// tells says what the bound reaches, and where if that is elsewhere.
func (c contrast) tells(v float64, on, target string) string {
	verb := "needs "
	if c.unit != unit.Second {
		verb = "carries "
	}
	text := verb + unit.Format(v, c.unit)
	if on != target {
		text += " on " + on
	}
	return text
}

// ids are the names of runs, but not of published numbers, which have a place.
func ids(runs []*result.Run) []string {
	var names []string
	for _, r := range runs {
		if !published(r) {
			names = append(names, r.ID)
		}
	}
	return names
}

// disagree looks at numbers of the same thing that two tools or two rows give. Output is held to its table elsewhere.
func disagree(recs *records) (found []Finding, looked int) {
	printed := func(r *result.Run) bool { return r.Fact(FactTable) == TableOutput }
	for of, runs := range recs.pairs() {
		if !slices.ContainsFunc(runs, printed) {
			// nothing to leave out
		} else if own := slices.DeleteFunc(slices.Clone(runs), printed); len(own) > 0 {
			runs = own
		}
		for _, metric := range bounded {
			saw, n := disagreeIn(runs, metric)
			looked += n
			for _, f := range saw {
				f.Case, f.Target, f.Metric = of.name, of.target, metric
				found = append(found, f)
			}
		}
	}
	return found, looked
}

// An origin is where numbers of the same thing come from: a tool, or a row of a table.
type origin struct {
	name, place string
	unit        unit.Unit
	values      []float64
}

func disagreeIn(runs []*result.Run, metric string) (found []Finding, looked int) {
	origins := originsOf(runs, metric)
	for i := 1; i < len(origins); i++ {
		a, b := origins[0], origins[i]
		if a.unit != b.unit {
			continue
		}
		looked++
		x, y := stats.Median(a.values), stats.Median(b.values)
		if math.Abs(math.Log(y/x)) > math.Log1p(toolsPart) {
			found = append(found, Finding{Place: b.place, Saw: fmt.Sprintf("%s says %s, %s %s: a factor of %.2f.",
				a.name, unit.Format(x, a.unit), b.name, unit.Format(y, b.unit), math.Max(x/y, y/x))})
		}
	}
	return found, looked
}

func originsOf(runs []*result.Run, of string) []origin {
	var origins []origin
	at := map[string]int{}
	for _, r := range runs {
		v, ok := r.Value(of)
		extreme := slices.Contains([]string{AggregateMax, AggregateMin}, r.Fact(FactAggregate))
		if !ok || !(v.Number > 0) || math.IsInf(v.Number, 0) || extreme {
			continue
		}
		name, place := nameOf(r), placeOf(r, of)
		key := r.Fact(FactTable) + "\x00" + name
		i, seen := at[key]
		if !seen {
			i = len(origins)
			at[key] = i
			if i > 0 && origins[0].name == name {
				name += " in " + r.Fact(FactTable)
			}
			origins = append(origins, origin{name: name, place: place, unit: v.Unit})
		}
		origins[i].values = append(origins[i].values, v.Number)
	}
	return origins
}

// neighbours is with how many rows behind it a row is compared, and a target with how many before it, so that the work
// grows with the cells of a table alone.
const neighbours = 64

// rankOtherwise looks at rows of a table that are of the same case and metric.
func rankOtherwise(recs *records) (found []Finding, looked int) {
	for _, table := range recs.tables {
		behind := map[[2]string][]row{}
		rows := rowsOf(recs.cells[table])
		for _, b := range slices.Backward(rows) {
			key := [2]string{b.caseName, b.metric}
			behind[key] = append(behind[key], b)
		}
		for _, a := range rows {
			key := [2]string{a.caseName, a.metric}
			behind[key] = behind[key][:len(behind[key])-1]
			others := behind[key]
			for _, b := range slices.Backward(others[max(0, len(others)-neighbours):]) {
				if a.label == b.label {
					continue
				}
				saw, n := otherwise(a, b)
				looked += n
				found = append(found, saw...)
			}
		}
	}
	return found, looked
}

// otherwise finds the two targets of two rows that differ most in how they are ranked.
func otherwise(a, b row) (found []Finding, looked int) {
	worst, at := 0.0, map[string]int{}
	for k, target := range slices.Backward(b.targets) {
		at[target] = k
	}
	for i, x := range a.targets {
		k, known := at[x]
		if !known {
			continue
		}
		for j := max(0, i-neighbours); j < i; j++ {
			y := a.targets[j]
			l, known := at[y]
			if !known {
				continue
			}
			looked++
			first, second := math.Log(a.values[i].Number/a.values[j].Number), math.Log(b.values[k].Number/b.values[l].Number)
			least := math.Min(math.Abs(first), math.Abs(second))
			if !(first*second < 0) || !(least > math.Log1p(apart)) || least <= worst {
				continue
			}
			worst = least
			found = []Finding{{Case: a.caseName, Target: x, Metric: a.metric, Place: b.places[k],
				Saw: fmt.Sprintf("From %s to %s it is %s by %q, %s by %q.",
					y, x, percent(math.Expm1(first)), a.label, percent(math.Expm1(second)), b.label)}}
		}
	}
	return found, looked
}

// nameOf is what gave the numbers of a run: its row in a table, or its tool.
func nameOf(r *result.Run) string {
	if label := r.Fact(FactRow); label != "" {
		return fmt.Sprintf("%q", label)
	}
	if t := r.Fact(FactTool); t != "" {
		return t
	}
	return r.Tool
}
