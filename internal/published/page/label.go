package page

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/knotmeter/knotmeter/internal/audit"
	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// A measure is the description of figures in a label: what they measure, in which unit.
type measure struct {
	path, workload, params string
	bothWays               bool // a stream in both directions
	metric                 string
	parts                  []part // of a cell with several figures; empty: one figure
	scaledUnit
	tool      string
	aggregate string // mean, max or median; empty: not given
}

// A part is one of the figures in a cell.
type part struct {
	metric     string
	scaledUnit // zero: that of the measure
}

// perSecondWords matches a rate in words, such as "requests per second".
var perSecondWords = regexp.MustCompile(`(?i)(\w+) per sec(?:ond)?\b`)

// brackets matches text in round or square brackets.
var brackets = regexp.MustCompile(`[(\[]([^()\[\]]*)[)\]]`)

// parseMeasure parses a label such as "TCP Latency (Mean µs/Transaction Rate)".
func parseMeasure(label string) measure {
	text := perSecondWords.ReplaceAllString(clean(label), "$1/s")
	low := strings.ToLower(text)
	m := measure{path: pathOf(low)}
	for _, found := range brackets.FindAllStringSubmatch(text, -1) {
		m.parseBracket(strings.TrimSpace(found[1]))
	}
	if m.unit == "" {
		m.parseLastUnit(text)
	}
	if pieces := brackets.ReplaceAllString(text, ""); len(m.parts) == 0 && strings.Contains(pieces, "/") {
		m.parts = parseParts(pieces)
	}
	m.workload, m.params = workloadOf(low)
	if m.workload == "" && m.unit == unit.BitPerSecond && containsAny(low, "tcp", "udp") {
		m.workload, m.params = workloadOf(low + " throughput")
	}
	m.bothWays = m.params != "" && containsAny(low, bothWaysWords...)
	if m.metric == "" {
		m.metric = metricOf(brackets.ReplaceAllString(low, " "))
	}
	if m.metric == "" {
		m.metric = metricOf(low)
	}
	if m.metric == "" || m.metric == metric.Throughput {
		m.aggregate = aggregateOf(low)
	}
	return m
}

// parseBracket parses the text in a label's brackets: a unit, words and a unit, or the parts of a cell.
func (m *measure) parseBracket(text string) {
	found, name := lastUnit(strings.Fields(text))
	if u, ok := unitOf(text); ok {
		found, name = u, text
	}
	if name == "" {
		m.parts = parseParts(text)
		return
	}
	m.scaledUnit = found
	if strings.HasPrefix(name, "10^6") { // as in the tables of netperf, and of no other tool
		m.tool = "netperf"
	}
}

// lastUnit parses the last of several words as a unit; the name is empty if it is none.
func lastUnit(words []string) (u scaledUnit, name string) {
	if len(words) < 2 {
		return u, ""
	}
	u, ok := unitOf(words[len(words)-1])
	if !ok {
		return u, ""
	}
	return u, words[len(words)-1]
}

// parseParts parses the parts of a cell, between slashes; nil unless there are two or more, and all are known.
func parseParts(text string) (parts []part) {
	pieces := strings.Split(text, "/")
	for _, piece := range pieces {
		p := parsePart(piece)
		if p.metric == "" || len(pieces) < 2 {
			return nil
		}
		parts = append(parts, p)
	}
	return parts
}

// parsePart parses a part of a label such as "Mean µs", "Transaction Rate" or "TX-C"; without a metric it is unknown.
func parsePart(text string) (p part) {
	low := strings.ToLower(strings.TrimSpace(text))
	p.scaledUnit, _ = lastUnit(strings.Fields(text))
	switch {
	case low == "tx" || strings.HasPrefix(low, "tx-") || low == "sent" || low == "up":
		p.metric = metric.ThroughputTX
	case low == "rx" || strings.HasPrefix(low, "rx-") || low == "received" || low == "down":
		p.metric = metric.ThroughputRX
	default:
		p.metric = metricOf(low)
	}
	if p.metric == metric.Rate && p.unit == "" {
		p.scaledUnit = scaledUnit{unit.PerSecond, 1}
	}
	return p
}

// parseLastUnit parses a unit at the end of a label, as in "throughput Gbit/s" or "p99_us". That of a quantity, such as
// "64 KiB", is no unit of figures.
func (m *measure) parseLastUnit(text string) {
	words := strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune("_,;", r) })
	switch n := len(words); {
	case n == 1 && strings.Contains(text, "/s"): // the unit alone
		m.scaledUnit, _ = unitOf(words[0])
	case n > 1 && !unicode.IsDigit([]rune(words[n-2])[0]):
		m.scaledUnit, _ = lastUnit(words)
	}
}

