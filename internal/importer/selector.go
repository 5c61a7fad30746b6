package importer

import (
	"cmp"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/knotmeter/knotmeter/internal/family/network"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// selectors are netperf's output selectors that are read, by the heading that they have in -o and -O.
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

// netperfLatencies are the selectors of latencies, in microseconds.
var netperfLatencies = []struct{ key, metric string }{
	{"MEAN_LATENCY", metric.Mean}, {"P50_LATENCY", metric.P50}, {"P90_LATENCY", metric.P90},
	{"P99_LATENCY", metric.P99}, {"MIN_LATENCY", metric.Min}, {"MAX_LATENCY", metric.Max},
	{"STDDEV_LATENCY", metric.Stddev},
}

// measured turns netperf's selectors into metrics. netperf writes -1 where it does not know, and 0 for a percentile
// that it has no value of.
func (o *output) measured(stream bool, window float64) (v values) {
	part := ""
	if stream {
		part = metric.Send
	}
	o.throughput(&v, stream)
	if stream && o.udp() {
		o.datagrams(&v, window)
	}
	for _, l := range netperfLatencies {
		if us := o.get(l.key); us > 0 {
			v.add(part+l.metric, us/1e6)
		}
	}
	if us := o.get("RT_LATENCY"); us > 0 && !stream {
		v.add(metric.MeanOfRate, us/1e6)
	}
	o.cost(&v)
	return v
}

// facts are what an output says besides. The classic defaults are 1 byte and the socket's send buffer; -O leaves out
// what was chosen.
func (o *output) facts(stream bool) []result.Fact {
	facts := []result.Fact{{Name: "tool.version", Value: result.Unknown}}
	add := func(is bool, name, value string) {
		if is {
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

// get is the number of a selector; -1 if it is not there, which is how netperf says unknown too.
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

// throughput adds rates: of bytes in the unit that -f chose, and of transactions.
func (o *output) throughput(v *values, stream bool) {
	transactions, rate, units := o.get("TRANSACTION_RATE"), o.get("THROUGHPUT"), o.unitText()
	if transactions >= 0 && !stream {
		v.add(metric.Rate, transactions)
	}
	if rate < 0 {
		return
	}
	factor, u := netperfUnit(units)
	switch {
	case u == unit.BitPerSecond:
		v.add(metric.Throughput, rate*factor)
	case u == unit.PerSecond && transactions < 0:
		v.add(metric.Rate, rate)
	case u == "" && o.err == nil:
		o.err = o.fail(o.row, "THROUGHPUT is %g in unit %q; wanted a unit of netperf's, such as 10^6bits/s or Trans/s "+
			"(THROUGHPUT_UNITS with -k, -o, -O)", rate, units)
	}
}

// datagrams adds what a stream of them sent, and how many arrived.
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

// unitWord is a unit of a rate among the units of a classic table.
var unitWord = regexp.MustCompile(`(10\^\d+ ?bits|[KMG]?Bytes|Trans|Tran)/s(?:ec)?\b|per sec`)

// unitText is the unit of THROUGHPUT: with the selectors its own, in a classic table above the number.
func (o *output) unitText() string {
	return cmp.Or(o.values["THROUGHPUT_UNITS"], unitWord.FindString(o.unitsAbove(o.row)))
}

// netperfUnit is the factor to the base unit; netperf's K, M and G of bytes are powers of 1024 (netlib.c).
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

// cost adds what netperf says of CPUs (-c, -C): shares of whole machines, and the service demand, which
// is both sides' CPU time per unit of work, the idle level included.
func (o *output) cost(v *values) {
	for _, share := range netperfShares {
		if of := o.get(share.key); of >= 0 {
			v.add(share.metric, of/100)
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
	if back, forth := o.get("REMOTE_TRANSPORT_RETRANS"), o.get("LOCAL_TRANSPORT_RETRANS"); forth >= 0 {
		v.add(metric.Retransmits, forth+max(back, 0))
	}
	v.add(metric.MSS, o.get("TRANSPORT_MSS"))
}

// netperfShares are the selectors of shares of CPUs, in per cent.
var netperfShares = []struct{ key, metric string }{
	{"LOCAL_CPU_UTIL", metric.CPUBusy}, {"REMOTE_CPU_UTIL", metric.CPUBusy + metric.OfServer},
	{"LOCAL_CPU_PERCENT_USER", metric.CPUUser}, {"LOCAL_CPU_PERCENT_SYSTEM", metric.CPUSystem},
	{"LOCAL_CPU_PERCENT_SWINTR", metric.CPUSoftIRQ},
	{"REMOTE_CPU_PERCENT_SWINTR", metric.CPUSoftIRQ + metric.OfServer},
}

func (o *output) perTransaction() bool {
	if u := o.values["SD_UNITS"]; u != "" {
		return strings.HasSuffix(u, "/Tran")
	}
	return strings.Contains(o.unitsAbove(o.row), "us/Tr")
}

func (o *output) udp() bool { return strings.HasPrefix(o.kind, "UDP") || o.values["PROTOCOL"] == "UDP" }

// isStream goes by the direction that omni tests name, else by the banner.
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
	return o.stream()
}

// size is the first of some parameters that is a size.
func (o *output) size(keys ...string) int {
	for _, key := range keys {
		if v := o.get(key); v > 0 && v < network.MaxSize {
			return int(v)
		}
	}
	return 0
}

// workload is the test's name: ours where it is the same thing, with the parameters that are not default.
func (o *output) workload(stream bool) string {
	w := network.Spec{}
	switch {
	case (o.kind == "" || strings.HasPrefix(o.kind, "OMNI")) && o.values["PROTOCOL"] == "":
		return "" // it may as well be UDP
	case strings.Contains(o.kind, "CONNECT/REQUEST/RESPONSE"):
		w.Kind = network.TCPCRR
	case strings.Contains(o.kind, "CONNECT/CLOSE"):
		return "tcp-cc"
	case strings.Contains(o.kind, "SENDFILE"):
		return "tcp-sendfile"
	case strings.Contains(o.kind, "SCTP") || o.values["PROTOCOL"] == "SCTP":
		return ""
	case stream && o.udp():
		w = network.Spec{Kind: network.UDPUnpaced, Size: o.size("LOCAL_SEND_SIZE", "REMOTE_SEND_SIZE")}
	case stream:
		w = network.Spec{Kind: network.TCPStream, Size: o.size("LOCAL_SEND_SIZE", "REMOTE_SEND_SIZE")}
		if strings.Contains(o.kind, "MAERTS") || strings.HasPrefix(strings.ToUpper(o.values["DIRECTION"]), "REC") ||
			o.kind == "OMNI RECEIVE" {
			w.Direction = network.Reverse
		}
	case o.udp():
		w.Kind = network.UDPRR
	default:
		w.Kind = network.TCPRR
	}
	if !stream {
		w.Request, w.Response = o.size("REQUEST_SIZE"), o.size("RESPONSE_SIZE")
	}
	name := string(w.Kind)
	if _, err := w.Resolved(); err == nil {
		name = w.String()
	}
	if burst := o.inFlight(); burst > 0 && !stream {
		name += "-burst" + strconv.Itoa(burst)
	}
	return name
}

// inFlight is how many requests are outstanding beyond the first (-b).
func (o *output) inFlight() int { return max(o.burst, int(min(max(o.get("BURST_SIZE"), 0), 1<<20))) }
