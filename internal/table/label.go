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

// A measure is the description of figures in a label: what they measure, in which unit.
type measure struct {
	path, workload, params string
	bothWays               bool // a stream in both directions
	metric                 string
	parts                  []part // of a cell with several figures; empty: one figure
	unit                   unit.Unit
	scale                  float64
	tool                   string
	aggregate              string // mean, max or median; empty: not given
}

// A part is one of the figures in a cell.
type part struct {
	metric string
	unit   unit.Unit // empty: that of the measure
	scale  float64
}

// brackets matches text in round or square brackets.
var brackets = regexp.MustCompile(`[(\[]([^()\[\]]*)[)\]]`)

// toHalfWidth replaces full-width brackets and punctuation.
func toHalfWidth(text string) string { return halfWidths.Replace(text) }

var (
	halfWidths = strings.NewReplacer("（", "(", "）", ")", "【", "[",
		"】", "]", "，", ",", "：", ":", "／", "/", "％", "%", "\u00a0", " ")
	withoutMarks = strings.NewReplacer("`", "", "**", "", "<br>", " ", "<br/>", " ")
)

// clean returns a label without Markdown marks, full-width punctuation and repeated spaces.
func clean(text string) string {
	return strings.Join(strings.Fields(withoutMarks.Replace(toHalfWidth(text))), " ")
}

// parseMeasure parses a label such as "TCP Latency (Mean µs/Transaction Rate)".
func parseMeasure(label string) measure {
	text := clean(label)
	low := strings.ToLower(text)
	m := measure{path: pathOf(low)}
	for _, found := range brackets.FindAllStringSubmatch(text, -1) {
		m.parseBracket(strings.TrimSpace(found[1]))
	}
	if m.unit == "" {
		m.parseLastUnit(text)
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
	if scale, u, ok := unitOf(text); ok {
		m.unit, m.scale = u, scale
		m.detectNetperf(text)
		return
	}
	words := strings.Fields(text)
	if len(words) > 1 {
		if scale, u, ok := unitOf(words[len(words)-1]); ok && u != unit.Count {
			m.unit, m.scale = u, scale
			m.detectNetperf(words[len(words)-1])
			return
		}
	}
	pieces := strings.Split(text, "/")
	if len(pieces) < 2 {
		return
	}
	var parts []part
	for _, piece := range pieces {
		p, ok := parsePart(piece)
		if !ok {
			return
		}
		parts = append(parts, p)
	}
	m.parts = parts
}

// detectNetperf sets the tool if the unit is that of netperf's tables, which no other tool uses.
func (m *measure) detectNetperf(unitName string) {
	if strings.HasPrefix(unitName, "10^6") {
		m.tool = "netperf"
	}
}

// parsePart parses a part of a label such as "Mean µs", "Transaction Rate" or "TX-C".
func parsePart(text string) (part, bool) {
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

// parseLastUnit parses a unit at the end of a label, as in "throughput Gbit/s" or "p99_us".
func (m *measure) parseLastUnit(text string) {
	words := strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || r == '_' || r == ',' || r == ';' })
	if len(words) < 2 {
		return
	}
	if scale, u, ok := unitOf(words[len(words)-1]); ok && u != unit.Count {
		m.unit, m.scale = u, scale
	}
}

// unitOf parses the name of a unit in its common spellings. It returns false for others, and for plain counts.
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
	if m.unit == "" {
		m.unit, m.scale = title.unit, title.scale
	}
	if len(m.parts) == 0 {
		m.parts = title.parts
	}
	return m
}

// describesMeasurement reports whether a label names what is measured, rather than a target.
func (m measure) describesMeasurement() bool {
	return m.metric != "" || m.workload != "" || m.path != "" || len(m.parts) > 1
}

// withoutUnit returns the name of a column without units in brackets.
func withoutUnit(header string) string {
	return brackets.ReplaceAllStringFunc(clean(header), func(found string) string {
		if _, _, ok := unitOf(found[1 : len(found)-1]); ok {
			return ""
		}
		return found
	})
}

// metricWords matches words for metrics, which are left out of the names of cases.
var metricWords = regexp.MustCompile(`(?i)\b(?:p_?\d{1,2}(?:\.\d+)?|\d{1,2}(?:\.\d+)?(?:th percentile|%tile)` +
	`|mean|average|avg|median|maximum|max|minimum|min|peak|latency|latencies)\b`)

