package iperf3

import (
	"fmt"
	"math"
	"strconv"

	"github.com/knotmeter/knotmeter/internal/family/network"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/stats"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// Thresholds of the validity gates and of the generator's own limit.
const (
	// Of the window that was asked for; a busy receiver begins its own a little late, and counts bytes and
	// time from there.
	fullWindow = 0.8
	onTime     = 0.95 // of the datagrams that should have been sent
	limited    = 0.95 // of a CPU, used by one thread of iperf3
)

// What runs have, of both workloads and of one of them. Not cwnd, which is in segments: iperf3 does not say how long
// those of its flows are.
var (
	reported = []string{
		metric.Throughput, metric.CPUAgents, metric.CPUTimeClient, metric.CPUTimeServer, metric.CPUAgentsPerGB,
	}
	ofDatagrams = []string{metric.Rate, metric.Jitter, metric.Offered, metric.Reordered, metric.Loss}
	ofTCP       = []string{metric.Retransmits, metric.RTT, metric.RTTVar, metric.CwndBytes, metric.PMTU}
)

// valueOf is one of the metric of that name.
func valueOf(name string, number float64) result.Value {
	return result.NewValue(metric.Named(name), number)
}

// A half is one direction of a test, with each side's own account of it.
type half struct {
	sender, receiver *output
	sent, received   *sum
	back             bool // the second direction of --bidir
}

// measure makes a measurement of both sides' outputs. It is pure.
func measure(c commands, w network.Spec, client, server *output) (result.Measurement, error) {
	halves, err := split(w, client, server)
	if err != nil {
		return result.Measurement{}, err
	}
	m := result.Measurement{Window: halves[0].received.Seconds}
	m.Facts = facts(c, w, client, server)
	m.Values, err = values(c, w, halves)
	if err != nil {
		return result.Measurement{}, err
	}
	m.Values = append(m.Values, cost(halves, client, server)...)
	if s := series(c, halves); len(s.Values) > 0 {
		m.Series = append(m.Series, s)
	}
	for _, h := range halves {
		m.Invalid = append(m.Invalid, gates(c, w, h)...)
	}
	tcpInfo(&m, w, halves)
	doubts(&m, w, client, server)
	return m, nil
}

// split finds for each direction what its sender says that it sent and its receiver that it got.
func split(w network.Spec, client, server *output) ([]half, error) {
	forward := half{sender: client, receiver: server, sent: client.End.Sent, received: server.End.Received}
	reverse := half{sender: server, receiver: client, sent: server.End.Sent, received: client.End.Received}
	back := half{sender: server, receiver: client, sent: server.End.SentBack, received: client.End.ReceivedBack, back: true}
	var halves []half
	switch w.Direction {
	case network.Reverse:
		halves = []half{reverse}
	case network.Both:
		halves = []half{forward, back}
	default:
		halves = []half{forward}
	}
	for _, h := range halves {
		if h.received == nil || h.sent == nil {
			return nil, result.NotSupported(fmt.Sprintf("%s prints no sums of each side for %s %s; iperf 3.12 does", h.receiver.Start.Version, w.Kind, w.Direction))
		}
	}
	return halves, checkSums(halves)
}

func checkSums(halves []half) error {
	for _, h := range halves {
		for _, s := range []*sum{h.received, h.sent} {
			if !(s.Seconds > 0 && s.Seconds < 1e6 && s.Bytes >= 0 && s.Bytes < 1e18) {
				return fmt.Errorf("%w: a sum of %g bytes in %g s", ErrOutput, s.Bytes, s.Seconds)
			}
		}
	}
	return nil
}

// values are the receiver's: both directions together where there are two.
func values(c commands, w network.Spec, halves []half) ([]result.Value, error) {
	var bits, datagrams, offered, arrived, lost, packets, jitter, reordered float64
	for _, h := range halves {
		r := h.received
		bits += 8 * r.Bytes / r.Seconds
		datagrams += r.Bytes / float64(c.size) / r.Seconds
		offered += h.sent.Bytes / float64(c.size) / h.sent.Seconds
		arrived += r.Bytes / float64(c.size)
		lost, packets = lost+r.Lost, packets+r.Packets
		jitter += r.Jitter / 1e3 / float64(len(halves))
		reordered += outOfOrder(h)
	}
	values := []result.Value{valueOf(metric.Throughput, bits)}
	if w.Kind != network.UDPStream {
		return values, nil
	}
	if !(lost >= 0 && lost <= packets && packets < 1e15 && jitter >= 0 && jitter < 1e6 && reordered >= 0 && reordered < 1e15) {
		return nil, fmt.Errorf("%w: %g of %g datagrams lost, %g reordered, jitter %g s", ErrOutput, lost, packets, reordered, jitter)
	}
	values = append(values,
		valueOf(metric.Rate, datagrams),
		valueOf(metric.Jitter, jitter),
		valueOf(metric.Offered, offered))
	if arrived > 0 {
		values = append(values, valueOf(metric.Reordered, reordered/arrived))
	}
	if packets > 0 {
		values = append(values, valueOf(metric.Loss, lost/packets))
	}
	return values, nil
}

func outOfOrder(h half) (n float64) {
	for _, s := range h.receiver.End.Streams {
		if s.UDP != nil && !s.UDP.Sender {
			n += s.UDP.OutOfOrder
		}
	}
	return n
}

// cost is the CPU time of the two processes. iperf3 reports their share of the whole test, warm-up
// too; here it is taken to be the same in the window. It is not the cost of the path, for it leaves
// out what the kernel does in soft interrupts on other tasks' time, and so has names of its own.
func cost(halves []half, client, server *output) []result.Value {
	var bytes float64
	for _, h := range halves {
		bytes += h.received.Bytes
	}
	window := halves[0].received.Seconds
	onClient, onServer := client.End.CPU.Total/100, server.End.CPU.Total/100
	if !(onClient >= 0 && onServer >= 0 && onClient+onServer < 1e6) {
		return nil
	}
	values := []result.Value{
		valueOf(metric.CPUAgents, onClient+onServer),
		valueOf(metric.CPUTimeClient, onClient*window),
		valueOf(metric.CPUTimeServer, onServer*window),
	}
	if bytes > 0 {
		perGB := (onClient + onServer) * window / (bytes / 1e9)
		values = append(values, valueOf(metric.CPUAgentsPerGB, perGB))
	}
	return values
}

// series is the throughput as the receivers saw it, step by step, both directions together.
func series(c commands, halves []half) result.Series {
	s := result.Series{Name: metric.Throughput, Unit: unit.BitPerSecond, Step: c.step.Seconds()}
	for i, h := range halves {
		var steps []float64
		for _, v := range h.receiver.Intervals {
			part := v.Sum
			if h.back {
				part = v.SumBack
			}
			// What remains at the end is not a step.
			if !part.Omitted && part.Seconds > c.step.Seconds()/2 && part.Bits >= 0 && part.Bits < 1e18 {
				steps = append(steps, part.Bits)
			}
		}
		if i == 0 {
			s.Values = steps
			continue
		}
		s.Values = s.Values[:min(len(s.Values), len(steps))]
		for j := range s.Values {
			s.Values[j] += steps[j]
		}
	}
	return s
}

// gates are the reasons why a direction must not count.
func gates(c commands, w network.Spec, h half) (invalid []string) {
	add := func(format string, a ...any) { invalid = append(invalid, fmt.Sprintf(format, a...)) }
	if got := h.received.Seconds; got < fullWindow*c.window.Seconds() {
		add("the receiver's window was %.3g s long, not %g s", got, c.window.Seconds())
	}
	if h.received.Bytes == 0 {
		add("nothing arrived")
	}
	if w.Kind != network.UDPStream {
		return invalid
	}
	size := float64(c.size)
	if sent := h.sent.Bytes / size / h.sent.Seconds; sent < onTime*w.Rate {
		add("the generator was late: it sent %.4g of %.4g datagrams per second", sent, w.Rate)
	}
	counted, arrived := h.received.Packets-h.received.Lost, h.received.Bytes/size
	if math.Abs(counted-arrived) > 2+0.001*arrived+outOfOrder(h) {
		add("the receiver's sums do not close: %.0f datagrams less %.0f lost, but the bytes of %.0f", h.received.Packets, h.received.Lost, arrived)
	}
	return invalid
}

// tcpInfo adds what TCP_INFO of the sending sides said: retransmits of the window, and of its last
// step the median over the flows of the rest.
func tcpInfo(m *result.Measurement, w network.Spec, halves []half) {
	if w.Kind != network.TCPStream {
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
		m.Values = append(m.Values, valueOf(metric.Retransmits, retransmits))
	}
	if len(rtt) > 0 {
		m.Values = append(m.Values,
			valueOf(metric.RTT, stats.Median(rtt)),
			valueOf(metric.RTTVar, stats.Median(rttvar)),
			valueOf(metric.CwndBytes, stats.Median(cwnd)))
		if p := stats.Median(pmtu); p > 0 {
			m.Values = append(m.Values, valueOf(metric.PMTU, p))
		}
	}
}

// facts say how the test was done.
func facts(c commands, w network.Spec, client, server *output) []result.Fact {
	facts := []result.Fact{
		{Name: "tool.version", Value: known(client.Start.Version)},
		{Name: "tool.version.server", Value: known(server.Start.Version)},
		{Name: "tool.window", Value: c.window.String()},
		{Name: "tool.warmup", Value: c.warmup.String()},
		{Name: "workload", Value: w.String()},
		{Name: "cpu.client", Value: pinned(c.clientCPU)},
		{Name: "cpu.server", Value: pinned(c.serverCPU)},
	}
	if c.window != w.Duration || c.warmup != w.Warmup {
		facts = append(facts, result.Fact{Name: "tool.rounded",
			Value: fmt.Sprintf("window of %s and warm-up of %s, to whole seconds as iperf3 wants them", w.Duration, w.Warmup)})
	}
	if w.Kind == network.TCPStream {
		sender := client
		if w.Direction == network.Reverse {
			sender = server
		}
		return append(facts, result.Fact{Name: "tcp.congestion", Value: known(sender.End.Congestion)})
	}
	offload := client.Start.TestStart.GSO != 0 || client.Start.TestStart.GRO != 0
	facts = append(facts, result.Fact{Name: "udp.size", Value: strconv.Itoa(c.size)})
	return append(facts, result.Fact{Name: "udp.offload", Value: strconv.FormatBool(offload)})
}

// doubts adds the warnings and whether iperf3 itself was the limit.
func doubts(m *result.Measurement, w network.Spec, client, server *output) {
	threads := 1
	switch {
	case client.threaded() && server.threaded():
		threads = w.Flows
	case w.Flows > 1:
		m.Warnings = append(m.Warnings, fmt.Sprintf("%s moves all %d flows in one thread, which may be the limit; from 3.16 each flow has its own",
			known(client.Start.Version), w.Flows))
	}
	isLimit := "no"
	for _, side := range []struct {
		name string
		out  *output
	}{{"client", client}, {"server", server}} {
		if share := side.out.End.CPU.Total / 100 / float64(threads); share >= limited {
			isLimit = fmt.Sprintf("yes: the iperf3 %s used %.0f %% of a CPU per thread", side.name, share*100)
		}
	}
	m.Facts = append(m.Facts, result.Fact{Name: "generator.limited", Value: isLimit})
}

func pinned(cpu string) string {
	if cpu == "any" {
		return "anywhere"
	}
	return "pinned to " + cpu
}

func known(text string) string {
	if text == "" {
		return result.Unknown
	}
	return text
}
