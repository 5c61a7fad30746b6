package native

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/family/network"
	"github.com/knotmeter/knotmeter/internal/load/netload"
	"github.com/knotmeter/knotmeter/internal/machine"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/profile"
	"github.com/knotmeter/knotmeter/internal/result"
)

// sides holds the two reports of a run and their circumstances.
type sides struct {
	Spec           netload.Spec
	Shared         bool   // both agents are on one machine
	CPULimit       string // limit that the user set for both sides; empty: none
	Client, Server netload.Report
}

// Limits of the checks that make a run invalid or add a warning.
const (
	shortWindow   = 0.9    // smallest ratio of the window and the time between snapshots, either way
	lateShare     = 0.1    // of the median latency: largest p99 of lateness
	lateAtLeast   = 100e-6 // s; smaller lateness is always accepted
	paceReached   = 0.98   // of the scheduled operations
	countersApart = 0.02   // of the operations, in addition to those in flight
	fullCPU       = 0.95   // of a thread's life
	stealAtMost   = 0.02   // of the machine's time
)

// merge combines the two reports of a run into one measurement. It is pure.
func merge(s sides) (result.Measurement, error) {
	latency, err := s.latency()
	if err != nil {
		return result.Measurement{}, err
	}
	late, err := s.lateness()
	if err != nil {
		return result.Measurement{}, err
	}
	metrics := metricsOf(s.Spec.Kind)
	m := &builder{sides: s, Builder: family.NewBuilder(metrics)}
	m.addWorkload(latency)
	m.transport()
	m.cpu()
	m.series()
	m.Histogram("", latency.Count(), latency.Encode())
	if late.Count() > 0 {
		m.Add(metric.LatenessP99, late.Quantile(0.99))
	}
	m.facts(latency, late)
	m.gates(latency, late)
	m.RequireMetric(network.Metric(s.Spec))
	m.warnings()
	position := func(v result.Value) int {
		return slices.IndexFunc(metrics, func(m metric.Metric) bool { return m.Name == v.Metric })
	}
	slices.SortStableFunc(m.Values, func(a, b result.Value) int { return position(a) - position(b) })
	return m.Measurement, nil
}

// latency returns the latencies of all requests of the window, including failed ones.
func (s sides) latency() (*netload.Histogram, error) {
	all, err := netload.DecodeHistogram(s.Client.Latency)
	if err != nil {
		return nil, fmt.Errorf("client's report: latencies: %w", err)
	}
	waited, err := netload.DecodeHistogram(s.Client.Waited)
	if err != nil {
		return nil, fmt.Errorf("client's report: waits: %w", err)
	}
	all.AddFailed(waited)
	return all, nil
}

// lateness merges the pacing lateness of both sides.
func (s sides) lateness() (*netload.Histogram, error) {
	all := netload.NewHistogram()
	for _, r := range []netload.Report{s.Client, s.Server} {
		h, err := netload.DecodeHistogram(r.Late)
		if err != nil {
			return nil, fmt.Errorf("%s's report: %w", r.Role, err)
		}
		all.Merge(h)
	}
	return all, nil
}

// received returns what the receivers of both sides read in the window: bytes of TCP streams, or datagrams.
func (s sides) received() float64 {
	return float64(s.Client.Received.Window + s.Server.Received.Window)
}

func (s sides) sent() float64 { return float64(s.Client.Sent.Window + s.Server.Sent.Window) }

// bytes returns the payload received in the window; 0 for workloads of requests.
func (s sides) bytes() float64 {
	switch s.Spec.Kind {
	case netload.UDPStream, netload.UDPUnpaced:
		return s.received() * float64(s.Spec.Size)
	case netload.TCPStream, netload.TCPRRLoaded:
		return s.received()
	}
	return 0
}

// operations returns how many operations were completed in the window.
func (s sides) operations() float64 {
	if s.Spec.Kind.Datagrams() {
		return s.received()
	}
	return float64(s.Client.Operations.Window)
}

