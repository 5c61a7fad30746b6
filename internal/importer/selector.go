package importer

import (
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/knotmeter/knotmeter/internal/family/network"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// selector is the name of netperf's output selector that has this heading in -o and -O; empty if it is
// none of those that are read.
func selector(heading string) string { return selectors()[heading] }

func selectors() map[string]string {
	return map[string]string{
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
}

// A netperfTest is an output in our words.
type netperfTest struct {
	name   string
	values values
	window float64
	facts  []result.Fact
}

// netperfLatencies are the selectors of latencies, in microseconds.
var netperfLatencies = []struct{ key, metric string }{
	{"MEAN_LATENCY", metric.Mean}, {"P50_LATENCY", metric.P50}, {"P90_LATENCY", metric.P90},
	{"P99_LATENCY", metric.P99}, {"MIN_LATENCY", metric.Min}, {"MAX_LATENCY", metric.Max},
	{"STDDEV_LATENCY", metric.Stddev},
}

// test turns netperf's selectors into metrics. netperf writes -1 where it does not know, and 0 for
// a percentile that it has no value of.
func (s section) test(o netperfOutput) (netperfTest, error) {
	n := numbers{s: s, o: o}
	stream := s.isStream(o)
	var t netperfTest
	t.window = max(n.get("ELAPSED_TIME"), 0)
	part := ""
	if stream {
		part = metric.Send
	}
	t.throughput(&n, stream, s.unitText(o))
	for _, l := range netperfLatencies {
		if us := n.get(l.key); us > 0 {
			t.values.add(part+l.metric, us/1e6)
		}
	}
	if us := n.get("RT_LATENCY"); us > 0 && !stream {
		t.values.add(metric.MeanOfRate, us/1e6)
	}
	t.cost(&n)
	if c := o.values["LOCAL_CONG_CONTROL"]; c != "" {
		t.facts = append(t.facts, result.Fact{Name: "tcp.congestion", Value: c})
	}
	if i := n.get("CONFIDENCE_ITERATION"); i > 1 {
		t.facts = append(t.facts, result.Fact{Name: "netperf.iterations", Value: strconv.FormatFloat(i, 'f', -1, 64)})
	}
	if c := strings.Trim(o.values["COMMAND_LINE"], `" `); c != "" {
		t.facts = append(t.facts, result.Fact{Name: "command", Value: c})
	}
	t.name = s.workload(&n, stream)
	// The classic defaults are 1 byte and the socket's send buffer; -O leaves out what was chosen.
	if !stream && n.get("REQUEST_SIZE") < 0 {
		t.facts = append(t.facts, result.Fact{Name: "request-size", Value: result.Unknown})
	}
	if !stream {
		t.facts = append(t.facts, result.Fact{Name: "loop", Value: "closed"},
			result.Fact{Name: "concurrency", Value: strconv.Itoa(1 + s.inFlight(&n))})
	}
	if stream && n.get("LOCAL_SEND_SIZE") < 0 && n.get("REMOTE_SEND_SIZE") < 0 {
		t.facts = append(t.facts, result.Fact{Name: "send-size", Value: result.Unknown})
	}
	return t, n.err
}

// numbers reads values as numbers and keeps the first error.
type numbers struct {
	s   section
	o   netperfOutput
	err error
}

// get is the number of a selector; -1 if it is not there, which is how netperf says unknown too.
func (n *numbers) get(key string) float64 {
	text, ok := n.o.values[key]
	if !ok || text == "" {
		return -1
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(v) || !usable(v) {
		if n.err == nil {
			n.err = n.s.fail(n.o.line, "%s is %q, wanted a number", key, text)
		}
		return -1
	}
	return v
}

// throughput adds rates: of bytes in the unit that -f chose, of transactions, of datagrams.
func (t *netperfTest) throughput(n *numbers, stream bool, units string) {
	if rate := n.get("TRANSACTION_RATE"); rate >= 0 && !stream {
		t.values.add(metric.Rate, rate)
	}
	v := n.get("THROUGHPUT")
	if v >= 0 {
		factor, u := netperfUnit(units)
		switch {
		case u == unit.BitPerSecond:
			t.values.add(metric.Throughput, v*factor)
		case u == unit.PerSecond && n.get("TRANSACTION_RATE") < 0:
			t.values.add(metric.Rate, v)
		case u == "" && n.err == nil:
			n.err = n.s.fail(n.o.line, "THROUGHPUT is %g in unit %q; wanted a unit of netperf's, such as 10^6bits/s or Trans/s (THROUGHPUT_UNITS with -k, -o, -O)", v, units)
		}
	}
	if sent := n.get("LOCAL_SEND_THROUGHPUT"); stream && n.s.udp(n.o) && sent >= 0 {
		if factor, u := netperfUnit(units); u == unit.BitPerSecond {
			t.values.add(metric.ThroughputSent, sent*factor)
		}
	}
	sent, arrived := n.get("LOCAL_SEND_CALLS"), n.get("REMOTE_RECV_CALLS")
	if stream && n.s.udp(n.o) && sent > 0 && arrived >= 0 && t.window > 0 {
		t.values.add(metric.Offered, sent/t.window)
		t.values.add(metric.Rate, arrived/t.window)
		t.values.add(metric.Loss, (sent-arrived)/sent)
	}
}

// unitWord is a unit of a rate among the units of a classic table.
var unitWord = regexp.MustCompile(`(10\^\d+ ?bits|[KMG]?Bytes|Trans|Tran)/s(?:ec)?\b|per sec`)

// unitText is the unit of THROUGHPUT: with the selectors its own, in a classic table above the number.
func (s section) unitText(o netperfOutput) string {
	if u := o.values["THROUGHPUT_UNITS"]; u != "" {
		return u
	}
	return unitWord.FindString(s.unitsAbove(o.line))
}

// netperfUnit is the factor to the base unit; netperf's K, M and G of bytes are powers of 1024 (netlib.c).
func netperfUnit(text string) (float64, unit.Unit) {
	switch strings.TrimSuffix(strings.TrimSuffix(text, "/sec"), "/s") {
	case "10^0bits":
		return 1, unit.BitPerSecond
	case "10^3bits":
		return 1e3, unit.BitPerSecond
	case "10^6bits":
		return 1e6, unit.BitPerSecond
	case "10^9bits":
		return 1e9, unit.BitPerSecond
	case "Bytes":
		return 8, unit.BitPerSecond
	case "KBytes":
		return 8 << 10, unit.BitPerSecond
	case "MBytes":
		return 8 << 20, unit.BitPerSecond
	case "GBytes":
		return 8 << 30, unit.BitPerSecond
	case "Trans", "Tran", "per sec":
		return 1, unit.PerSecond
	}
	return 0, ""
}

// cost adds what netperf says of CPUs (-c, -C): shares of whole machines, and the service demand, which
// is both sides' CPU time per unit of work, the idle level included.
func (t *netperfTest) cost(n *numbers) {
	share := func(name, key string) {
		if v := n.get(key); v >= 0 {
			t.values.add(name, v/100)
		}
	}
	share(metric.CPUBusy, "LOCAL_CPU_UTIL")
	share(metric.CPUBusy+metric.OfServer, "REMOTE_CPU_UTIL")
	share(metric.CPUUser, "LOCAL_CPU_PERCENT_USER")
	share(metric.CPUSystem, "LOCAL_CPU_PERCENT_SYSTEM")
	share(metric.CPUSoftIRQ, "LOCAL_CPU_PERCENT_SWINTR")
	share(metric.CPUSoftIRQ+metric.OfServer, "REMOTE_CPU_PERCENT_SWINTR")
	if busiest := max(n.get("LOCAL_CPU_PEAK_UTIL"), n.get("REMOTE_CPU_PEAK_UTIL")); busiest >= 0 {
		t.values.add(metric.CPUBusiest, busiest/100)
	}
	local, remote := n.get("LOCAL_SD"), n.get("REMOTE_SD")
	switch {
	case local < 0 || remote < 0:
	case n.perTransaction():
		t.values.add(metric.ServiceDemandOp, (local+remote)/1e6)
	default:
		t.values.add(metric.ServiceDemand, (local+remote)/1e6/1024*1e9)
	}
	if back, forth := n.get("REMOTE_TRANSPORT_RETRANS"), n.get("LOCAL_TRANSPORT_RETRANS"); forth >= 0 {
		t.values.add(metric.Retransmits, forth+max(back, 0))
	}
	t.values.add(metric.MSS, n.get("TRANSPORT_MSS"))
}

func (n *numbers) perTransaction() bool {
	if u := n.o.values["SD_UNITS"]; u != "" {
		return strings.HasSuffix(u, "/Tran")
	}
	return strings.Contains(n.s.unitsAbove(n.o.line), "us/Tr")
}

func (s section) udp(o netperfOutput) bool {
	return strings.HasPrefix(s.kind, "UDP") || o.values["PROTOCOL"] == "UDP"
}

// isStream goes by the direction that omni tests name, else by the banner.
func (s section) isStream(o netperfOutput) bool {
	d := o.values["DIRECTION"]
	if d == "" && strings.HasPrefix(s.kind, "OMNI ") {
		d = strings.TrimPrefix(s.kind, "OMNI ")
	}
	if d != "" {
		return !strings.Contains(d, "|")
	}
	if s.kind == "" {
		_, u := netperfUnit(s.unitText(o))
		return u == unit.BitPerSecond
	}
	return s.stream()
}

// workload is the test's name: ours where it is the same thing, with the parameters that are not default.
func (s section) workload(n *numbers, stream bool) string {
	param := func(keys ...string) int {
		for _, key := range keys {
			if v := n.get(key); v > 0 && v < network.MaxSize {
				return int(v)
			}
		}
		return 0
	}
	w := network.Spec{}
	switch {
	case (s.kind == "" || strings.HasPrefix(s.kind, "OMNI")) && n.o.values["PROTOCOL"] == "":
		return "" // it may as well be UDP
	case strings.Contains(s.kind, "CONNECT/REQUEST/RESPONSE"):
		w.Kind = network.TCPCRR
	case strings.Contains(s.kind, "CONNECT/CLOSE"):
		return "tcp-cc"
	case strings.Contains(s.kind, "SENDFILE"):
		return "tcp-sendfile"
	case strings.Contains(s.kind, "SCTP") || n.o.values["PROTOCOL"] == "SCTP":
		return ""
	case stream && s.udp(n.o):
		return unpaced(1, param("LOCAL_SEND_SIZE", "REMOTE_SEND_SIZE"), "")
	case stream:
		w = network.Spec{Kind: network.TCPStream, Size: param("LOCAL_SEND_SIZE", "REMOTE_SEND_SIZE")}
		if strings.Contains(s.kind, "MAERTS") || strings.HasPrefix(strings.ToUpper(n.o.values["DIRECTION"]), "REC") ||
			s.kind == "OMNI RECEIVE" {
			w.Direction = network.Reverse
		}
	case s.udp(n.o):
		w.Kind = network.UDPRR
	default:
		w.Kind = network.TCPRR
	}
	if !stream {
		w.Request, w.Response = param("REQUEST_SIZE"), param("RESPONSE_SIZE")
	}
	name := string(w.Kind)
	if _, err := w.Resolved(); err == nil {
		name = w.String()
	}
	if burst := s.inFlight(n); burst > 0 && !stream {
		name += "-burst" + strconv.Itoa(burst)
	}
	return name
}

// inFlight is how many requests are outstanding beyond the first (-b).
func (s section) inFlight(n *numbers) int {
	return max(s.burst, int(min(max(n.get("BURST_SIZE"), 0), 1<<20)))
}
