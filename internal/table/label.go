package table

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

// A measure is what a label says of its figures.
type measure struct {
	path, workload, params string
	bothWays               bool // of a stream
	metric                 string
	parts                  []part // of a cell with several figures; none: one figure
	unit                   unit.Unit
	scale                  float64
	tool                   string
	aggregate              string // mean, max, min, median of a throughput or a rate
}

// A part is one of the figures in a cell.
type part struct {
	metric string
	unit   unit.Unit // "": that of the measure
	scale  float64
}

// brackets finds what stands in round or square brackets.
var brackets = regexp.MustCompile(`[(\[]([^()\[\]]*)[)\]]`)

// narrow replaces full-width brackets and punctuation.
func narrow(text string) string { return narrowed.Replace(text) }

var (
	narrowed = strings.NewReplacer("（", "(", "）", ")", "【", "[",
		"】", "]", "，", ",", "：", ":", "／", "/", "％", "%", "\u00a0", " ")
	unmarked = strings.NewReplacer("`", "", "**", "", "<br>", " ", "<br/>", " ")
)

// clean is a label without marks of Markdown and without double blanks.
func clean(text string) string {
	return strings.Join(strings.Fields(unmarked.Replace(narrow(text))), " ")
}

// measureOf understands a label such as "TCP Latency (Mean µs/Transaction Rate)".
func measureOf(label string) measure {
	text := clean(label)
	low := strings.ToLower(text)
	m := measure{path: pathOf(low)}
	for _, found := range brackets.FindAllStringSubmatch(text, -1) {
		m.bracket(strings.TrimSpace(found[1]))
	}
	if m.unit == "" {
		m.lastWord(text)
	}
	m.workload, m.params = workloadOf(low)
	if m.workload == "" && m.unit == unit.BitPerSecond && has(low, "tcp", "udp") {
		m.workload, m.params = workloadOf(low + " throughput")
	}
	m.bothWays = m.params != "" && has(low, bothWays...)
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

// bracket reads what a label has in brackets: a unit, a word and a unit, or the parts of a cell.
func (m *measure) bracket(text string) {
	if scale, u, ok := unitOf(text); ok {
		m.unit, m.scale = u, scale
		m.netperf(text)
		return
	}
	words := strings.Fields(text)
	if len(words) > 1 {
		if scale, u, ok := unitOf(words[len(words)-1]); ok && u != unit.Count {
			m.unit, m.scale = u, scale
			m.netperf(words[len(words)-1])
			return
		}
	}
	pieces := strings.Split(text, "/")
	if len(pieces) < 2 {
		return
	}
	var parts []part
	for _, piece := range pieces {
		p, ok := partOf(piece)
		if !ok {
			return
		}
		parts = append(parts, p)
	}
	m.parts = parts
}

// netperf is known by the unit of its tables, which nobody else has.
func (m *measure) netperf(unitName string) {
	if strings.HasPrefix(unitName, "10^6") {
		m.tool = "netperf"
	}
}

// partOf understands "Mean µs", "Transaction Rate" or "TX-C".
func partOf(text string) (part, bool) {
	low := strings.ToLower(strings.TrimSpace(text))
	var p part
	words := strings.Fields(text)
	if len(words) > 1 {
		if scale, u, ok := unitOf(words[len(words)-1]); ok && u != unit.Count {
			p.unit, p.scale = u, scale
		}
	}
	switch {
	case low == "tx" || strings.HasPrefix(low, "tx-") || low == "sent" || low == "up":
		p.metric = metric.ThroughputTX
	case low == "rx" || strings.HasPrefix(low, "rx-") || low == "received" || low == "down":
		p.metric = metric.ThroughputRX
	default:
		p.metric = metricOf(low)
	}
	if p.metric == metric.Rate && p.unit == "" {
		p.unit, p.scale = unit.PerSecond, 1
	}
	return p, p.metric != ""
}

// lastWord takes a unit from the end of a label without brackets: "throughput Gbit/s", "p99_us".
func (m *measure) lastWord(text string) {
	words := strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || r == '_' || r == ',' || r == ';' })
	if len(words) < 2 {
		return
	}
	if scale, u, ok := unitOf(words[len(words)-1]); ok && u != unit.Count {
		m.unit, m.scale = u, scale
	}
}