// failed returns how many requests of the window were never answered, including failed cycles.
func (s sides) failed() uint64 { return s.Client.Lost + s.Client.Unfinished }

func (s sides) window() float64 { return s.Client.Window }

// A builder builds the measurement of two sides.
type builder struct {
	sides
	*family.Builder
}

// addWorkload adds the metrics of the workload itself.
func (m *builder) addWorkload(latency *netload.Histogram) {
	window, kind := m.window(), m.Spec.Kind
	switch kind {
	case netload.Unloaded:
		return // only CPU time is measured
	case netload.TCPStream:
		m.throughput(1)
		return
	case netload.UDPStream, netload.UDPUnpaced:
		m.throughput(float64(m.Spec.Size))
		m.Add(metric.ThroughputSent, m.sent()*float64(m.Spec.Size)*8/window)
		m.Add(metric.Rate, m.received()/window)
		m.Add(metric.Offered, m.sent()/window)
		m.searchStep()
		m.datagrams()
		return
	case netload.TCPRRLoaded:
		m.Add(metric.LoadThroughput, m.bytes()*8/window)
	}
	m.Add(metric.Rate, m.operations()/window)
	m.Latencies("", latency, latencies...)
	if latency.Count() > 1 {
		m.Add(metric.Stddev, latency.Stddev())
	}
	share := float64(m.failed()) / float64(latency.Count())
	switch kind {
	case netload.UDPRR, netload.Ping:
		m.Add(metric.Loss, share)
	case netload.TCPCRR:
		m.Add(metric.Failed, share)
	}
	if m.Spec.OpenLoop() {
		m.Add(metric.Offered, m.Client.Planned/window)
	}
}

// searchStep records the resolution of the search on the rates so far, which all follow the rate found.
func (m *builder) searchStep() {
	if m.Client.Sweep == nil {
		return
	}
	for i := range m.Values {
		m.Values[i].Step = m.Client.Sweep.Step
	}
}

// throughput adds the throughput: the sum and, if there are two directions, each of them. bytes is the size of the
// units that receivers count.
func (m *builder) throughput(bytes float64) {
	bits := bytes * 8 / m.window()
	m.Add(metric.Throughput, m.received()*bits)
	if m.Spec.Direction == netload.Both {
		m.Add(metric.ThroughputTX, float64(m.Server.Received.Window)*bits)
		m.Add(metric.ThroughputRX, float64(m.Client.Received.Window)*bits)
	}
}

// loss returns the share of the datagrams sent in the window that never arrived; 0 if none was sent.
func (s sides) loss() float64 {
	arrived := float64(s.Client.Arrived + s.Server.Arrived)
	return max(s.sent()-arrived, 0) / max(s.sent(), 1)
}

// datagrams adds what sequence numbers show: loss, reordering, duplicates and jitter.
func (m *builder) datagrams() {
	if m.sent() > 0 {
		m.Add(metric.Loss, m.loss())
	}
	if all := float64(m.Client.Received.Total() + m.Server.Received.Total()); all > 0 {
		m.Add(metric.Reordered, float64(m.Client.Reordered+m.Server.Reordered)/all)
		m.Add(metric.Duplicated, float64(m.Client.Duplicate+m.Server.Duplicate)/all)
		m.Add(metric.Jitter, max(m.Client.Jitter, m.Server.Jitter))
	}
}

// transport adds the TCP_INFO of the sides that send.
func (m *builder) transport() {
	var retransmits uint64
	var seen *netload.TCP
	for _, t := range []*netload.TCP{m.Server.TCP, m.Client.TCP} {
		if t != nil {
			retransmits += t.Retransmits
			seen = t // the client's if both send
		}
	}
	if seen == nil {
		return
	}
	m.Add(metric.Retransmits, float64(retransmits))
	m.Add(metric.RTT, seen.RTT)
	m.Add(metric.RTTVar, seen.RTTVar)
	m.Add(metric.Cwnd, seen.Cwnd)
	m.Add(metric.MSS, seen.MSS)
	m.Add(metric.PMTU, seen.PMTU)
	m.Add(metric.RwndLimited, seen.RwndLimited)
	m.Add(metric.SndLimited, seen.SndLimited)
	m.Fact("tcp.congestion", seen.Congestion)
}

