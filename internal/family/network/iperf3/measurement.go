package iperf3

import (
	"fmt"
	"math"
	"strconv"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/family/network"
	"github.com/knotmeter/knotmeter/internal/load/netload"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/stats"
)

// Limits of the checks of a run.
const (
	// fullWindow is a share of the requested window: a busy receiver starts its window a little late, and counts bytes
	// and time from there.
	fullWindow = 0.8
	onTime     = 0.95 // of the datagrams that should have been sent
	limited    = 0.95 // of a CPU, for each thread of iperf3
)

// Metrics of all workloads, of datagrams and of TCP. metric.Cwnd is not among them: it is in segments, whose size
// iperf3 does not report.
var (
	reported = []string{
		metric.Throughput, metric.ThroughputTX, metric.ThroughputRX,
		metric.CPUAgents, metric.CPUTimeClient, metric.CPUTimeServer, metric.CPUAgentsPerGB,
	}
	ofDatagrams = []string{
		metric.ThroughputSent, metric.Rate, metric.Jitter, metric.Offered, metric.Reordered, metric.Loss,
	}
	ofTCP = []string{metric.Retransmits, metric.RTT, metric.RTTVar, metric.CwndBytes, metric.PMTU}
)

// A directionResult is one direction of a test, with the sums of its sender and its receiver.
type directionResult struct {
	sender, receiver *output
	sent, received   *sum
	back             bool // the second direction of --bidir
}

// measure returns the measurement from both sides' outputs. It is pure.
func measure(c commands, w netload.Spec, client, server *output) (result.Measurement, error) {
	// The server serves the first client that connects, whoever that is.
	if client.Start.Cookie != server.Start.Cookie {
		return result.Measurement{}, fmt.Errorf("the iperf3 server of this run served another client than that of this run "+
			"(the cookies are %.40q and %.40q); keep others away from its port", server.Start.Cookie, client.Start.Cookie)
	}
	halves, err := split(w, client, server)
	if err != nil {
		return result.Measurement{}, err
	}
	m := &measurement{family.NewBuilder(metricsOf(w.Kind))}
	m.Window = halves[0].received.Seconds
	m.Facts = facts(c, w, client, server)
	if err := m.work(c, w, halves); err != nil {
		return result.Measurement{}, err
	}
	m.cost(halves, client, server)
	m.steps(c, halves)
	for _, h := range halves {
		m.gates(c, w, h)
	}
	m.tcpInfo(w, halves)
	m.pace(c, w, halves)
	m.warnings(w, client, server)
	return m.Measurement, nil
}

// A measurement is built from both sides' outputs.
type measurement struct{ *family.Builder }

// split returns the directions of the test with each side's own sums.
func split(w netload.Spec, client, server *output) ([]directionResult, error) {
	forward := directionResult{sender: client, receiver: server, sent: client.End.Sent, received: server.End.Received}
	reverse := directionResult{sender: server, receiver: client, sent: server.End.Sent, received: client.End.Received}
	back := directionResult{sender: server, receiver: client, sent: server.End.SentBack,
		received: client.End.ReceivedBack, back: true}
	var halves []directionResult
	switch w.Direction {
	case netload.Reverse:
		halves = []directionResult{reverse}
	case netload.Both:
		halves = []directionResult{forward, back}
	default:
		halves = []directionResult{forward}
	}
	for _, h := range halves {
		if h.received == nil || h.sent == nil {
			return nil, result.NotSupported(fmt.Sprintf("%s prints no sums of each side for %s %s; iperf 3.12 does",
				h.receiver.Start.Version, w.Kind, w.Direction))
		}
	}
	return halves, checkSums(halves)
}

// checkSums returns an error if a sum is out of range.
func checkSums(halves []directionResult) error {
	for _, h := range halves {
		for _, s := range []*sum{h.received, h.sent} {
			if !(s.Seconds > 0 && s.Seconds < 1e6 && s.Bytes >= 0 && s.Bytes < 1e18) {
				return fmt.Errorf("%w: a sum of %g bytes in %g s", ErrOutput, s.Bytes, s.Seconds)
			}
		}
	}
	return nil
}