// unitOf understands the name of a unit as people write it.
func unitOf(name string) (scale float64, u unit.Unit, ok bool) {
	name = strings.TrimSpace(name)
	if name == "" || strings.ContainsAny(name[:1], "0123456789+-.") && !strings.HasPrefix(name, "10^6") {
		return 0, "", false
	}
	switch strings.ToLower(name) {
	case "microseconds", "microsecond", "usec", "usecs", "µsec", "微秒":
		name = "us"
	case "milliseconds", "millisecond", "msec", "毫秒":
		name = "ms"
	case "秒":
		name = "s"
	case "10^6bits/sec", "10^6bits/s":
		name = "10^6bits/s"
	}
	scale, u, err := unit.Parse("1 " + name)
	return scale, u, err == nil && u != unit.Count
}

// orOf takes from the title of a table what the label leaves open.
func (m measure) orOf(title measure) measure {
	m.path = cmp.Or(m.path, title.path)
	m.workload = cmp.Or(m.workload, title.workload)
	if m.params == "" {
		m.params, m.bothWays = title.params, title.bothWays
	}
	m.metric = cmp.Or(m.metric, title.metric)
	m.tool = cmp.Or(m.tool, title.tool)
	m.aggregate = cmp.Or(m.aggregate, title.aggregate)
	if m.unit == "" {
		m.unit, m.scale = title.unit, title.scale
	}
	if len(m.parts) == 0 {
		m.parts = title.parts
	}
	return m
}

// says whether a label names something to measure, rather than something to measure it on.
func (m measure) says() bool {
	return m.metric != "" || m.workload != "" || m.path != "" || len(m.parts) > 1
}

// withoutUnit is the name of a column without the unit that stands in brackets behind it.
func withoutUnit(header string) string {
	return brackets.ReplaceAllStringFunc(clean(header), func(found string) string {
		if _, _, ok := unitOf(found[1 : len(found)-1]); ok {
			return ""
		}
		return found
	})
}

// metricWords are left out of the name of a case: they name the metric.
var metricWords = regexp.MustCompile(`(?i)\b(?:p_?\d{1,2}(?:\.\d+)?|\d{1,2}(?:\.\d+)?(?:th percentile|%tile)` +
	`|mean|average|avg|median|maximum|max|minimum|min|peak|latency|latencies)\b`)

// typed is the case of a label, <path>/<workload>, with the words of the label where the workload is not one of ours.
func (m measure) typed(label string, families family.List) result.Case {
	name := m.workload
	if name == "" && m.path == "" {
		name = slug(metricWords.ReplaceAllString(brackets.ReplaceAllString(clean(label), " "), " "))
	}
	if name == "" || name == result.Unknown {
		name = cmp.Or(metricOfUnit(m.unit), "value")
	}
	if m.params != "" {
		name += ":" + m.params
	}
	c := families.ImportedCase(name)
	if c.Load.BothWays = m.bothWays; m.path != "" {
		c.Name, c.Path = m.path+"/"+name, m.path
	}
	return c
}

// slug is a text as a name: words joined by dashes.
func slug(text string) string {
	between := func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '.' }
	words := strings.FieldsFunc(strings.ToLower(text), between)
	if len(words) == 0 {
		return result.Unknown
	}
	return strings.Join(words, "-")
}