// cpu adds the cost. CPU time of a machine that both agents share counts once.
func (m *builder) cpu() {
	c, s := m.Client.Cost, m.Server.Cost
	used := c.Used() / c.Window
	if !m.Shared {
		used += s.Used() / s.Window
	}
	// Spinning before scheduled times is a cost of the generator, not of the path. It is counted over the whole run.
	whole := (m.Spec.Warmup + m.Spec.Duration).Seconds()
	agents := (c.AgentUser+c.AgentSystem)/c.Window + (s.AgentUser+s.AgentSystem)/s.Window
	if m.Spec.Kind == netload.Unloaded {
		m.unloaded(agents)
	}
	// The idle level was measured earlier, when other programs may have been busy: the cost is at least that of the
	// agents.
	used = max(max(used, agents)-(m.Client.Spin+m.Server.Spin)/whole, 0)
	if bytes := m.bytes(); bytes > 0 {
		m.Add(metric.CPUPerGB, used*m.window()/(bytes/1e9))
	}
	if ops := m.operations(); ops > 0 && m.Spec.Kind != netload.TCPStream {
		m.Add(metric.CPUPerOp, used*m.window()/ops)
	}
	m.layers()
	m.kernel()
	modes(m, c, "")
	if !m.Shared {
		modes(m, s, metric.OfServer)
	}
	m.Add(metric.CPUBusiest, max(c.Busiest, s.Busiest))
	m.Add(metric.CPUBusiestSoftIRQ, max(c.Softest, s.Softest))
	m.Add(metric.CPUAgents, agents)
	m.Add(metric.SwitchesVoluntary, float64(c.Voluntary)/c.Window+float64(s.Voluntary)/s.Window)
	m.Add(metric.SwitchesInvoluntary, float64(c.Involuntary)/c.Window+float64(s.Involuntary)/s.Window)
}

// unloaded adds the CPU time of all machines without that of the agents.
func (m *builder) unloaded(agents float64) {
	busy := m.Client.Cost.Machine.Busy() / m.Client.Cost.Window
	if !m.Shared {
		busy += m.Server.Cost.Machine.Busy() / m.Server.Cost.Window
	}
	m.Add(metric.CPUUnloaded, max(busy-agents, 0))
}

// layers adds the parts of the cost if CPUs were sampled: all time of the machines without the pacer's spinning. A
// layer without a sample is left out.
func (m *builder) layers() {
	if m.Client.Layers == nil || m.Server.Layers == nil && !m.Shared {
		return
	}
	cost, amount := metric.CPUPerOp, m.operations()
	if m.Spec.Kind == netload.TCPStream {
		cost, amount = metric.CPUPerGB, m.bytes()/1e9
	}
	if amount <= 0 {
		return
	}
	spun := (m.Client.Spin + m.Server.Spin) * m.window() / (m.Spec.Warmup + m.Spec.Duration).Seconds()
	for _, part := range metric.Layers() {
		layer := profile.Layer(part.Name)
		used := m.Client.Layers[layer] + m.Server.Layers[layer]
		if layer == profile.User {
			used -= spun
		}
		if used > 0 {
			m.Add(metric.OfLayer(cost, part.Name), used/amount)
		}
	}
}

// kernel adds the kernel's counters. Those of a machine that both agents share are taken from the client.
func (m *builder) kernel() {
	m.addCounter(metric.CPUThrottled, float64(m.Client.Cost.Throttled), float64(m.Server.Cost.Throttled))
	for _, c := range metric.Counters() {
		for _, name := range []string{c.Name, metric.OfNode + c.Name} {
			server := m.Server.Counters[name]
			if m.Shared && metric.OfMachine(name) {
				server = 0
			}
			m.addCounter(name, m.Client.Counters[name], server)
		}
	}
}

