package native

import (
	"slices"

	"github.com/knotmeter/knotmeter/internal/load/netload"
	"github.com/knotmeter/knotmeter/internal/metric"
)

// Workloads that share metrics.
var (
	everywhere  = netload.Kinds()
	ofStream    = []netload.Kind{netload.TCPStream}
	ofStreams   = []netload.Kind{netload.TCPStream, netload.UDPStream, netload.UDPUnpaced}
	ofDatagrams = []netload.Kind{netload.UDPStream, netload.UDPUnpaced}
	ofUDP       = []netload.Kind{netload.UDPStream, netload.UDPUnpaced, netload.UDPRR, netload.Ping}
	ofCycles    = []netload.Kind{netload.TCPCRR}
	ofLoaded    = []netload.Kind{netload.TCPRRLoaded}
	ofBytes     = []netload.Kind{netload.TCPStream, netload.UDPStream, netload.UDPUnpaced, netload.TCPRRLoaded}
	ofRequests  = []netload.Kind{netload.TCPRR, netload.UDPRR, netload.TCPCRR, netload.TCPRRLoaded, netload.Ping}
	ofTCP       = []netload.Kind{netload.TCPStream, netload.TCPRR, netload.TCPCRR, netload.TCPRRLoaded}
	ofCounted   = slices.Concat(ofDatagrams, ofRequests)
)

// layersOf returns the metrics of a cost by layer.
func layersOf(cost string) []string {
	var names []string
	for _, layer := range metric.Layers() {
		names = append(names, metric.OfLayer(cost, layer.Name))
	}
	return names
}

// ofKernel returns the counters of both sides, of their network namespaces and of their nodes.
func ofKernel() []string {
	var names []string
	for _, c := range metric.Counters() {
		for _, name := range []string{metric.OfCounter(c.Name), metric.OfCounter(metric.OfNode + c.Name)} {
			names = append(names, name, name+metric.OfServer)
		}
	}
	return names
}

// ofMachine returns the metrics of a side's machine.
func ofMachine(side string) []string {
	names := []string{metric.Memory, metric.MemoryIdleLevel, metric.CPUBusy, metric.CPUUser, metric.CPUSystem,
		metric.CPUIOWait, metric.CPUIRQ, metric.CPUSoftIRQ, metric.CPUSteal, metric.CPUIdle, metric.CPUIdleLevel}
	for i := range names {
		names[i] += side
	}
	return names
}

// latencies are the statistics of the latencies of requests.
var latencies = []string{metric.P50, metric.P90, metric.P99, metric.P999, metric.Min, metric.Max, metric.Mean}

// reported lists the tool's metrics by workload, in the order of the report. A run may lack some: a metric that would
// be meaningless is left out, not 0.
var reported = []struct {
	of    []netload.Kind
	names []string
}{
	{[]netload.Kind{netload.Unloaded}, []string{metric.CPUUnloaded}},
	{ofStreams, []string{metric.Throughput, metric.ThroughputTX, metric.ThroughputRX}},
	{ofDatagrams, []string{metric.ThroughputSent}},
	{ofCounted, []string{metric.Rate}},
	{ofRequests, latencies},
	{ofRequests, []string{metric.Stddev}},
	{ofUDP, []string{metric.Loss}},
	{ofCycles, []string{metric.Failed}},
	{ofDatagrams, []string{metric.Reordered, metric.Duplicated, metric.Jitter}},
	{ofCounted, []string{metric.Offered}},
	{ofLoaded, []string{metric.LoadThroughput}},
	{ofTCP, []string{metric.Retransmits, metric.RTT, metric.RTTVar, metric.Cwnd, metric.MSS, metric.PMTU,
		metric.RwndLimited, metric.SndLimited}},
	{ofBytes, []string{metric.CPUPerGB}},
	{ofCounted, []string{metric.CPUPerOp}},
	{ofStream, layersOf(metric.CPUPerGB)},
	{ofCounted, layersOf(metric.CPUPerOp)},
	{everywhere, ofMachine("")},
	{everywhere, ofMachine(metric.OfServer)},
	{everywhere, []string{
		metric.CPUBusiest, metric.CPUBusiestSoftIRQ, metric.CPUAgents, metric.SwitchesVoluntary, metric.SwitchesInvoluntary,
		metric.LatenessP99,
	}},
	{everywhere, ofKernel()},
}

// metricsOf returns the metrics of a workload.
func metricsOf(k netload.Kind) []metric.Metric {
	var list []metric.Metric
	for _, r := range reported {
		if slices.Contains(r.of, k) {
			list = append(list, metric.Of("", r.names...)...)
		}
	}
	return list
}