// work adds the metrics that receivers and senders counted: the sum of both directions, and the throughput of each.
func (m *measurement) work(c commands, w netload.Spec, halves []directionResult) error {
	var bits, sent, datagrams, offered, arrived, lost, packets, jitter, reordered float64
	for _, h := range halves {
		r := h.received
		bits += 8 * r.Bytes / r.Seconds
		sent += 8 * h.sent.Bytes / h.sent.Seconds
		datagrams += r.Bytes / float64(c.size) / r.Seconds
		offered += h.sent.Bytes / float64(c.size) / h.sent.Seconds
		arrived += r.Bytes / float64(c.size)
		lost, packets = lost+r.Lost, packets+r.Packets
		jitter += r.Jitter / 1e3 / float64(len(halves))
		reordered += outOfOrder(h)
	}
	m.Add(metric.Throughput, bits)
	if len(halves) == 2 {
		m.Add(metric.ThroughputTX, 8*halves[0].received.Bytes/halves[0].received.Seconds)
		m.Add(metric.ThroughputRX, 8*halves[1].received.Bytes/halves[1].received.Seconds)
	}
	m.Add(metric.ThroughputSent, sent) // kept only for datagrams and in a Report
	if !w.Kind.Datagrams() {
		return nil
	}
	sane := lost >= 0 && lost <= packets && packets < 1e15 && jitter >= 0 && jitter < 1e6
	if !(sane && reordered >= 0 && reordered < 1e15) {
		return fmt.Errorf("%w: %g of %g datagrams lost, %g reordered, jitter %g s",
			ErrOutput, lost, packets, reordered, jitter)
	}
	m.Add(metric.Rate, datagrams)
	m.Add(metric.Jitter, jitter)
	m.Add(metric.Offered, offered)
	if arrived > 0 {
		m.Add(metric.Reordered, reordered/arrived)
	}
	if packets > 0 {
		m.Add(metric.Loss, lost/packets)
	}
	return nil
}

func outOfOrder(h directionResult) (n float64) {
	for _, s := range h.receiver.End.Streams {
		if s.UDP != nil && !s.UDP.Sender {
			n += s.UDP.OutOfOrder
		}
	}
	return n
}

// cost adds the CPU time of the two processes. iperf3 reports their share of the whole test including the warm-up,
// which is assumed to hold for the window. It is not the cost of the path, because it excludes soft interrupts in other
// processes' time, and so it has metrics of its own.
func (m *measurement) cost(halves []directionResult, client, server *output) {
	var bytes float64
	for _, h := range halves {
		bytes += h.received.Bytes
	}
	window := halves[0].received.Seconds
	onClient, onServer := client.End.CPU.Total/100, server.End.CPU.Total/100
	if !(onClient >= 0 && onServer >= 0 && onClient+onServer < 1e6) {
		return
	}
	m.Add(metric.CPUAgents, onClient+onServer)
	m.Add(metric.CPUTimeClient, onClient*window)
	m.Add(metric.CPUTimeServer, onServer*window)
	if bytes > 0 {
		m.Add(metric.CPUAgentsPerGB, (onClient+onServer)*window/(bytes/1e9))
	}
}

// steps adds the receivers' throughput step by step, as the sum of both directions.
func (m *measurement) steps(c commands, halves []directionResult) {
	var all []float64
	for i, h := range halves {
		var steps []float64
		for _, v := range h.receiver.Intervals {
			part := v.Sum
			if h.back {
				part = v.SumBack
			}
			// The rest at the end is shorter than a step.
			if !part.Omitted && part.Seconds > c.step.Seconds()/2 && part.Bits >= 0 && part.Bits < 1e18 {
				steps = append(steps, part.Bits)
			}
		}
		if i == 0 {
			all = steps
			continue
		}
		all = all[:min(len(all), len(steps))]
		for j := range all {
			all[j] += steps[j]
		}
	}
	m.Steps(metric.Throughput, c.step.Seconds(), all)
}

// gates makes the run invalid for each reason why a direction must not count.
func (m *measurement) gates(c commands, w netload.Spec, h directionResult) {
	if got := h.received.Seconds; got < fullWindow*c.window.Seconds() {
		m.Refuse(result.ShortWindow, "the receiver's window was %.3g s long, not %g s", got, c.window.Seconds())
	}
	if h.received.Bytes == 0 {
		m.Refuse(result.NothingDone, "nothing arrived")
	}
	if !w.Kind.Datagrams() {
		return
	}
	size := float64(c.size)
	counted, arrived := h.received.Packets-h.received.Lost, h.received.Bytes/size
	if math.Abs(counted-arrived) > 2+0.001*arrived+outOfOrder(h) {
		m.Refuse(result.CountersDisagree, "the receiver's sums do not close: %.0f datagrams less %.0f lost, but the bytes "+
			"of %.0f", h.received.Packets, h.received.Lost, arrived)
	}
}