// caseOf returns the case of a label, <path>/<workload>. Words of the label stand in for an unknown workload.
func (m measure) caseOf(label string, families family.List) result.Case {
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

// direction returns in which direction a metric improves. An unknown metric that is a time is better if lower.
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

// containsAny reports whether a text contains one of the words.
func containsAny(text string, words ...string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
}

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
	case containsAny(low, "throughput", "bandwidth", "stream", "吞吐", "带宽"):
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

// bothWaysWords are words for a stream in both directions at once.
var bothWaysWords = []string{"bidirectional", "bidir", "full duplex", "双向"}

// paramsOf returns the parameters of a stream in a lower-case label. Streams with different parameters are different
// cases; without them they would count as repetitions.
func paramsOf(low string) string {
	var params []string
	if containsAny(low, bothWaysWords...) {
		params = append(params, "direction=both")
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

// percentileWord matches p99, P99.9, 99th percentile, 99%tile, P99_LATENCY.
var percentileWord = regexp.MustCompile(`\bp_?(\d{1,2}(?:\.\d+)?)(?:\b|_)` +
	`|\b(\d{1,2}(?:\.\d+)?) ?(?:th percentile|%tile|%-tile|th pct)`)

// metricOf returns the metric that a lower-case text names; empty if it names none.
func metricOf(low string) string {
	if found := percentileWord.FindStringSubmatch(low); found != nil {
		return "p" + cmp.Or(found[1], found[2])
	}
	throughput := containsAny(low, "throughput", "bandwidth", "吞吐", "带宽", "stream")
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
	case containsAny(low, "max", "peak", "最大", "峰值"):
		return metric.Max
	case containsAny(low, "min_", "minimum", "最小") || low == "min":
		return metric.Min
	case containsAny(low, "latency", "latencies", "时延", "延迟"):
		return metric.Latency
	}
	return ""
}

// aggregateOf returns how a figure summarises its runs, by a lower-case label; empty if the label does not name it.
func aggregateOf(low string) string {
	switch {
	case containsAny(low, "max", "peak", "最大", "峰值"):
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
	where := ""
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
	takeNodeWords("/other", " ", "不同的节点", "不同节点", "跨节点", "其他节点", "另一节点", "different nodes", "different node", "other node",
		"another node", "inter-node", "internode", "cross-node", "cross node", "/other")
	takeNodeWords("/same", " node ", "pod 所在的节点", "pod所在的节点", "pod 所在节点")
	takeNodeWords("/same", " ", "相同的节点", "相同节点", "同一节点", "同节点", "此节点", "本节点", "same-node", "same node",
		"intra-node", "intranode", "/same")
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
		return "node-node"
	}
	return ""
}

// A figure is a number in a cell, with its unit and standard deviation if the cell has them.
type figure struct {
	number, sd float64
	digit      float64   // value of one unit in the last digit; 0: unknown
	unit       unit.Unit // empty: none in the cell
	scale      float64   // factor to the base unit
}

// cellNumber matches a number, optionally followed by ± and another number, and by a unit.
var cellNumber = regexp.MustCompile(`^[~≈]?\s*([+-]?\d[\d,]*(?:\.\d+)?(?:[eE][+-]?\d+)?)` +
	`(?:\s*(?:±|\+/-|\+-)\s*(\d+(?:\.\d+)?))?\s*([^\s\d][^\s]*)?\s*[*⬆⬇↑↓️]*$`)

// spacedNumber matches a number with spaces between thousands.
var spacedNumber = regexp.MustCompile(`^\d{1,3}(?:[ \x{2009}\x{202f}]\d{3})+(?:\.\d+)?$`)

// parseCell parses the figures of a cell: one, or two to four between slashes.
func parseCell(text string) ([]figure, bool) {
	text = strings.Trim(clean(text), "* ")
	if spacedNumber.MatchString(text) {
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

// missing reports whether a cell is empty or has a placeholder for a figure.
func missing(text string) bool {
	switch strings.ToLower(strings.Trim(clean(text), "*_ ")) {
	case "", "-", "–", "—", "n/a", "na", "n.a.", "none", "null", "tbd", "?", "x", "nan", "fail", "failed", "error",
		"timeout", "无", "失败":
		return true
	}
	return false
}