// addCounter adds the values of a counter that are above 0.
func (m *builder) addCounter(counter string, client, server float64) {
	name := metric.OfCounter(counter)
	if client > 0 {
		m.Add(name, client)
	}
	if server > 0 {
		m.Add(name+metric.OfServer, server)
	}
}

// modes adds the shares of a side's machine by CPU mode, and its memory, both with their level before the run. Unknown
// memory is left out.
func modes(m *builder, c netload.Cost, side string) {
	if c.Memory > 0 {
		m.Add(metric.Memory+side, c.Memory)
	}
	if c.IdleMemory > 0 {
		m.Add(metric.MemoryIdleLevel+side, c.IdleMemory)
	}
	all := c.Machine.Sum()
	if all <= 0 {
		return
	}
	m.Add(metric.CPUBusy+side, c.Machine.Busy()/all)
	m.Add(metric.CPUUser+side, (c.Machine[machine.User]+c.Machine[machine.Nice])/all)
	m.Add(metric.CPUSystem+side, c.Machine[machine.System]/all)
	m.Add(metric.CPUIOWait+side, c.Machine[machine.IOWait]/all)
	m.Add(metric.CPUIRQ+side, c.Machine[machine.IRQ]/all)
	m.Add(metric.CPUSoftIRQ+side, c.Machine[machine.SoftIRQ]/all)
	m.Add(metric.CPUSteal+side, c.Machine[machine.Steal]/all)
	m.Add(metric.CPUIdle+side, c.Machine[machine.Idle]/all)
	m.Add(metric.CPUIdleLevel+side, c.Idle/float64(c.CPUs))
}

// series adds the throughput, or the rate of completed operations, per step of the window.
func (m *builder) series() {
	if m.Spec.Kind == netload.Unloaded {
		return
	}
	name, scale := metric.Rate, 1.0
	counts := slices.Clone(m.Client.Steps)
	if m.Spec.Kind.Stream() {
		for i, n := range m.Server.Steps {
			if i < len(counts) {
				counts[i] += n
			}
		}
		name, scale = metric.Throughput, 8
		if m.Spec.Kind.Datagrams() {
			scale *= float64(m.Spec.Size)
		}
	}
	step := netload.Step.Seconds()
	values := make([]float64, len(counts))
	for i, n := range counts {
		values[i] = float64(n) * scale / step
	}
	m.Steps(name, step, values)
}

// facts adds how the run was carried out.
func (m *builder) facts(latency, late *netload.Histogram) {
	m.Fact("tool.version", m.Client.Version)
	m.Fact("workload", m.Spec.Name())
	if !m.Spec.Kind.Stream() && m.Spec.Kind != netload.Unloaded {
		loop := "closed"
		switch {
		case m.Spec.OpenLoop():
			loop = "open"
		case m.Spec.Kind == netload.Ping:
			loop = "paced"
		}
		m.Fact("loop", loop)
	}
	switch m.Spec.Kind {
	case netload.TCPCRR:
		m.Fact("tcp.close", "server first, by FIN")
	case netload.UDPStream, netload.UDPUnpaced:
		m.Fact("udp.size", strconv.Itoa(m.Spec.Size))
		m.Fact("udp.offload", strconv.FormatBool(m.Spec.Offload))
		m.Fact(network.Unpaced.Name, m.pacing())
	}
	m.Fact("cpu.client", placement(m.Client))
	m.Fact("cpu.server", placement(m.Server))
	m.Fact("cpu.shared", strconv.FormatBool(m.Shared))
	m.Fact("cpu.idle-level.client", strconv.FormatFloat(m.Client.Cost.Idle, 'f', 3, 64))
	m.Fact("cpu.idle-level.server", strconv.FormatFloat(m.Server.Cost.Idle, 'f', 3, 64))
	warm := m.Client.Operations.Warm
	if m.Spec.Kind.Stream() {
		warm = m.Client.Received.Warm + m.Server.Received.Warm
	}
	m.Fact("warmup.left-out", strconv.FormatUint(warm, 10))
	m.Limited(m.limited(latency, late))
	for _, r := range []netload.Report{m.Client, m.Server} {
		if r.Unsampled != "" {
			m.Fact("layers."+string(r.Role), "not sampled: "+r.Unsampled)
		}
		m.Fact("counters."+string(r.Role), counterScope(r))
		for _, f := range r.Facts {
			m.Fact(f.Name+"."+string(r.Role), f.Value)
		}
	}
}

