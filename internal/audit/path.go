package audit

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"

	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/stats"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// Thresholds of the rules about paths.
const (
	clearMargin  = 0.05 // excess over node-node, for single numbers
	slowerMargin = 0.02 // slower within a node than between nodes, for single numbers
	fewBlocks    = 6    // minimum number of blocks of our runs
	toolMargin   = 0.10 // accepted difference of two tools on one path
	rankMargin   = 0.05 // minimum difference of two targets that are ranked
	opposeMargin = 0.20 // minimum change of each of two throughputs that oppose each other
)

// pathRules compare one path with another, or one tool with another.
var pathRules = []Rule{
	{Name: "above-bound", Severity: Warning, checkAll: aboveBound,
		About: "A path between nodes is not clearly faster than node-node: not beyond the smallest difference that " +
			"matters in paired runs, not by more than 5 % in single numbers. Pods that bypass the node's own network " +
			"(SR-IOV, host-device, macvlan, ipvlan, DPDK) may be faster, but not than the link that node-node fills.",
		Why: "A pod network is seldom faster than the nodes' own. Either the two were not measured alike (other nodes, " +
			"another time, another MTU, traffic that never left the node), or eBPF takes pods' packets past the netfilter " +
			"of the node, which packets between nodes pass, as Cilium can."},
	{Name: "same-node-slower", Severity: Warning, checkAll: sameSlower,
		About: "A path within a node is not slower than the same kind of path between nodes.",
		Why: "The path between nodes has the same ends and an additional wire: the two were not measured alike, were " +
			"mixed up, or the node had no CPU left for both ends."},
	{Name: "sources-disagree", Severity: Warning, checkAll: sourcesDisagree,
		About: "Two tools, or two rows of a table, that measure the same thing on the same target differ by less than 10 " +
			"%. Tables and outputs below different headings measure different things, unless the headings name only tools " +
			"or repetitions.",
		Why: "At least one of them measures something else, or the target changed in between; neither can be compared " +
			"with a third."},
	{Name: "sources-rank-otherwise", Severity: Warning, checkAll: rankReversals,
		About: "Two rows of a table that measure the same thing put two targets in the same order, where both have them 5 " +
			"% apart.",
		Why: "Then the better target depends on the tool, or on the moment: the table supports no ranking of the two."},
	{Name: "throughputs-oppose", Severity: Warning, checkAll: opposedThroughputs,
		About: "Two throughputs of TCP between the same kinds of ends, by address and by Service, or by two tools, do not " +
			"change in opposite directions from one target to another, both by more than 20 %.",
		Why: "What the targets differ in was met by one of the two, and not by the other: the traffic by a Service may " +
			"bypass a proxy that the traffic by address passes. Or the machines changed in between."},
}

// comparedMetrics lists the metrics by which paths are compared, the most significant first.
var comparedMetrics = []string{
	metric.Throughput, metric.P50, metric.Mean, metric.Latency, metric.Rate, metric.P90, metric.P99,
}

// aboveBound compares each case between nodes with node-node of the same workload.
func aboveBound(recs *records) (found []Finding, checked int) {
	for _, name := range recs.cases {
		of := recs.planned[name]
		if path := result.Path(of.Path); !path.Other() || path == result.NodeNode {
			continue
		}
		bound := recs.byCase[cmp.Or(of.Bound, recs.caseOn[pathAndWorkload{result.NodeNode, of.Workload}])]
		for _, target := range recs.targets(name) {
			on := recs.Experiment.BoundsOf(target)
			if bound[on] == nil && recs.Experiment.Imported != "" {
				on = recs.Experiment.Baseline // targets of a table share a testbed
			}
			for _, runs := range sections(recs.byCase[name][target]) {
				c := recs.comparePaths(name, inSection(bound[on], runs[0].Fact(FactSection)), runs)
				if !c.known {
					continue
				}
				checked++
				if c.least > math.Max(recs.margin(c), 0) && !(recs.bypassesNode(target) && c.fitsLink()) {
					found = append(found, Finding{
						Case: name, Target: target, Metric: c.metric, Runs: ids(runs), Place: c.place,
						Saw: fmt.Sprintf("%s, where node-node %s.", c.words(c.y), c.boundWords(c.x, on, target)),
					})
				}
			}
		}
	}
	return found, checked
}

// bypass matches the names of datapaths whose pods have a network device of their own, so that their packets pass
// by the routes and packet filters of the node.
var bypass = regexp.MustCompile(
	`(?i)sr-?iov|host-?device|mac-?vlan|ip-?vlan|dpdk|vdpa|vfio|(?:pci|device|nic)[ -]pass-?through`)

