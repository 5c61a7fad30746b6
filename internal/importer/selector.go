package importer

import (
	"cmp"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/knotmeter/knotmeter/internal/family/network"
	"github.com/knotmeter/knotmeter/internal/load/netload"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// selectors maps the headings of -o and -O to netperf's output selectors, as far as they are read.
var selectors = map[string]string{
	"Throughput": "THROUGHPUT", "Throughput Units": "THROUGHPUT_UNITS", "Elapsed Time (sec)": "ELAPSED_TIME",
	"Transaction Rate Tran/s": "TRANSACTION_RATE", "Round Trip Latency usec/tran": "RT_LATENCY",
	"Minimum Latency Microseconds": "MIN_LATENCY", "Maximum Latency Microseconds": "MAX_LATENCY",
	"Mean Latency Microseconds": "MEAN_LATENCY", "Stddev Latency Microseconds": "STDDEV_LATENCY",
	"50th Percentile Latency Microseconds": "P50_LATENCY", "90th Percentile Latency Microseconds": "P90_LATENCY",
	"99th Percentile Latency Microseconds": "P99_LATENCY",
	"Protocol":                             "PROTOCOL", "Direction": "DIRECTION", "Initial Burst Requests": "BURST_SIZE",
	"Request Size Bytes": "REQUEST_SIZE", "Response Size Bytes": "RESPONSE_SIZE",
	"Request Size": "REQUEST_SIZE", "Response Size": "RESPONSE_SIZE",
	"Local Send Size": "LOCAL_SEND_SIZE", "Remote Send Size": "REMOTE_SEND_SIZE",
	"Local CPU Util %": "LOCAL_CPU_UTIL", "Remote CPU Util %": "REMOTE_CPU_UTIL",
	"Local CPU User %": "LOCAL_CPU_PERCENT_USER", "Local CPU System %": "LOCAL_CPU_PERCENT_SYSTEM",
	"Local CPU swintr %": "LOCAL_CPU_PERCENT_SWINTR", "Remote CPU swintr %": "REMOTE_CPU_PERCENT_SWINTR",
	"Local Peak Per CPU Util %": "LOCAL_CPU_PEAK_UTIL", "Remote Peak Per CPU Util %": "REMOTE_CPU_PEAK_UTIL",
	"Local Service Demand": "LOCAL_SD", "Remote Service Demand": "REMOTE_SD", "Service Demand Units": "SD_UNITS",
	"Local Transport Retransmissions":  "LOCAL_TRANSPORT_RETRANS",
	"Remote Transport Retransmissions": "REMOTE_TRANSPORT_RETRANS",
	"Transport MSS bytes":              "TRANSPORT_MSS", "Local Congestion Control Algorithm": "LOCAL_CONG_CONTROL",
	"Confidence Iterations Run": "CONFIDENCE_ITERATION", "Command Line": "COMMAND_LINE",
	"Local Send Throughput": "LOCAL_SEND_THROUGHPUT",
	"Local Send Calls":      "LOCAL_SEND_CALLS", "Remote Recv Calls": "REMOTE_RECV_CALLS",
}

// netperfLatencies lists the selectors of latencies in µs.
var netperfLatencies = []struct{ key, metric string }{
	{"MEAN_LATENCY", metric.Mean}, {"P50_LATENCY", metric.P50}, {"P90_LATENCY", metric.P90},
	{"P99_LATENCY", metric.P99}, {"MIN_LATENCY", metric.Min}, {"MAX_LATENCY", metric.Max},
	{"STDDEV_LATENCY", metric.Stddev},
}

// measured converts selectors to metrics. netperf writes -1 for unknown values, and 0 for a percentile without samples.
func (o *output) measured(stream bool, window float64) (v values) {
	prefix := ""
	if stream {
		prefix = metric.Send
	}
	o.throughput(&v, stream)
	if stream && o.udp() {
		o.datagrams(&v, window)
	}
	for _, l := range netperfLatencies {
		if us := o.get(l.key); us > 0 {
			v.add(prefix+l.metric, us/1e6)
		}
	}
	if us := o.get("RT_LATENCY"); us > 0 && !stream {
		v.add(metric.MeanOfRate, us/1e6)
	}
	o.cost(&v)
	return v
}

// facts returns facts about the test. Sizes that the output lacks are unknown: netperf's defaults, 1 byte and the
// socket's send buffer, need not have been used.
func (o *output) facts(stream bool) []result.Fact {
	facts := []result.Fact{{Name: "tool.version", Value: result.Unknown}}
	add := func(applies bool, name, value string) {
		if applies {
			facts = append(facts, result.Fact{Name: name, Value: value})
		}
	}
	congestion, command := o.values["LOCAL_CONG_CONTROL"], strings.Trim(o.values["COMMAND_LINE"], `" `)
	iterations := o.get("CONFIDENCE_ITERATION")
	add(congestion != "", "tcp.congestion", congestion)
	add(iterations > 1, "netperf.iterations", strconv.FormatFloat(iterations, 'f', -1, 64))
	add(command != "", "command", command)
	add(!stream && o.get("REQUEST_SIZE") < 0, "request-size", result.Unknown)
	add(!stream, "loop", "closed")
	add(stream && o.udp(), network.Unpaced.Name, network.Unpaced.Value)
	add(!stream, "concurrency", strconv.Itoa(1+o.inFlight()))
	add(stream && o.get("LOCAL_SEND_SIZE") < 0 && o.get("REMOTE_SEND_SIZE") < 0, "send-size", result.Unknown)
	return facts
}

// get returns the number of a selector. If it is missing or no number, get returns -1, netperf's own value for unknown;
// if it is no number, get also sets o.err.
func (o *output) get(key string) float64 {
	text := o.values[key]
	if text == "" {
		return -1
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(v) || !usable(v) {
		if o.err == nil {
			o.err = o.fail(o.row, "%s is %q, wanted a number", key, text)
		}
		return -1
	}
	return v
}

// throughput adds the rate of bytes, in the unit chosen by -f, or of transactions, whose bytes go both ways.
func (o *output) throughput(v *values, stream bool) {
	transactions, rate, units := o.get("TRANSACTION_RATE"), o.get("THROUGHPUT"), o.unitText()
	if transactions >= 0 && !stream {
		v.add(metric.Rate, transactions)
	}
	if rate < 0 {
		return
	}
	factor, u := netperfUnit(units)
	request, response := o.get("REQUEST_SIZE"), o.get("RESPONSE_SIZE")
	switch {
	case u == unit.BitPerSecond && transactions < 0 && request > 0 && response > 0 && !stream:
		v.add(metric.Rate, rate*factor/8/(request+response))
	case u == unit.BitPerSecond && (stream || transactions < 0):
		v.add(metric.Throughput, rate*factor)
	case u == unit.PerSecond && transactions < 0:
		v.add(metric.Rate, rate)
	case u == "" && o.err == nil:
		o.err = o.fail(o.row, "THROUGHPUT is %g in unit %q; wanted a unit of netperf's, such as 10^6bits/s or Trans/s "+
			"(THROUGHPUT_UNITS with -k, -o, -O)", rate, units)
	}
}

// datagrams adds the rates of sent and received datagrams, and the loss; window is in seconds.
func (o *output) datagrams(v *values, window float64) {
	factor, u := netperfUnit(o.unitText())
	if sent := o.get("LOCAL_SEND_THROUGHPUT"); sent >= 0 && u == unit.BitPerSecond {
		v.add(metric.ThroughputSent, sent*factor)
	}
	sent, arrived := o.get("LOCAL_SEND_CALLS"), o.get("REMOTE_RECV_CALLS")
	if sent > 0 && arrived >= 0 && window > 0 {
		v.add(metric.Offered, sent/window)
		v.add(metric.Rate, arrived/window)
		v.add(metric.Loss, (sent-arrived)/sent)
	}
}

// unitWord matches the unit of a rate among the units of a classic table.
var unitWord = regexp.MustCompile(`(10\^\d+ ?bits|[KMG]?Bytes|Trans|Tran)/s(?:ec)?\b|per sec`)

// unitText returns the unit of THROUGHPUT: that of its selector, else the one above the number in a classic table, else
// that of the command. Without -f netperf counts transactions, or 10^6 bits of a stream; whether a stream had an -f is
// known from the command alone.
func (o *output) unitText() string {
	if text := cmp.Or(o.values["THROUGHPUT_UNITS"], unitWord.FindString(o.unitsAbove(o.row))); text != "" {
		return text
	}
	switch letter := option(o.args, "-f"); {
	case letter != "":
		return netperfLetters[letter]
	case o.kind == "" || strings.HasPrefix(o.kind, "OMNI"):
		return ""
	case !o.bannerIsStream():
		return "Trans/s"
	case o.args != nil:
		return "10^6bits/s"
	}
	return ""
}

// netperfLetters maps the letters of -f to units.
var netperfLetters = map[string]string{
	"g": "10^9bits/s", "m": "10^6bits/s", "k": "10^3bits/s", "G": "GBytes/s", "M": "MBytes/s", "K": "KBytes/s",
	"B": "Bytes/s", "x": "Trans/s",
}

// netperfUnit returns the factor to the base unit, and that unit, which is empty for an unknown text. netperf's K, M
// and G of bytes are powers of 1024 (netlib.c).
func netperfUnit(text string) (float64, unit.Unit) {
	u := netperfUnits[strings.TrimSuffix(strings.TrimSuffix(text, "/sec"), "/s")]
	return u.factor, u.base
}

var netperfUnits = map[string]struct {
	factor float64
	base   unit.Unit
}{
	"10^0bits": {1, unit.BitPerSecond}, "10^3bits": {1e3, unit.BitPerSecond},
	"10^6bits": {1e6, unit.BitPerSecond}, "10^9bits": {1e9, unit.BitPerSecond},
	"Bytes": {8, unit.BitPerSecond}, "KBytes": {8 << 10, unit.BitPerSecond},
	"MBytes": {8 << 20, unit.BitPerSecond}, "GBytes": {8 << 30, unit.BitPerSecond},
	"Trans": {1, unit.PerSecond}, "Tran": {1, unit.PerSecond}, "per sec": {1, unit.PerSecond},
}

// cost adds CPU utilisation of whole machines (-c, -C), and the service demand: CPU time of both sides per unit of
// work, the idle level included. It also adds retransmissions and the MSS.
func (o *output) cost(v *values) {
	for _, share := range netperfShares {
		if percent := o.get(share.key); percent >= 0 {
			v.add(share.metric, percent/100)
		}
	}
	if busiest := max(o.get("LOCAL_CPU_PEAK_UTIL"), o.get("REMOTE_CPU_PEAK_UTIL")); busiest >= 0 {
		v.add(metric.CPUBusiest, busiest/100)
	}
	local, remote := o.get("LOCAL_SD"), o.get("REMOTE_SD")
	switch {
	case local < 0 || remote < 0:
	case o.perTransaction():
		v.add(metric.ServiceDemandOp, (local+remote)/1e6)
	default:
		v.add(metric.ServiceDemand, (local+remote)/1e6/1024*1e9)
	}
	if sent, received := o.get("LOCAL_TRANSPORT_RETRANS"), o.get("REMOTE_TRANSPORT_RETRANS"); sent >= 0 {
		v.add(metric.Retransmits, sent+max(received, 0))
	}
	v.add(metric.MSS, o.get("TRANSPORT_MSS"))
}

// netperfShares lists the selectors of CPU utilisation in percent.
var netperfShares = []struct{ key, metric string }{
	{"LOCAL_CPU_UTIL", metric.CPUBusy}, {"REMOTE_CPU_UTIL", metric.CPUBusy + metric.OfServer},
	{"LOCAL_CPU_PERCENT_USER", metric.CPUUser}, {"LOCAL_CPU_PERCENT_SYSTEM", metric.CPUSystem},
	{"LOCAL_CPU_PERCENT_SWINTR", metric.CPUSoftIRQ},
	{"REMOTE_CPU_PERCENT_SWINTR", metric.CPUSoftIRQ + metric.OfServer},
}

// perTransaction reports whether the service demand is per transaction, not per KB.
func (o *output) perTransaction() bool {
	if u := o.values["SD_UNITS"]; u != "" {
		return strings.HasSuffix(u, "/Tran")
	}
	return strings.Contains(o.unitsAbove(o.row), "us/Tr")
}

func (o *output) udp() bool { return strings.HasPrefix(o.kind, "UDP") || o.values["PROTOCOL"] == "UDP" }

// isStream reports whether bytes go in one direction: by the direction of omni tests, else by the banner, else by the
// unit.
func (o *output) isStream() bool {
	d := o.values["DIRECTION"]
	if d == "" && strings.HasPrefix(o.kind, "OMNI ") {
		d = strings.TrimPrefix(o.kind, "OMNI ")
	}
	switch {
	case d != "":
		return !strings.Contains(d, "|")
	case o.kind == "":
		_, u := netperfUnit(o.unitText())
		return u == unit.BitPerSecond
	}
	return o.bannerIsStream()
}

// size returns the size in bytes of the first of the selectors that has one; 0 if none has.
func (o *output) size(keys ...string) int {
	for _, key := range keys {
		if v := o.get(key); v > 0 && v < netload.MaxSize {
			return int(v)
		}
	}
	return 0
}

// workload returns Knotmeter's name of the workload with parameters that are not defaults, or only its kind if there is
// no such workload; empty if it is unknown.
func (o *output) workload(stream bool) string {
	w := netload.Spec{}
	switch {
	case (o.kind == "" || strings.HasPrefix(o.kind, "OMNI")) && o.values["PROTOCOL"] == "":
		return "" // the protocol is unknown
	case strings.Contains(o.kind, "CONNECT/REQUEST/RESPONSE"):
		w.Kind = netload.TCPCRR
	case strings.Contains(o.kind, "CONNECT/CLOSE"):
		return "tcp-cc"
	case strings.Contains(o.kind, "SENDFILE"):
		return "tcp-sendfile"
	case strings.Contains(o.kind, "SCTP") || o.values["PROTOCOL"] == "SCTP":
		return ""
	case stream && o.udp():
		w = netload.Spec{Kind: netload.UDPUnpaced, Size: o.size("LOCAL_SEND_SIZE", "REMOTE_SEND_SIZE")}
	case stream:
		w = netload.Spec{Kind: netload.TCPStream, Size: o.size("LOCAL_SEND_SIZE", "REMOTE_SEND_SIZE")}
		if strings.Contains(o.kind, "MAERTS") || strings.HasPrefix(strings.ToUpper(o.values["DIRECTION"]), "REC") ||
			o.kind == "OMNI RECEIVE" {
			w.Direction = netload.Reverse
		}
	case o.udp():
		w.Kind = netload.UDPRR
	default:
		w.Kind = netload.TCPRR
	}
	if !stream {
		w.Request, w.Response = o.size("REQUEST_SIZE"), o.size("RESPONSE_SIZE")
	}
	name := string(w.Kind)
	if _, err := w.Resolved(); err == nil {
		name = w.Name()
	}
	if burst := o.inFlight(); burst > 0 && !stream {
		kind, rest, _ := strings.Cut(name, ":")
		name = kind + "-burst" + strconv.Itoa(burst)
		if rest != "" {
			name += ":" + rest
		}
	}
	return name
}

// inFlight returns the number of outstanding requests beyond the first (-b).
func (o *output) inFlight() int { return max(o.burst, int(min(max(o.get("BURST_SIZE"), 0), 1<<20))) }