// counterScope describes where a side's kernel counters were read.
func counterScope(r netload.Report) string {
	switch {
	case r.Uncounted != "":
		return "not counted: " + r.Uncounted
	case r.Counters == nil:
		return "not counted"
	case r.OfNode:
		return "here and on the node"
	}
	return "here"
}

// pacing describes the offered rate.
func (m *builder) pacing() string {
	if s := m.Client.Sweep; s != nil {
		return fmt.Sprintf("sweep to %g loss: %.0f/s after %d trials", m.Spec.Loss, s.Rate, len(s.Trials))
	}
	if m.Spec.Kind == netload.UDPUnpaced {
		return network.Unpaced.Value
	}
	return fmt.Sprintf("%.0f/s", m.Spec.Rate)
}

// placement describes on which CPUs the workers of a side ran: "0" if they were pinned to CPU 0, "0,1 unpinned" if they
// were not pinned and ran on both.
func placement(r netload.Report) string {
	var seen []int
	pinned := true
	for _, t := range r.Threads {
		pinned = pinned && t.Pinned >= 0
		seen = append(seen, t.CPUs...)
	}
	slices.Sort(seen)
	seen = slices.Compact(seen)
	text := make([]string, len(seen))
	for i, c := range seen {
		text[i] = strconv.Itoa(c)
	}
	out := strings.Join(text, ",")
	if out == "" {
		return result.Unknown
	}
	if !pinned {
		out += " unpinned"
	}
	return out
}

// limited returns why the generator limited the run: one of its threads used all of its CPU time, or it could not keep
// its schedule; "" if it did not.
func (m *builder) limited(latency, late *netload.Histogram) string {
	if m.Spec.Rate > 0 {
		if why := m.behind(latency, late); why != "" {
			return why
		}
	}
	for _, r := range []netload.Report{m.Client, m.Server} {
		for _, t := range r.Threads {
			if busy := t.Busy() - r.Spin/max(t.Lifetime, 1e-9)/float64(len(r.Threads)); busy >= fullCPU {
				return fmt.Sprintf("a %s thread of the %s was on its CPU for %.0f %% of the run, %.0f %% in the kernel",
					t.Work, r.Role, busy*100, t.System/max(t.Lifetime, 1e-9)*100)
			}
		}
	}
	return ""
}

func (s sides) planned() float64 { return s.Client.Planned + s.Server.Planned }

// unreached reports whether the senders of datagrams could not keep their rate.
func (s sides) unreached() bool { return s.sent() < s.planned()*paceReached }

// behind returns how a paced generator missed its schedule; "" if it did not.
func (m *builder) behind(latency, late *netload.Histogram) string {
	if m.Spec.Kind.Datagrams() {
		if m.unreached() {
			return fmt.Sprintf("only %.1f %% of the planned datagrams were sent", m.sent()/m.planned()*100)
		}
		return ""
	}
	if late.Count() == 0 || latency.Count() == 0 {
		return ""
	}
	if p99 := late.Quantile(0.99); p99 > max(lateAtLeast, lateShare*latency.Quantile(0.5)) {
		return fmt.Sprintf("one request in a hundred was begun more than %.0f µs late", p99*1e6)
	}
	return ""
}
