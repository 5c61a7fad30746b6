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
	if class := StatusClass(name); class != "" {
		return Metric{name, unit.Ratio, Neutral, "share of the requests with such a status, 0xx for no answer"}, true
	}
	return Metric{}, false
}

// Names of metrics that stand for many.
const (
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