// bypassesNode reports whether the pods of a target are known to bypass the network of their node.
func (recs *records) bypassesNode(target string) bool {
	return bypass.MatchString(target) || bypass.MatchString(result.FactOf(recs.Facts[target], "datapath"))
}

// linkRates lists rates of links, in bits per second.
var linkRates = []float64{1e9, 2.5e9, 5e9, 10e9, 12.5e9, 20e9, 25e9, 40e9, 50e9, 100e9, 200e9, 400e9}

// Links that a node-node throughput may fill.
const (
	fillsLink    = 0.85 // minimum share of a link's rate
	atLinkFactor = 1 + atEdge
)

// fitsLink reports whether the faster path can be explained by what it bypasses: it is not beyond the link that
// node-node fills.
func (c pathDifference) fitsLink() bool {
	if c.metric != metric.Throughput {
		return true
	}
	for _, link := range linkRates {
		if c.x <= link*atLinkFactor && c.x >= link*fillsLink {
			return c.y <= link*atLinkFactor
		}
	}
	return true
}

// margin returns by how much a path may be faster than its bound.
func (recs *records) margin(c pathDifference) float64 {
	if c.paired && recs.Experiment.Design.Delta > 0 {
		return recs.Experiment.Design.Delta
	}
	return clearMargin
}

func sameSlower(recs *records) (found []Finding, checked int) {
	for _, name := range recs.cases {
		of := recs.planned[name]
		path := result.Path(of.Path)
		if !path.Same() {
			continue
		}
		between := recs.byCase[recs.caseOn[pathAndWorkload{path.Between(), of.Workload}]]
		for _, target := range recs.targets(name) {
			for _, runs := range sections(recs.byCase[name][target]) {
				// Here the path between nodes is the one that should not be better.
				c := recs.comparePaths(name, runs, inSection(between[target], runs[0].Fact(FactSection)))
				if !c.known {
					continue
				}
				checked++
				if c.least > slowerMargin {
					found = append(found, Finding{
						Case: name, Target: target, Metric: c.metric, Runs: ids(runs), Place: c.placeX,
						Saw: fmt.Sprintf("%s within a node, %s between nodes.", c.words(c.x), c.words(c.y)),
					})
				}
			}
		}
	}
	return found, checked
}

// A pathDifference is the improvement of y over x.
type pathDifference struct {
	known         bool
	metric        string
	unit          unit.Unit
	x, y          float64 // medians
	least         float64 // lower end of the improvement as a fraction; for single numbers the improvement
	paired        bool
	place, placeX string // of y, of x
}

// comparePaths compares runs of two cases by the first metric that both have and that has a better direction.
func (recs *records) comparePaths(caseName string, x, y []*result.Run) pathDifference {
	for _, metric := range recs.metrics(caseName) {
		c := newPathDifference(metric, x, y)
		if c.known {
			return c
		}
	}
	return pathDifference{}
}

// metrics returns the metric of the plan's case, or all metrics by which paths are compared.
func (recs *records) metrics(caseName string) []string {
	if metric := recs.planned[caseName].Metric; metric != "" {
		return []string{metric}
	}
	return comparedMetrics
}

