// Package metric has every metric once: its name, unit, direction and meaning.
//
// Tools, importers and targets report values of these metrics, analysis and reports find them by their names, and
// docs/metrics.md lists them. A name in code is a constant of this package and never text of its own, so that a typo
// does not compile; a test holds the other packages to that. Tables of other people may have metrics that are not here.
package metric

import (
	"slices"
	"strconv"
	"strings"

	"github.com/knotmeter/knotmeter/internal/unit"
)

// Better says which way a metric improves.
type Better string

// The directions. Neutral metrics are shown, never compared.
const (
	Higher  Better = "higher"
	Lower   Better = "lower"
	Neutral Better = ""
)

// A Metric is a quantity that a run may have a value of.
type Metric struct {
	Name    string
	Unit    unit.Unit
	Better  Better
	Meaning string // one sentence, without full stop
}

// A Part says what a metric is of, if not of everything that a run did. Most stand before the metric's name.
type Part struct {
	Name    string
	Meaning string
	Neutral bool // its metrics are shown, never compared
}

// All returns every metric, in the order of the documentation.
func All() []Metric { return slices.Clone(table) }

// Parts returns what a metric may be of.
func Parts() []Part { return slices.Clone(parts) }

// Of returns the metrics of these names, of a part: one of [Parts] or the name of a kind of requests with a dash; "" is
// everything. It panics as [Named] does.
func Of(part string, names ...string) []Metric {
	list := make([]Metric, len(names))
	for i, name := range names {
		list[i] = Named(name)
		list[i].Name = part + name
	}
	return list
}

// Named is [Find] for names that are constants of this package. It panics if there is no metric of that name.
func Named(name string) Metric {
	m, ok := Find(name)
	if !ok {
		panic("there is no metric " + strconv.Quote(name))
	}
	return m
}

// Find returns the metric of a name: one of the table, a percentile, a share of answers, or one of these of a part. It
// knows no kinds of requests.
func Find(name string) (Metric, bool) {
	if m, ok := plain(name); ok {
		return m, true
	}
	for _, p := range parts {
		rest, cut := strings.CutPrefix(name, p.Name)
		if p.Name == OfServer {
			rest, cut = strings.CutSuffix(name, p.Name)
		}
		m, ok := plain(rest)
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

// plain finds a metric that is of no part.
func plain(name string) (Metric, bool) {
	if i := slices.IndexFunc(table, func(m Metric) bool { return m.Name == name }); i >= 0 {
		return table[i], true
	}
	if q := Quantile(name); q > 0 {
		percent := strings.TrimPrefix(name, percentile)
		return Metric{name, unit.Second, Lower, percent + "th percentile of the latency"}, true
	}
	if m, ok := ofLayer(name); ok {
		return m, true
	}
	if m, ok := ofCounter(name); ok {
		return m, true
	}
	if class := StatusClass(name); class != "" {
		return Metric{name, unit.Ratio, Neutral, "share of the requests with such a status, 0xx for no answer"}, true
	}
	return Metric{}, false
}

// Programs is the layer of what else runs on the machine, which no packet has to go through.
const Programs = "programs"

// Layers returns the parts of the kernel that [OfLayer] is about, and user space.
func Layers() []Part { return slices.Clone(layers) }

// OfLayer is the part of a cost that is in a layer: [CPUPerOp] or [CPUPerGB] as far as sampling tells.
func OfLayer(cost, layer string) string { return cost + layerSign + layer }

// Layer is what [OfLayer] is of: cpu-per-op and vxlan of cpu-per-op.vxlan. Both are empty for any other metric.
func Layer(name string) (cost, layer string) {
	cost, layer, ok := strings.Cut(name, layerSign)
	if !ok || per[cost] == "" || layerOf(layer) < 0 {
		return "", ""
	}
	return cost, layer
}

// per are the costs that have parts in layers.
var per = map[string]string{CPUPerOp: "per operation", CPUPerGB: "per 10^9 bytes"}

func layerOf(name string) int {
	return slices.IndexFunc(layers, func(p Part) bool { return p.Name == name })
}

// ofLayer finds a metric of a layer. It is compared as a difference, by explain: of a layer that one target does not
// have there is no ratio.
func ofLayer(name string) (Metric, bool) {
	cost, layer := Layer(name)
	if cost == "" {
		return Metric{}, false
	}
	m, _ := plain(cost)
	meaning := "CPU time of both nodes " + layers[layerOf(layer)].Meaning + ", " + per[cost] + ", by sampling"
	return Metric{name, m.Unit, Neutral, meaning}, true
}

// Counters returns the kernel's counters that [OfCounter] is about.
func Counters() []Metric { return slices.Clone(counters) }

// OfNode stands before the name of a counter that is of the node and not of the pod on it.
const OfNode = "node-"

// IsShare says whether a counter is a share of a limit, which neither adds up nor goes up alone.
func IsShare(counter string) bool {
	return slices.ContainsFunc(counters, func(m Metric) bool { return m.Name == counter && m.Unit == unit.Ratio })
}

// OfMachine says whether a counter is of a whole machine and not of a network namespace.
func OfMachine(counter string) bool {
	return counter == SoftnetDrops || counter == SoftnetSqueezes || counter == CPUPressure
}

// OfCounter is a counter's name as a metric: how much it rose at the client in the window.
func OfCounter(counter string) string { return kernel + counter }

// ofCounter finds a metric of a counter. One says that something happened, not how bad that is: it is compared as a
// difference, by explain.
func ofCounter(name string) (Metric, bool) {
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

// Names of metrics that stand for many.
const (
	kernel     = "kernel."
	layerSign  = "."
	percentile = "p"
	status     = "status-"
	classEnd   = "xx"
)

// Quantile is what a percentile is of the whole: 0.999 for p99.9. It is 0 for any other metric.
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

// Status is the share of answers whose status begins with this digit; 0 is for requests without an answer.
func Status(digit int) string { return status + strconv.Itoa(digit) + classEnd }

// StatusClass is what [Status] is of, such as 4xx, or the status itself in a table that has single ones. It is empty
// for any other metric.
func StatusClass(name string) string {
	class, ok := strings.CutPrefix(name, status)
	if !ok {
		return ""
	}
	return class
}
