package native

import (
	"slices"

	"github.com/knotmeter/knotmeter/internal/family/network"
	"github.com/knotmeter/knotmeter/internal/metric"
)

// The workloads that have a metric.
var (
	everywhere  = network.Kinds()
	ofStreams   = []network.Kind{network.TCPStream, network.UDPStream}
	ofDatagrams = []network.Kind{network.UDPStream}
	ofUDP       = []network.Kind{network.UDPStream, network.UDPRR}
	ofCycles    = []network.Kind{network.TCPCRR}
	ofLoaded    = []network.Kind{network.TCPRRLoaded}
	ofBytes     = []network.Kind{network.TCPStream, network.UDPStream, network.TCPRRLoaded}
	ofRequests  = []network.Kind{network.TCPRR, network.UDPRR, network.TCPCRR, network.TCPRRLoaded}
	ofTCP       = []network.Kind{network.TCPStream, network.TCPRR, network.TCPCRR, network.TCPRRLoaded}
	ofCounted   = []network.Kind{network.UDPStream, network.TCPRR, network.UDPRR, network.TCPCRR, network.TCPRRLoaded}
)

// latencies are what is reported of the latencies of requests.
var latencies = []string{metric.P50, metric.P90, metric.P99, metric.P999, metric.Max, metric.Mean}

// reported lists every metric that the tool reports and its workloads, in the order in which it does. A run may lack
// some: a metric is left out where it would be meaningless, never 0.
var reported = []struct {
	of    []network.Kind
	names []string
}{
	{ofStreams, []string{metric.Throughput}},
	{ofCounted, []string{metric.Rate}},
	{ofRequests, latencies},
	{ofUDP, []string{metric.Loss}},
	{ofCycles, []string{metric.Failed}},
	{ofDatagrams, []string{metric.Reordered, metric.Duplicated, metric.Jitter}},
	{ofCounted, []string{metric.Offered}},
	{ofLoaded, []string{metric.LoadThroughput}},
	{ofTCP, []string{metric.Retransmits, metric.RTT, metric.RTTVar, metric.Cwnd, metric.MSS, metric.PMTU}},
	{ofBytes, []string{metric.CPUPerGB}},
	{ofCounted, []string{metric.CPUPerOp}},
	{everywhere, []string{
		metric.CPUBusy, metric.CPUUser, metric.CPUSystem, metric.CPUIOWait, metric.CPUIRQ, metric.CPUSoftIRQ,
		metric.CPUSteal, metric.CPUIdle, metric.CPUBusiest, metric.CPUBusy + metric.OfServer,
		metric.CPUSoftIRQ + metric.OfServer, metric.CPUAgents, metric.SwitchesVoluntary, metric.SwitchesInvoluntary,
		metric.LatenessP99,
	}},
}

// metricsOf are those of a workload.
func metricsOf(k network.Kind) []metric.Metric {
	var list []metric.Metric
	for _, r := range reported {
		if slices.Contains(r.of, k) {
			list = append(list, metric.Of("", r.names...)...)
		}
	}
	return list
}