// newPathDifference compares two sides by one metric. The result is unknown unless both sides have the metric in one
// unit, and are published numbers or enough measured blocks.
func newPathDifference(of string, x, y []*result.Run) pathDifference {
	c := pathDifference{metric: of}
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
			if place := PlaceOf(r, of); side == 0 && c.placeX == "" {
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

// judge sets the lower end of the improvement, if it can be known.
func (c pathDifference) judge(logs []float64, better metric.Better) pathDifference {
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

// words formats a value with its metric.
func (c pathDifference) words(v float64) string {
	text := unit.Format(v, c.unit)
	if c.metric != metric.Throughput {
		text = c.metric + " " + text
	}
	return text
}

// boundWords describes what the bound reaches, and on which target if that is another one.
func (c pathDifference) boundWords(v float64, on, target string) string {
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

// ids returns the ids of runs, without published numbers, which have a place.
func ids(runs []*result.Run) []string {
	var names []string
	for _, r := range runs {
		if !published(r) {
			names = append(names, r.ID)
		}
	}
	return names
}

// sourcesDisagree compares numbers of the same quantity from two tools or two rows. Output is compared with its table
// by another rule.
func sourcesDisagree(recs *records) (found []Finding, checked int) {
	printed := func(r *result.Run) bool { return r.Fact(FactTable) == TableOutput }
	for of, runs := range recs.pairs() {
		if !slices.ContainsFunc(runs, printed) {
			// nothing to leave out
		} else if own := slices.DeleteFunc(slices.Clone(runs), printed); len(own) > 0 {
			runs = own
		}
		for _, section := range sections(runs) {
			for _, metric := range comparedMetrics {
				findings, n := sourcesDisagreeIn(section, metric)
				checked += n
				for _, f := range findings {
					f.Case, f.Target, f.Metric = of.name, of.target, metric
					found = append(found, f)
				}
			}
		}
	}
	return found, checked
}

// An origin is a source of numbers of a quantity: a tool, or a row of a table.
type origin struct {
	name, place string
	unit        unit.Unit
	values      []float64
}

func sourcesDisagreeIn(runs []*result.Run, metric string) (found []Finding, checked int) {
	origins := originsOf(runs, metric)
	for i := 1; i < len(origins); i++ {
		a, b := origins[0], origins[i]
		if a.unit != b.unit {
			continue
		}
		checked++
		x, y := stats.Median(a.values), stats.Median(b.values)
		if math.Abs(math.Log(y/x)) > math.Log1p(toolMargin) {
			found = append(found, Finding{Place: b.place, Saw: fmt.Sprintf("%s says %s, %s %s: a factor of %.2f.",
				a.name, unit.Format(x, a.unit), b.name, unit.Format(y, b.unit), math.Max(x/y, y/x))})
		}
	}
	return found, checked
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
		name, place := sourceName(r), PlaceOf(r, of)
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

// neighbours is the number of following rows that a row is compared with, and of preceding targets that a target is
// compared with, so that the work grows linearly with the cells of a table.
const neighbours = 64

// rankReversals compares rows of a table about the same case and metric.
func rankReversals(recs *records) (found []Finding, checked int) {
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
				findings, n := rankReversal(a, b, rankMargin)
				checked += n
				found = append(found, findings...)
			}
		}
	}
	return found, checked
}

// opposedThroughputs compares rows of a table about the throughput of different cases between ends of the same kinds,
// on two paths or by two tools: with other parameters, such as sizes, another target may well be the better one. Rows
// with a loss are of datagrams, of which the receiver may get more if the sender is slower.
func opposedThroughputs(recs *records) (found []Finding, checked int) {
	type ends struct{ clientPod, serverPod, sameNode, otherNode bool }
	for _, table := range recs.tables {
		cells := slices.DeleteFunc(slices.Clone(recs.cells[table]), func(r *result.Run) bool {
			_, datagrams := r.Value(metric.Loss)
			return datagrams
		})
		before := map[ends][]row{}
		for _, b := range rowsOf(cells) {
			if b.metric != metric.Throughput {
				continue
			}
			path := result.Path(recs.planned[b.caseName].Path)
			key := ends{path.ClientPod(), path.ServerPod(), path.Same(), path.Other()}
			for _, a := range before[key][max(0, len(before[key])-neighbours):] {
				if a.caseName == b.caseName {
					continue // judged by its rank
				}
				if recs.planned[a.caseName].Path == recs.planned[b.caseName].Path && a.tool == b.tool {
					continue
				}
				findings, n := rankReversal(a, b, opposeMargin)
				checked += n
				found = append(found, findings...)
			}
			before[key] = append(before[key], b)
		}
	}
	return found, checked
}

// rankReversal finds the two targets of two rows whose ranking differs most, by more than a margin in both rows.
func rankReversal(a, b row, margin float64) (found []Finding, checked int) {
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
			checked++
			first, second := math.Log(a.values[i].Number/a.values[j].Number), math.Log(b.values[k].Number/b.values[l].Number)
			least := math.Min(math.Abs(first), math.Abs(second))
			if !(first*second < 0) || !(least > math.Log1p(margin)) || least <= worst {
				continue
			}
			worst = least
			found = []Finding{{Case: b.caseName, Target: x, Metric: b.metric, Place: b.places[k],
				Saw: fmt.Sprintf("From %s to %s it is %s by %q, %s by %q.",
					y, x, percent(math.Expm1(first)), a.label, percent(math.Expm1(second)), b.label)}}
		}
	}
	return found, checked
}

// sourceName returns the source of a run's numbers: its row in a table, or its tool.
func sourceName(r *result.Run) string {
	if label := r.Fact(FactRow); label != "" {
		return fmt.Sprintf("%q", label)
	}
	if t := r.Fact(FactTool); t != "" {
		return t
	}
	return r.Tool
}