// withDefaults fills in from a table's title what the label lacks.
func (m measure) withDefaults(title measure) measure {
	m.path = cmp.Or(m.path, title.path)
	m.workload = cmp.Or(m.workload, title.workload)
	if m.params == "" {
		m.params, m.bothWays = title.params, title.bothWays
	}
	m.metric = cmp.Or(m.metric, title.metric)
	m.tool = cmp.Or(m.tool, title.tool)
	m.aggregate = cmp.Or(m.aggregate, title.aggregate)
	m.scaledUnit = cmp.Or(m.scaledUnit, title.scaledUnit)
	if len(m.parts) == 0 {
		m.parts = title.parts
	}
	return m
}

// describesMeasurement reports whether a label names what is measured, rather than a target.
func (m measure) describesMeasurement() bool {
	return m.metric != "" || m.workload != "" || m.path != "" || len(m.parts) > 1
}

// measured reports whether a figure is the result of a measurement: it is a rate, or its metric is named and has its
// unit.
func (m measure) measured(f figure) bool {
	u := cmp.Or(f.unit, m.unit)
	if len(m.parts) > 0 || u == unit.BitPerSecond || u == unit.PerSecond || m.workload != "" && m.metric != "" {
		return true
	}
	known, isMetric := metric.Find(m.metric)
	if !isMetric {
		return false
	}
	if u == "" {
		return m.metric != metric.Mean && m.metric != metric.Max && m.metric != metric.Min
	}
	return known.Unit == u || m.unit == unit.Second && known.Better == metric.Lower
}

// withoutUnit returns the name of a column without units in brackets.
func withoutUnit(header string) string {
	return brackets.ReplaceAllStringFunc(clean(header), func(found string) string {
		if _, ok := unitOf(found[1 : len(found)-1]); ok {
			return ""
		}
		return found
	})
}

// metricWords matches words for metrics, which are left out of the names of cases.
var metricWords = regexp.MustCompile(`(?i)\b(?:p_?\d{1,2}(?:\.\d+)?|\d{1,2}(?:\.\d+)?(?:th percentile|%tile)` +
	`|mean|average|avg|median|maximum|max|minimum|min|peak|latency|latencies)\b`)

// caseOf returns the case of a label, <path>/<workload>. Words of the label stand in for an unknown workload.
func (m measure) caseOf(label string, values []result.Value, families family.List) result.Case {
	name := m.workload
	if strings.HasSuffix(name, "-stream") && values[0].Metric == metric.Rate {
		name = "" // a throughput of requests
	}
	if name == "" && m.path == "" {
		words := brackets.ReplaceAllStringFunc(clean(label), func(found string) string {
			var in measure
			if in.parseBracket(found[1 : len(found)-1]); in.unit != "" || len(in.parts) > 0 {
				return " "
			}
			return found // it may tell two rows apart, as in "read (4K)"
		})
		name = slug(metricWords.ReplaceAllString(words, " "))
	}
	if name == "" || name == result.Unknown {
		name = cmp.Or(metricOfUnit(m.unit), "value")
	}
	if m.params != "" {
		name += ":" + m.params
	}
	c := families.ImportedCase(name)
	if c.Load.BothWays = m.bothWays; m.path != "" {
		c.Name, c.Path = m.path+"/"+name, result.Path(m.path)
	}
	return c
}

// slug converts a text to a name: lower-case words joined by dashes.
func slug(text string) string {
	between := func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '.' }
	words := strings.FieldsFunc(strings.ToLower(text), between)
	if len(words) == 0 {
		return result.Unknown
	}
	return strings.Join(words, "-")
}

