package native

import (
	"slices"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/tool"
	"github.com/knotmeter/knotmeter/internal/unit"
	"github.com/knotmeter/knotmeter/internal/workload"
)

// A MetricDoc says what a metric is, and of which workloads.
type MetricDoc struct {
	Name    string
	Unit    unit.Unit
	Better  result.Better
	Of      []workload.Kind
	Meaning string
}

// Metrics lists every metric that the native tool reports, in the order in which it does. Which of them a
// run has depends on its workload; a metric is left out where it would be meaningless, never 0.
func Metrics() []MetricDoc {
	all := workload.Kinds()
	but := func(not ...workload.Kind) []workload.Kind {
		return slices.DeleteFunc(workload.Kinds(), func(k workload.Kind) bool { return slices.Contains(not, k) })
	}
	datagrams, cycles, loaded := []workload.Kind{workload.UDPStream}, []workload.Kind{workload.TCPCRR}, []workload.Kind{workload.TCPRRLoaded}
	streams, udp := []workload.Kind{workload.TCPStream, workload.UDPStream}, []workload.Kind{workload.UDPStream, workload.UDPRR}
	requests, tcp, counted, bytes := but(streams...), but(udp...), but(workload.TCPStream), append(streams, loaded...)
	return []MetricDoc{
		{"throughput", unit.BitPerSecond, result.Higher, streams, "payload that receivers read in the window, all flows and directions, over the window"},
		{"rate", unit.PerSecond, result.Higher, counted, "operations completed in the window (datagrams received, for udp-stream), over the window"},
		{"p50", unit.Second, result.Lower, requests, "median latency of all operations, failed ones too; open loop: from the planned time"},
		{"p90", unit.Second, result.Lower, requests, "90th percentile of the latency"},
		{"p99", unit.Second, result.Lower, requests, "99th percentile; from 368 operations on"},
		{"p99.9", unit.Second, result.Lower, requests, "99.9th percentile; from 3688 operations on"},
		{"max", unit.Second, result.Lower, requests, "largest latency"},
		{"mean", unit.Second, result.Lower, requests, "mean latency"},
		{"loss", unit.Ratio, result.Lower, udp, "udp-stream: datagrams sent in the window that never arrived; udp-rr: requests of the window without an answer in time"},
		{"failed", unit.Ratio, result.Lower, cycles, "tcp-crr: cycles of the window that failed"},
		{"reordered", unit.Ratio, result.Lower, datagrams, "datagrams that arrived after a later one (RFC 4737)"},
		{"duplicated", unit.Ratio, result.Lower, datagrams, "datagrams that arrived again"},
		{"jitter", unit.Second, result.Lower, datagrams, "interarrival jitter (RFC 3550); median over flows"},
		{"offered", unit.PerSecond, result.Neutral, counted, "datagrams or requests sent in the window, over the window"},
		{"load-throughput", unit.BitPerSecond, result.Neutral, loaded, "tcp-rr-loaded: payload that the streams beside the requests moved"},
		{"retransmits", unit.Count, result.Lower, tcp, "segments sent again in the window, both sides"},
		{"rtt", unit.Second, result.Neutral, tcp, "smoothed round trip that the sender's TCP saw at the window's end; median over flows"},
		{"rttvar", unit.Second, result.Neutral, tcp, "its mean deviation"},
		{"cwnd", unit.Count, result.Neutral, tcp, "congestion window in segments at the window's end; median over flows"},
		{"mss", unit.Byte, result.Neutral, tcp, "segment size that TCP sends with"},
		{"pmtu", unit.Byte, result.Neutral, tcp, "path MTU that TCP assumes"},
		{"cpu-per-gb", unit.SecondPerGB, result.Lower, bytes, "CPU time of both nodes, all modes, less the idle level and the pacer's spinning, per 10^9 bytes received"},
		{"cpu-per-op", unit.SecondPerOp, result.Lower, counted, "the same per operation, or per datagram received"},
		{"cpu-busy", unit.Ratio, result.Neutral, all, "share of the client's machine that was busy (user, nice, system, irq, softirq, steal), nothing taken off"},
		{"cpu-user", unit.Ratio, result.Neutral, all, "share of the client's machine in user mode, nice ones too"},
		{"cpu-system", unit.Ratio, result.Neutral, all, "share in the kernel for processes"},
		{"cpu-iowait", unit.Ratio, result.Neutral, all, "share idle with input or output pending"},
		{"cpu-irq", unit.Ratio, result.Neutral, all, "share in hard interrupts"},
		{"cpu-softirq", unit.Ratio, result.Neutral, all, "share in soft interrupts, where much of a datapath runs"},
		{"cpu-steal", unit.Ratio, result.Neutral, all, "share that the hypervisor gave to others"},
		{"cpu-idle", unit.Ratio, result.Neutral, all, "share idle"},
		{"cpu-busiest", unit.Ratio, result.Neutral, all, "share of the window that the busiest CPU of either machine was busy"},
		{"cpu-busy-server", unit.Ratio, result.Neutral, all, "cpu-busy of the server's machine; left out where it is the client's"},
		{"cpu-softirq-server", unit.Ratio, result.Neutral, all, "cpu-softirq of the server's machine; left out where it is the client's"},
		{"cpu-agents", unit.Ratio, result.Neutral, all, "CPUs that the two agents' processes used; 1 is one CPU"},
		{"switches-voluntary", unit.PerSecond, result.Neutral, all, "context switches per second of both agents because they waited"},
		{"switches-involuntary", unit.PerSecond, result.Neutral, all, "context switches per second of both agents because others wanted the CPU"},
		{"lateness-p99", unit.Second, result.Neutral, all, "99th percentile of how late the generator itself was in an open loop"},
	}
}

// metricsOf are those of a workload.
func metricsOf(k workload.Kind) []tool.Metric {
	var list []tool.Metric
	for _, m := range Metrics() {
		if slices.Contains(m.Of, k) {
			list = append(list, tool.Metric{Name: m.Name, Unit: m.Unit, Better: m.Better})
		}
	}
	return list
}
