// Package metric defines every metric: its name, unit, direction and meaning.
//
// Tools, importers and targets report values of these metrics, analysis and reports find them by their names, and
// docs/metrics.md lists them. Code uses the constants of this package instead of literal names, so that a typo does not
// compile; a test checks that. Imported tables may have metrics that are not defined here.
package metric

import (
	"slices"
	"strconv"
	"strings"

	"github.com/knotmeter/knotmeter/internal/unit"
)

// Better is the direction in which a metric improves.
type Better string

// The directions. Neutral metrics are shown but not compared.
const (
	Higher  Better = "higher"
	Lower   Better = "lower"
	Neutral Better = ""
)

// A Metric is a quantity that a run can measure.
type Metric struct {
	Name    string
	Unit    unit.Unit
	Better  Better
	Meaning string // one sentence, without full stop
}

// A Part restricts a metric to a part of what a run did. All but [OfServer] are prefixes of the metric's name.
type Part struct {
	Name    string
	Meaning string
	Neutral bool // its metrics are shown but not compared
}

// All returns the metrics of the table, in the order of the documentation.
func All() []Metric { return slices.Clone(table) }

// Parts returns the parts that metrics can be restricted to.
func Parts() []Part { return slices.Clone(parts) }

// Of returns the named metrics restricted to a part: one of [Parts], or the name of a kind of requests with a dash; ""
// is no restriction. It panics as [Named] does.
func Of(part string, names ...string) []Metric {
	list := make([]Metric, len(names))
	for i, name := range names {
		list[i] = Named(name)
		list[i].Name = part + name
	}
	return list
}

// Named returns the metric of a name that is a constant of this package. It panics if there is no such metric.
func Named(name string) Metric {
	m, ok := Find(name)
	if !ok {
		panic("there is no metric " + strconv.Quote(name))
	}
	return m
}

// Find returns the metric of a name: one of the table, a percentile, a share of answers, a layer's share of CPU time, a
// kernel counter, or one of these restricted to one of [Parts]. It does not know the names of kinds of requests.
func Find(name string) (Metric, bool) {
	if m, ok := findPlain(name); ok {
		return m, true
	}
	for _, p := range parts {
		rest, cut := strings.CutPrefix(name, p.Name)
		if p.Name == OfServer {
			rest, cut = strings.CutSuffix(name, p.Name)
		}
		m, ok := findPlain(rest)
		if !cut || !ok {
			continue
		}
		m.Name, m.Meaning = name, m.Meaning+"; "+p.Meaning
		if p.Neutral {
			m.Better = Neutral
		}
		return m, true
	}
	return Metric{}, false
}

// findPlain finds a metric without a part.
func findPlain(name string) (Metric, bool) {
	if i := slices.IndexFunc(table, func(m Metric) bool { return m.Name == name }); i >= 0 {
		return table[i], true
	}
	if q := Quantile(name); q > 0 {
		percent := strings.TrimPrefix(name, percentile)
		return Metric{name, unit.Second, Lower, percent + "th percentile of the latency"}, true
	}
	if m, ok := findLayer(name); ok {
		return m, true
	}
	if m, ok := findCounter(name); ok {
		return m, true
	}
	if class := StatusClass(name); class != "" {
		return Metric{name, unit.Ratio, Neutral, "share of the requests with such a status, 0xx for no answer"}, true
	}
	return Metric{}, false
}

// Programs is the layer of other programs on the machine, which packets do not pass through.
const Programs = "programs"

// Layers returns the parts of the kernel, and user space, that [OfLayer] accepts.
func Layers() []Part { return slices.Clone(layers) }

// OfLayer returns the name of the metric for the part of a cost, [CPUPerOp] or [CPUPerGB], that sampling finds in a
// layer.
func OfLayer(cost, layer string) string { return cost + layerSign + layer }

// Layer splits a name from [OfLayer]: cpu-per-op and vxlan for cpu-per-op.vxlan. Both results are empty for other
// metrics.
func Layer(name string) (cost, layer string) {
	cost, layer, ok := strings.Cut(name, layerSign)
	if !ok || costUnits[cost] == "" || layerIndex(layer) < 0 {
		return "", ""
	}
	return cost, layer
}

// costUnits describes the costs that have parts in layers.
var costUnits = map[string]string{CPUPerOp: "per operation", CPUPerGB: "per 10^9 bytes"}

func layerIndex(name string) int {
	return slices.IndexFunc(layers, func(p Part) bool { return p.Name == name })
}

// findLayer finds a metric of a layer. It is neutral, because no ratio can be computed if a target lacks the layer;
// package explain compares differences.
func findLayer(name string) (Metric, bool) {
	cost, layer := Layer(name)
	if cost == "" {
		return Metric{}, false
	}
	m, _ := findPlain(cost)
	meaning := "CPU time of both nodes " + layers[layerIndex(layer)].Meaning + ", " + costUnits[cost] + ", by sampling"
	return Metric{name, m.Unit, Neutral, meaning}, true
}

// Counters returns the kernel's counters that [OfCounter] accepts.
func Counters() []Metric { return slices.Clone(counters) }

// OfNode is the prefix of the name of a counter that is read on the node and not in the pod.
const OfNode = "node-"

// IsShare reports whether a counter is a share of a limit, which cannot be summed and may fall.
func IsShare(counter string) bool {
	return slices.ContainsFunc(counters, func(m Metric) bool { return m.Name == counter && m.Unit == unit.Ratio })
}

// OfMachine reports whether a counter belongs to a whole machine and not to a network namespace.
func OfMachine(counter string) bool {
	return counter == SoftnetDrops || counter == SoftnetSqueezes || counter == CPUPressure
}

// OfCounter returns the name of the metric for the increase of a counter at the client in the window.
func OfCounter(counter string) string { return kernel + counter }

// findCounter finds a metric of a counter. It is neutral, because a counter does not show how harmful its events are;
// package explain compares differences.
func findCounter(name string) (Metric, bool) {
	counter, is := strings.CutPrefix(name, kernel)
	bare, ofNode := strings.CutPrefix(counter, OfNode)
	i := slices.IndexFunc(counters, func(m Metric) bool { return m.Name == bare })
	if !is || i < 0 {
		return Metric{}, false
	}
	meaning := counters[i].Meaning
	if ofNode {
		meaning += "; on the node of a pod"
	}
	return Metric{name, counters[i].Unit, Neutral, meaning}, true
}

// Parts of composed metric names.
const (
	kernel            = "kernel."
	layerSign         = "."
	percentile        = "p"
	status            = "status-"
	statusClassSuffix = "xx"
)

// Quantile returns the quantile of a percentile as a fraction: 0.999 for p99.9. It is 0 for other metrics.
func Quantile(name string) float64 {
	text, ok := strings.CutPrefix(name, percentile)
	if !ok {
		return 0
	}
	q, err := strconv.ParseFloat(text+"e-2", 64) // percent, rounded once
	if err != nil || !(q > 0 && q < 1) {
		return 0
	}
	return q
}

// Status returns the name of the share of answers whose status begins with this digit; 0 is for requests without an
// answer.
func Status(digit int) string { return status + strconv.Itoa(digit) + statusClassSuffix }

// StatusClass returns the class of a name from [Status], such as 4xx, or the status itself if a published table lists
// single ones. It is empty for other metrics.
func StatusClass(name string) string {
	class, ok := strings.CutPrefix(name, status)
	if !ok {
		return ""
	}
	return class
}