// values puts the figures of a cell into base units.
func (m measure) values(figures []figure) ([]result.Value, error) {
	parts := m.parts
	if len(parts) == 0 || len(figures) == 1 && len(parts) != 1 {
		parts = []part{{metric: m.metric}}
	}
	if len(parts) != len(figures) {
		return nil, fmt.Errorf("it has %d figures, the label names %d", len(figures), len(parts))
	}
	var values []result.Value
	for i, f := range figures {
		p := parts[i]
		u, scale := m.unit, m.scale
		if p.unit != "" {
			u, scale = p.unit, p.scale
		}
		if f.unit != "" {
			u, scale = f.unit, f.scale
		}
		if u == "" {
			u, scale = unit.Count, 1
		}
		metric := p.metric
		if metric == "" {
			metric = metricOfUnit(u)
		}
		number := f.number * scale
		if !finite(number) || !finite(f.sd*scale) {
			return nil, fmt.Errorf("it is too large")
		}
		values = append(values, value(metric, u, number))
		if f.sd > 0 {
			values = append(values, result.Value{Metric: metric + audit.SpreadSuffix, Unit: u, Number: f.sd * scale})
		}
	}
	return values, nil
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// metricOfUnit is what a figure is where only its unit is known.
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

// direction says which way a metric improves. A time that is no known metric is better where it is less.
func direction(name string, u unit.Unit) metric.Better {
	m, known := metric.Find(name)
	switch {
	case known && (u == m.Unit || m.Unit != unit.Second):
		return m.Better
	case u == unit.Second && !known && !strings.HasSuffix(name, audit.SpreadSuffix):
		return metric.Lower
	}
	return metric.Neutral
}

// has says whether a text has one of the words in it.
func has(text string, words ...string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
}

// workloadOf finds the workload that a lower-case label speaks of, and its parameters.
func workloadOf(low string) (workload, params string) {
	udp := has(low, "udp")
	switch {
	case has(low, "iops", "fio", "disk", "storage", "randread", "randwrite"):
		return "", ""
	case has(low, "crr", "short conn", "short-conn", "短连接", "短链接", "短时延"):
		return "tcp-crr", ""
	case has(low, "_rr", "tcp rr", "udp rr", "tcp-rr", "udp-rr", "request/response", "request-response", "长连接", "长链接",
		"round trip", "round-trip") ||
		has(low, "tcp", "udp", "network") && has(low, "latenc", "transaction"):
		if udp {
			return "udp-rr", ""
		}
		return "tcp-rr", ""
	case has(low, "throughput", "bandwidth", "stream", "吞吐", "带宽"):
		params := paramsOf(low)
		if udp {
			return "udp-stream", params
		}
		return "tcp-stream", params
	case udp && has(low, "loss", "lost", "jitter", "datagram", "丢包"):
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

// bothWays are words for a stream in both directions at once.
var bothWays = []string{"bidirectional", "bidir", "full duplex", "双向"}

// paramsOf finds what tells two streams apart: without it they would be taken for one that was measured
// twice.
func paramsOf(low string) string {
	var params []string
	if has(low, bothWays...) {
		params = append(params, "direction=both")
	}
	if found := flowsWord.FindStringSubmatch(low); found != nil {
		params = append(params, "flows="+cmp.Or(found[1], found[2]))
	} else if has(low, "multi", "parallel", "多流", "并发") {
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

// percentileWord finds p99, P99.9, 99th percentile, 99%tile, P99_LATENCY.
var percentileWord = regexp.MustCompile(`\bp_?(\d{1,2}(?:\.\d+)?)(?:\b|_)` +
	`|\b(\d{1,2}(?:\.\d+)?) ?(?:th percentile|%tile|%-tile|th pct)`)

// metricOf finds the metric that a lower-case text speaks of; "" if it does not say.
func metricOf(low string) string {
	if found := percentileWord.FindStringSubmatch(low); found != nil {
		return "p" + cmp.Or(found[1], found[2])
	}
	throughput := has(low, "throughput", "bandwidth", "吞吐", "带宽", "stream")
	switch {
	case has(low, "loss", "lost", "丢包"):
		return metric.Loss
	case has(low, "jitter", "抖动"):
		return metric.Jitter
	case has(low, "retrans", "重传"):
		return metric.Retransmits
	case has(low, "iops"):
		return metric.IOPS
	case throughput:
		return metric.Throughput
	case has(low, "transaction rate", "trans/s", "transactions", "req/s", "requests/s", "rps", "qps"):
		return metric.Rate
	case has(low, "median", "中位"):
		return metric.P50
	case has(low, "mean", "average", "avg", "平均"):
		return metric.Mean
	case has(low, "max", "peak", "最大", "峰值"):
		return metric.Max
	case has(low, "min_", "minimum", "最小") || low == "min":
		return metric.Min
	case has(low, "latency", "latencies", "时延", "延迟"):
		return metric.Latency
	}
	return ""
}

// aggregateOf finds what a throughput or an unnamed figure is over its runs.
func aggregateOf(low string) string {
	switch {
	case has(low, "max", "peak", "最大", "峰值"):
		return audit.AggregateMax
	case has(low, "mean", "average", "avg", "平均"):
		return audit.AggregateMean
	case has(low, "median", "中位"):
		return audit.AggregateMedian
	}
	return ""
}

// pathOf finds which of the nine paths a lower-case label names; "" if it names none, and without
// /same or /other if it does not say whether the traffic leaves the node.
func pathOf(low string) string {
	where := ""
	take := func(place, instead string, phrases ...string) {
		for _, phrase := range phrases {
			if strings.Contains(low, phrase) {
				if where == "" {
					where = place
				}
				low = strings.ReplaceAll(low, phrase, instead)
			}
		}
	}
	// 不同节点 contains 同节点, so what is elsewhere comes first.
	take("/other", " ", "不同的节点", "不同节点", "跨节点", "其他节点", "另一节点", "different nodes", "different node", "other node",
		"another node", "inter-node", "internode", "cross-node", "cross node", "/other")
	take("/same", " node ", "pod 所在的节点", "pod所在的节点", "pod 所在节点")
	take("/same", " ", "相同的节点", "相同节点", "同一节点", "同节点", "此节点", "本节点", "same-node", "same node", "intra-node", "intranode",
		"/same")
	pods, service := strings.Count(low, "pod"), has(low, "service", "svc")
	node := has(low, "节点", "node", "host", "bare metal", "baremetal")
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
	case pods == 0 && (has(low, "节点间", "节点之间", "节点和节点", "bare metal", "baremetal") ||
		strings.Count(low, "node") > 1 || strings.Count(low, "host") > 1):
		return "node-node"
	}
	return ""
}

// A figure is a number in a cell, with its unit and spread if they are there too.
type figure struct {
	number, sd float64
	digit      float64 // what one of its last digit is
	unit       unit.Unit
	scale      float64
}

// cellNumber is a number, then perhaps ± and another, then perhaps a unit.
var cellNumber = regexp.MustCompile(`^[~≈]?\s*([+-]?\d[\d,]*(?:\.\d+)?(?:[eE][+-]?\d+)?)` +
	`(?:\s*(?:±|\+/-|\+-)\s*(\d+(?:\.\d+)?))?\s*([^\s\d][^\s]*)?\s*[*⬆⬇↑↓️]*$`)

// grouped finds a number whose thousands are set apart by blanks.
var grouped = regexp.MustCompile(`^\d{1,3}(?:[ \x{2009}\x{202f}]\d{3})+(?:\.\d+)?$`)

// parseCell reads the figures of a cell, which are separated by slashes.
func parseCell(text string) ([]figure, bool) {
	text = strings.Trim(clean(text), "* ")
	if grouped.MatchString(text) {
		text = strings.Join(strings.FieldsFunc(text, unicode.IsSpace), "")
	}
	if f, ok := parseFigure(text); ok {
		return []figure{f}, true
	}
	var figures []figure
	for piece := range strings.SplitSeq(text, "/") {
		f, ok := parseFigure(strings.TrimSpace(piece))
		if !ok || f.unit != "" && f.unit != unit.Ratio {
			return nil, false
		}
		figures = append(figures, f)
	}
	return figures, len(figures) > 1 && len(figures) < 5
}

func parseFigure(text string) (figure, bool) {
	found := cellNumber.FindStringSubmatch(text)
	if found == nil || strings.HasSuffix(found[1], ",") {
		return figure{}, false
	}
	f := figure{scale: 1}
	var ok bool
	if f.number, ok = decimal(strings.ReplaceAll(found[1], ",", "")); !ok {
		return figure{}, false
	}
	if _, decimals, _ := strings.Cut(found[1], "."); !strings.ContainsAny(found[1], "eE") {
		f.digit = math.Pow10(-len(decimals))
	}
	f.sd, _ = decimal(found[2])
	if name := strings.TrimRight(found[3], "*⬆⬇↑↓️"); name != "" {
		if f.scale, f.unit, ok = unitOf(name); !ok {
			return figure{}, false
		}
	}
	return f, true
}

func decimal(text string) (float64, bool) {
	v, u, err := unit.Parse(text)
	return v, err == nil && u == unit.Count
}

// missing says whether a cell holds no figure on purpose.
func missing(text string) bool {
	switch strings.ToLower(strings.Trim(clean(text), "*_ ")) {
	case "", "-", "–", "—", "n/a", "na", "n.a.", "none", "null", "tbd", "?", "x", "nan", "fail", "failed", "error",
		"timeout", "无", "失败":
		return true
	}
	return false
}