// values converts the figures of a cell to values in base units.
func (m measure) values(figures []figure) ([]result.Value, error) {
	parts := m.parts
	if len(parts) == 0 || len(figures) == 1 && len(parts) != 1 {
		parts = []part{{metric: m.metric}}
	}
	if len(parts) != len(figures) {
		return nil, fmt.Errorf("%d figures, where the label names %d", len(figures), len(parts))
	}
	var values []result.Value
	for i, f := range figures {
		p := parts[i]
		in := cmp.Or(f.scaledUnit, p.scaledUnit, m.scaledUnit, scaledUnit{unit.Count, 1})
		u, scale := in.unit, in.scale
		name := p.metric
		switch {
		case name == "" && f.iops:
			name = metric.IOPS
		case name == "":
			name = metricOfUnit(u)
		case name == metric.Throughput && u == unit.PerSecond:
			name = metric.Rate
		case name == metric.Throughput && u == unit.Second, name == metric.Latency && u != unit.Second && u != unit.Count:
			name = metricOfUnit(u)
		}
		if f.suffix && scale != 1 {
			return nil, fmt.Errorf("a suffix, and a unit with a prefix in the header")
		}
		number := f.number * scale
		if !finite(number) || !finite(f.sd*scale) {
			return nil, fmt.Errorf("it is too large")
		}
		values = append(values, value(name, u, number))
		if f.sd > 0 {
			values = append(values, result.Value{Metric: name + audit.SpreadSuffix, Unit: u, Number: f.sd * scale})
		}
	}
	return values, nil
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// metricOfUnit returns the metric of a figure of which only the unit is known.
func metricOfUnit(u unit.Unit) string {
	switch u {
	case unit.BitPerSecond:
		return metric.Throughput
	case unit.Second:
		return metric.Latency
	case unit.PerSecond:
		return metric.Rate
	case unit.Ratio:
		return "share"
	}
	return "value"
}

// containsAny reports whether a text contains one of the words.
func containsAny(text string, words ...string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
}

// streams reports whether a lower-case text names streams of a network: "stream" alone may be any.
func streams(low string) bool {
	return strings.Contains(low, "stream") && containsAny(low, "tcp", "udp", "sctp", "iperf", "netperf")
}

// networkRate reports whether a lower-case text names a throughput, and no word that may make it that of another thing
// than a network, as in "sequential read throughput".
func networkRate(low string) bool {
	if !containsAny(low, "throughput", "bandwidth", "吞吐", "带宽") {
		return false
	}
	if containsAny(low, "tcp", "udp", "iperf", "netperf") || pathOf(low) != "" {
		return true
	}
	for _, word := range latinWord.FindAllString(brackets.ReplaceAllString(low, " "), -1) {
		if _, isUnit := unitOf(word); !isUnit && !networkWord.MatchString(word) {
			return false
		}
	}
	return true
}

var (
	latinWord   = regexp.MustCompile(`[\pL\d/.]+`)
	networkWord = regexp.MustCompile(`^(?:throughput|bandwidth|max|maximum|mean|average|avg|median|min|minimum|peak|` +
		`total|network|net|pods?|nodes?|hosts?|services?|to|from|same|other|inter|intra|cross|different|streams?|flows?|` +
		`connections?|threads?|single|multi|multiple|parallel|direct|bidirectional|full|duplex|ip|mtu|mss|tx|rx|sent|` +
		`received|send|receive|upload|download|in|out|with|per|mi?b|ki?b|b|\d.*|.*[^a-z].*)$`)
)

// workloadOf returns the workload that a lower-case label names, and its parameters; empty if it names none.
func workloadOf(low string) (workload, params string) {
	udp := containsAny(low, "udp")
	switch {
	case containsAny(low, "iops", "fio", "disk", "storage", "randread", "randwrite"):
		return "", ""
	case containsAny(low, "crr", "short conn", "short-conn", "短连接", "短链接", "短时延"):
		return "tcp-crr", ""
	case containsAny(low, "_rr", "tcp rr", "udp rr", "tcp-rr", "udp-rr", "request/response", "request-response", "长连接",
		"长链接", "round trip", "round-trip") ||
		containsAny(low, "tcp", "udp", "network") && containsAny(low, "latenc", "transaction"):
		if udp {
			return "udp-rr", ""
		}
		return "tcp-rr", ""
	case streams(low), networkRate(low):
		params := paramsOf(low)
		if udp {
			return "udp-stream", params
		}
		return "tcp-stream", params
	case udp && containsAny(low, "loss", "lost", "jitter", "datagram", "丢包"):
		return "udp-stream", ""
	}
	return "", ""
}

var (
	flowsWord = regexp.MustCompile(
		`(\d{1,4})\s*(?:parallel\s+)?(?:streams?|flows?|connections?|threads?|processes)\b|-p ?(\d{1,4})\b`)
	sizeWord = regexp.MustCompile(`\b(\d{1,6})\s?(b|bytes?|kib|kb|k)\b`)
	mtuWord  = regexp.MustCompile(`\b(mtu|mss)\s?=?\s?(\d{2,5})\b`)
)

// oneWayWord matches a word for the direction of a stream, as tables of network cards have it.
var oneWayWord = regexp.MustCompile(`\b[tr]x\b`)

// bothWaysWords are words for a stream in both directions at once.
var bothWaysWords = []string{"bidirectional", "bidir", "full duplex", "双向"}

// paramsOf returns the parameters of a stream in a lower-case label. Streams with different parameters are different
// cases; without them they would count as repetitions.
func paramsOf(low string) string {
	var params []string
	if containsAny(low, bothWaysWords...) {
		params = append(params, "direction=both")
	} else if found := oneWayWord.FindString(low); found != "" {
		params = append(params, "direction="+found)
	}
	if found := flowsWord.FindStringSubmatch(low); found != nil {
		params = append(params, "flows="+cmp.Or(found[1], found[2]))
	} else if containsAny(low, "multi", "parallel", "多流", "并发") {
		params = append(params, "flows=many")
	}
	if found := sizeWord.FindStringSubmatch(low); found != nil {
		params = append(params, "size="+found[1]+found[2])
	}
	if found := mtuWord.FindStringSubmatch(low); found != nil {
		params = append(params, found[1]+"="+found[2])
	}
	return strings.Join(params, ",")
}

// percentileWord matches p99, P99.9, 99th percentile, 99%tile, P99_LATENCY, and a label that is only 99th or 99.9%.
var percentileWord = regexp.MustCompile(`\bp_?(\d{1,2}(?:\.\d+)?)(?:\b|_)` +
	`|\b(\d{1,2}(?:\.\d+)?) ?(?:th percentile|%tile|%-tile|th pct)|^(\d{2}(?:\.\d+)?)(?:th|st|nd|rd|%)$`)

// metricOf returns the metric that a lower-case text names; empty if it names none.
func metricOf(low string) string {
	if found := percentileWord.FindStringSubmatch(low); found != nil {
		return "p" + cmp.Or(found[1], found[2], found[3])
	}
	throughput := containsAny(low, "throughput", "bandwidth", "吞吐", "带宽") || streams(low)
	switch {
	case containsAny(low, "loss", "lost", "丢包"):
		return metric.Loss
	case containsAny(low, "jitter", "抖动"):
		return metric.Jitter
	case containsAny(low, "retrans", "重传"):
		return metric.Retransmits
	case containsAny(low, "iops"):
		return metric.IOPS
	case throughput:
		return metric.Throughput
	case containsAny(low, "transaction rate", "trans/s", "transactions", "req/s", "requests/s", "rps", "qps"):
		return metric.Rate
	case containsAny(low, "median", "中位"):
		return metric.P50
	case containsAny(low, "mean", "average", "avg", "平均"):
		return metric.Mean
	case containsAny(low, "max", "peak", "最大", "峰值") && !largestLoad(low):
		return metric.Max
	case containsAny(low, "min_", "minimum", "最小") || low == "min":
		return metric.Min
	case containsAny(low, "latency", "latencies", "时延", "延迟"):
		return metric.Latency
	}
	return ""
}

// largestLoad reports whether a lower-case label says that the load is the largest, rather than the figure.
func largestLoad(low string) bool { return containsAny(low, "udp max", "max load", "max size") }

// aggregateOf returns how a figure summarises its runs, by a lower-case label; empty if the label does not name it.
func aggregateOf(low string) string {
	switch {
	case containsAny(low, "max", "peak", "最大", "峰值") && !largestLoad(low):
		return audit.AggregateMax
	case containsAny(low, "mean", "average", "avg", "平均"):
		return audit.AggregateMean
	case containsAny(low, "median", "中位"):
		return audit.AggregateMedian
	}
	return ""
}

// pathOf returns the one of the nine paths that a lower-case label names; empty if it names none, and without /same or
// /other if it does not name the node.
func pathOf(low string) string {
	where, low := cutNodeWords(low)
	pods, service := strings.Count(low, "pod"), containsAny(low, "service", "svc")
	node := containsAny(low, "节点", "node", "host", "bare metal", "baremetal")
	switch {
	case service && pods > 0:
		return "pod-svc" + where
	case service && node:
		return "node-svc" + where
	case service:
		return ""
	case pods > 1:
		return "pod-pod" + where
	case pods == 1 && node:
		return "pod-node" + where
	case pods == 0 && (containsAny(low, "节点间", "节点之间", "节点和节点", "bare metal", "baremetal") ||
		strings.Count(low, "node") > 1 || strings.Count(low, "host") > 1):
		if where == "/same" { // within one node there is no path of this name
			return ""
		}
		return "node-node"
	}
	return ""
}

// cutNodeWords returns which nodes a lower-case text names, /same or /other, and the text without the words for it.
func cutNodeWords(low string) (where, rest string) {
	takeNodeWords := func(place, replacement string, phrases ...string) {
		for _, phrase := range phrases {
			if strings.Contains(low, phrase) {
				if where == "" {
					where = place
				}
				low = strings.ReplaceAll(low, phrase, replacement)
			}
		}
	}
	// 不同节点 (other node) contains 同节点 (same node), so it comes first.
	takeNodeWords("/other", " ", "不同的节点", "不同节点", "跨节点", "其他节点", "另一节点", "different nodes", "different node",
		"other node", "other-node", "another node", "inter-node", "internode", "cross-node", "cross node", "/other")
	takeNodeWords("/same", " node ", "pod 所在的节点", "pod所在的节点", "pod 所在节点")
	takeNodeWords("/same", " ", "相同的节点", "相同节点", "同一节点", "同节点", "此节点", "本节点", "same-node", "same node",
		"intra-node", "intranode", "/same")
	return where, low
}