// pace adds a warning if the senders did not reach their rate.
func (m *measurement) pace(c commands, w netload.Spec, halves []directionResult) {
	var sent float64
	for _, h := range halves {
		sent += 8 * h.sent.Bytes / h.sent.Seconds
	}
	asked := float64(len(halves)*8*c.size) * w.Sized(c.size).Rate
	if w.Kind == netload.UDPStream && sent < onTime*asked {
		m.Warn(result.RateMissed, "%s", network.NotReached(sent, asked))
	}
}

// tcpInfo adds TCP_INFO of the senders: retransmits over the window, and the medians over the flows in the last step.
func (m *measurement) tcpInfo(w netload.Spec, halves []directionResult) {
	if w.Kind != netload.TCPStream {
		return
	}
	var rtt, rttvar, cwnd, pmtu []float64
	var retransmits float64
	known := true
	for _, h := range halves {
		if h.sent.Retransmits == nil || *h.sent.Retransmits < 0 || *h.sent.Retransmits > 1e15 {
			known = false
		} else {
			retransmits += *h.sent.Retransmits
		}
		if len(h.sender.Intervals) == 0 {
			continue
		}
		for _, s := range h.sender.Intervals[len(h.sender.Intervals)-1].Streams {
			if s.Sender && s.RTT > 0 && s.Var >= 0 && s.Cwnd >= 0 && max(s.RTT, s.Var, s.Cwnd, s.PMTU) < 1e15 {
				rtt, rttvar = append(rtt, s.RTT/1e6), append(rttvar, s.Var/1e6)
				cwnd, pmtu = append(cwnd, s.Cwnd), append(pmtu, s.PMTU)
			}
		}
	}
	if known {
		m.Add(metric.Retransmits, retransmits)
	}
	if len(rtt) > 0 {
		m.Add(metric.RTT, stats.Median(rtt))
		m.Add(metric.RTTVar, stats.Median(rttvar))
		m.Add(metric.CwndBytes, stats.Median(cwnd))
		if p := stats.Median(pmtu); p > 0 {
			m.Add(metric.PMTU, p)
		}
	}
}

// facts returns how the test was carried out.
func facts(c commands, w netload.Spec, client, server *output) []result.Fact {
	facts := []result.Fact{
		{Name: "tool.version", Value: family.OrUnknown(client.Start.Version)},
		{Name: "tool.version.server", Value: family.OrUnknown(server.Start.Version)},
		{Name: "tool.window", Value: c.window.String()},
		{Name: "tool.warmup", Value: c.warmup.String()},
		{Name: "workload", Value: w.Name()},
		{Name: "cpu.client", Value: pinned(c.clientCPU)},
		{Name: "cpu.server", Value: pinned(c.serverCPU)},
	}
	if c.window != w.Duration || c.warmup != w.Warmup {
		facts = append(facts, result.Fact{Name: "tool.rounded",
			Value: fmt.Sprintf("window of %s and warm-up of %s, to whole seconds as iperf3 wants them", w.Duration, w.Warmup)})
	}
	if w.Kind == netload.TCPStream {
		sender := client
		if w.Direction == netload.Reverse {
			sender = server
		}
		return append(facts, result.Fact{Name: "tcp.congestion", Value: family.OrUnknown(sender.End.Congestion)})
	}
	offload := client.Start.TestStart.GSO != 0 || client.Start.TestStart.GRO != 0
	facts = append(facts, result.Fact{Name: "udp.size", Value: strconv.Itoa(c.size)})
	if w.Kind == netload.UDPUnpaced {
		facts = append(facts, network.Unpaced)
	}
	return append(facts, result.Fact{Name: "udp.offload", Value: strconv.FormatBool(offload)})
}

// warnings adds warnings, and whether iperf3 itself was the limit.
func (m *measurement) warnings(w netload.Spec, client, server *output) {
	threads := 1
	switch {
	case client.threaded() && server.threaded():
		threads = w.Flows
	case w.Flows > 1:
		m.Warn(result.OneThread, "%s moves all %d flows in one thread, which may be the limit; "+
			"from 3.16 each flow has its own", family.OrUnknown(client.Start.Version), w.Flows)
	}
	limit := ""
	for _, side := range []struct {
		name string
		out  *output
	}{{"client", client}, {"server", server}} {
		if share := side.out.End.CPU.Total / 100 / float64(threads); share >= limited {
			limit = fmt.Sprintf("the iperf3 %s used %.0f %% of a CPU per thread", side.name, share*100)
		}
	}
	m.Limited(limit)
}

func pinned(cpu string) string {
	if cpu == "any" {
		return "anywhere"
	}
	return "pinned to " + cpu
}
