package explain

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// A rule checks for one way in which a target can be worse than another.
type rule struct {
	name           string
	kind           kind
	cause          string
	remedy, source string
	metrics        []string // metrics whose comparisons it can explain; none: all
	slows          subject
	judge          func(evidence) finding
	// harm returns what shows that a setting that differs slows the worse target; empty if nothing does. Without it
	// only a trial can show that.
	harm   func(evidence) []string
	factor func(evidence) *Factor // factor that can be made equal; nil if there is none
}

// A subject is what a cause can slow.
type subject int

const (
	traffic      subject = iota // whatever is not a computation
	computations                // which use only a node's CPUs and memory
	anything
)

// canSlow reports whether the rule is about what the case of the evidence does.
func (r rule) canSlow(e evidence) bool {
	return r.slows == anything || (r.slows == computations) == e.local
}

// A kind is the distance of a cause from the result. A setting causes events, and events cost time, so supported causes
// of a lower kind are closer to something that can be changed.
type kind int

const (
	setting kind = iota // configuration of a target, and its limits
	event               // events in the kernel
	effect              // use of time
)

// Minimum differences of candidates. The decision depends on whether the targets differ; these exclude differences that
// are too small to matter.
const (
	leastSegment    = 0.01 // of the segment's size
	leastRepeated   = 1e-4 // of the segments: losing one in ten thousand is noticeable on a path of 1 ms and 10 Gbit/s
	leastStolen     = 0.01 // of the machine's time
	leastWait       = 0.03 // of the latency
	leastOfLimit    = 0.85 // of a limit that includes headers, reached by payload
	mostOfLimit     = 1.1  // likewise, with the bursts that a short window holds
	windowTolerance = 0.15 // between the rate and window / RTT
	leastEvents     = 1    // per second, of events that should not happen at all
	leastHeld       = 10   // per second, of packets that a queue holds back to keep a rate
	leastSqueezes   = 50   // per second, of events that also occur on a CPU that keeps up
	leastHindered   = 0.1  // of the window, during which TCP could not send
	leastPressure   = 0.15 // of the window
	leastOthers     = 0.02 // of the window, in which every moment without a CPU is lost
	leastSoftIRQ    = 0.1  // of a CPU
	fullSoftIRQ     = 0.85 // likewise
	fullTable       = 0.9  // of the table of tracked connections
	leastFuller     = 0.05 // likewise
	leastFiltering  = 0.3  // of the difference in CPU time
	leastBouncing   = 0.1  // likewise
	leastPerPacket  = 0.1  // likewise
	nearLimit       = 0.1  // relative distance of a rate below a limit of a flow
	leastPrograms   = 0.1  // of a CPU
)

// Metrics of comparisons of bulk transfers and of datagrams.
var (
	bulk      = []string{metric.Throughput}
	datagrams = []string{metric.Throughput, metric.Rate, metric.Loss, metric.P50}
)

// rules lists all rules, in the order in which causes of one kind and equal share are listed.
var rules = []rule{
	{name: "rate-limit", cause: "a limit of the rate", kind: setting, metrics: bulk, judge: judgeRate,
		remedy: "raise the limit, or measure below it", source: "facts of the targets; tc-tbf(8), tc-htb(8)",
		factor: option("rate")},
	{name: "flow-limit", cause: "the provider's limit of a single flow", kind: setting, metrics: bulk,
		judge: judgeFlow, remedy: "use more flows, or nodes of one placement group",
		source: "docs.aws.amazon.com, Amazon EC2 instance network bandwidth"},
	{name: "throttling", cause: "a quota of CPU time that is used up", kind: setting, slows: anything,
		judge:  judgeCounts("throttled periods", leastEvents, metric.CPUThrottled),
		remedy: "raise the CPU limit of the pods", source: "cgroups(7), cpu.stat",
		factor: option("cpu-limit")},
	{name: "confidential-vm", cause: "a confidential machine", kind: setting, slows: anything,
		judge: judgeConfidential, harm: layersCost(leastBouncing, "bounce"),
		remedy: "compare with a machine of the same type that is not confidential, to know what that costs",
		source: "facts of the targets"},
	{name: "cpu-model", cause: "another CPU", kind: setting, slows: computations, judge: judgeCPUModel,
		remedy: "compare on machines of the same type, if the CPU is not the question", source: "facts of the targets"},
	{name: "one-cpu", cause: "both ends on one CPU", kind: setting, judge: judgeOneCPU, harm: oneCPUIsFull,
		remedy: "give the ends CPUs of their own", source: "docs/method.md",
		factor: option("cpus")},
	{name: "mtu-too-large", cause: "packets that do not fit through the tunnel", kind: setting, judge: judgeTunnelMTU,
		harm:   anyOf(judgeFragments, judgeRetransmissions),
		remedy: "lower the MTU of the pods by what the tunnel adds", source: "RFC 7348 section 4.3"},
	{name: "proxy", cause: "proxies that packets go through", kind: setting, judge: judgeProxy,
		harm:   anyOf(judgePrograms, judgeLayer(inUserSpace, leastLayer)),
		remedy: "compare with encryption in the kernel (WireGuard, IPsec), which has no proxies on the path",
		source: "facts of the targets"},
	{name: "encryption", cause: "encryption", kind: setting, judge: judgeProperty("encryption"),
		harm:   encryptionCosts,
		remedy: "compare with hardware that has the cipher's instructions, or with more flows on more CPUs",
		source: "facts of the targets"},
	{name: "encapsulation", cause: "encapsulation", kind: setting, judge: judgeProperty("encapsulation"),
		harm:   encapsulationCosts,
		remedy: "native routing avoids it where the network carries the pods' addresses", source: "facts of the targets"},
	{name: "offloads", cause: "offloads that are switched off", kind: setting, judge: judgeOffloads,
		harm:   layersCost(leastPerPacket, perPacket...),
		remedy: "switch them on with ethtool -K, or find out what switched them off", source: "ethtool(8)",
		factor: option("offloads")},
	{name: "receiver-window", cause: "a receiver's window that is too small", kind: setting, metrics: bulk,
		judge:  judgeLevel(metric.RwndLimited, "share of the time in which the receiver's window was full", leastHindered),
		remedy: "raise net.ipv4.tcp_rmem at the receiver", source: "tcp(7), RFC 7323 section 1",
		factor: option("buffer", "delay")},
	{name: "send-buffer", cause: "a sender's buffer that is too small", kind: setting, metrics: bulk,
		judge:  judgeLevel(metric.SndLimited, "share of the time in which the sender's buffer was full", leastHindered),
		remedy: "raise net.ipv4.tcp_wmem at the sender", source: "tcp(7)",
		factor: option("buffer")},
	{name: "window", cause: "a window that is too small for the round trip", kind: setting, metrics: bulk,
		judge:  judgeWindow,
		remedy: "raise net.ipv4.tcp_rmem and tcp_wmem, or use more flows", source: "RFC 7323 section 1",
		factor: option("buffer", "delay")},
	{name: "smaller-segments", cause: "smaller packets", kind: setting, metrics: bulk, judge: judgeSegments,
		harm:   layersCost(leastPerPacket, perPacket...),
		remedy: "raise the MTU of the pods, or of the nodes for what a tunnel adds", source: "RFC 879, RFC 8899",
		factor: optionOf(segmentParameter, "mtu", "pod-mtu")},
	{name: "congestion-control", cause: "another congestion control", kind: setting, metrics: bulk,
		judge:  judgeFact("tcp.congestion"),
		remedy: "set net.ipv4.tcp_congestion_control alike", source: "tcp(7)",
		factor: optionOf(congestionParameter, "congestion")},
	{name: "legacy-routing", cause: "packets that take the node's own way", kind: setting, judge: judgeHostRouting,
		harm:   layersCost(leastPerPacket, "ip", "netfilter"),
		remedy: "let Cilium route with BPF: enable-host-legacy-routing=false, with BPF masquerading",
		source: "docs.cilium.io, tuning guide"},

	{name: "packet-filter", cause: "more work in the packet filter", kind: event,
		judge:  judgeLayer("netfilter", leastFiltering),
		remedy: "look for many rules: of Services by iptables, of policies", source: "samples of this machine's CPUs",
		factor: option("rules", "services")},
	{name: "ebpf-programs", cause: "more work in eBPF programs", kind: event,
		judge:  judgeLayer("ebpf", leastFiltering),
		remedy: "look at what the programs do: policies, flow export, masquerading, Services",
		source: "samples of this machine's CPUs"},
	{name: "routing", cause: "more work in routing", kind: event,
		judge:  judgeLayer("ip", leastFiltering),
		remedy: "look for more hops, routing rules and large routing tables: ip rule, ip route",
		source: "samples of this machine's CPUs"},
	{name: "bridge", cause: "more work in bridges", kind: event,
		judge:  judgeLayer("bridge", leastFiltering),
		remedy: "look at bridges between the pods and their node, and whether they call the packet filter",
		source: "samples of this machine's CPUs"},
	{name: "bounce-buffers", cause: "copies into buffers that devices can reach", kind: event,
		judge:  judgeLayer("bounce", leastBouncing),
		remedy: "compare with machines that are not confidential, or with devices that encrypted memory reaches",
		source: "docs.kernel.org, DMA and swiotlb"},
	{name: "steal", cause: "CPU time that the hypervisor gives to others", kind: event, slows: anything,
		judge:  judgeStolen,
		remedy: "use machines with dedicated CPUs", source: "proc(5), /proc/stat"},
	{name: "starved", cause: "programs that wait for a CPU", kind: event, slows: anything, judge: judgePressure,
		remedy: "look for what else runs on these nodes, or give the pods CPUs of their own",
		source: "docs.kernel.org, Pressure Stall Information"},
	{name: "listen-overflows", cause: "a queue of new connections that is too short", kind: event,
		judge:  judgeCounts("listen overflows", leastEvents, metric.ListenOverflows),
		remedy: "raise net.core.somaxconn and the server's backlog", source: "listen(2)"},
	{name: "conntrack-full", cause: "a full table of connections", kind: event, judge: judgeConntrackTable,
		remedy: "raise net.netfilter.nf_conntrack_max on the nodes, or let fewer connections be tracked",
		source: "docs.kernel.org, nf_conntrack"},
	{name: "conntrack-races", cause: "packets that make the same connection at once", kind: event,
		judge:  judgeCounts("failed inserts by connection tracking", leastEvents, metric.ConntrackInsertFailed),
		remedy: "avoid translation for such traffic, as a node-local DNS cache does for lookups",
		source: "kubernetes/kubernetes#56903"},
	{name: "receive-buffer", cause: "a receiving socket without room", kind: event, metrics: datagrams,
		judge:  judgeCounts("datagrams dropped at sockets", leastEvents, metric.ReceiveBufferErrors),
		remedy: "raise net.core.rmem_max and the receiver's buffer; it is the receiver, not the path",
		source: "udp(7), /proc/net/snmp"},
	{name: "checksums", cause: "packets with a wrong checksum", kind: event,
		judge:  judgeCounts("packets with a wrong checksum", leastEvents, metric.ChecksumErrors),
		remedy: "switch off checksum offload of the tunnel's device (ethtool -K DEVICE tx off) and update its driver",
		source: "RFC 1071, ethtool(8)"},
	{name: "fragments", cause: "packets that are too big for the path", kind: event,
		judge:  judgeFragments,
		remedy: "lower the MTU of the pods to what the path carries", source: "RFC 8899"},
	{name: "queue-drops", cause: "packets dropped by queues and devices", kind: event,
		judge:  judgeCounts("drops by queues and devices", leastEvents, metric.QueueDrops, metric.DeviceDrops),
		remedy: "find the queue that is too short or the limit behind it: tc -s qdisc, ip -s link",
		source: "tc(8), ip-link(8)"},
	{name: "nic-allowance", cause: "an allowance of the provider that is used up", kind: event,
		judge:  judgeCounts("packets above the instance's allowance", leastEvents, metric.AllowanceExceeded),
		remedy: "take a larger instance, or spread the load over more of them",
		source: "docs.aws.amazon.com, Monitor network performance for ENA settings"},
	{name: "ring-drops", cause: "a receive ring without room", kind: event,
		judge:  judgeCounts("packets without room in a receive ring", leastEvents, metric.RingDrops),
		remedy: "enlarge the ring (ethtool -G), or spread the packets over more queues",
		source: "docs.kernel.org, mlx5 ethtool counters"},
	{name: "softnet-drops", cause: "a CPU that has too many packets waiting", kind: event,
		judge:  judgeCounts("packets dropped before a CPU took them", leastEvents, metric.SoftnetDrops),
		remedy: "raise net.core.netdev_max_backlog, or spread the packets over more CPUs (RPS, RSS)",
		source: "docs.kernel.org, Scaling in the Linux Networking Stack"},
	{name: "connection-retries", cause: "new connections that have to be asked for again", kind: event,
		judge:  judgeCounts("repeated questions for a connection", leastEvents, metric.SYNRetransmitted),
		remedy: "find where first packets are lost: full queues, tables and policies", source: "RFC 6298"},
	{name: "retransmissions", cause: "retransmissions", kind: event, metrics: bulk, judge: judgeRetransmissions,
		remedy: "find where packets are lost: queues, policers, receive rings", source: "RFC 5681",
		factor: option("loss")},
	{name: "softnet-squeezes", cause: "a CPU that puts packets off", kind: event,
		judge:  judgeCounts("times that a CPU put packets off", leastSqueezes, metric.SoftnetSqueezes),
		remedy: "raise net.core.netdev_budget, or spread the packets over more CPUs",
		source: "docs.kernel.org, net.core.netdev_budget"},

	{name: "softirq-cpu", cause: "one CPU full of soft interrupts", kind: effect,
		judge:  judgeSoftIRQ,
		remedy: "spread the packets over more CPUs (RSS, RPS), or use more flows",
		source: "docs.kernel.org, Scaling in the Linux Networking Stack"},
	{name: "other-programs", cause: "more work in other programs", kind: effect, judge: judgePrograms,
		remedy: "look for proxies that packets go through, and for what else runs on these nodes",
		source: "samples of this machine's CPUs during the runs"},
	{name: "cpu-layers", cause: "more CPU time on the path", kind: effect, judge: judgeLayers,
		remedy: "look at the layers with the largest part; fewer hops, rules or copies there cost less",
		source: "samples of this machine's CPUs during the runs"},
	{name: "waiting", cause: "time in which no CPU works", kind: effect, metrics: []string{metric.P50},
		judge:  judgeWaiting,
		remedy: "look for a longer way, queues, power saving and interrupts that are put off",
		source: "latency less the sampled CPU time",
		factor: option("delay")},
}

// judgeWaiting judges the part of a latency that no sample accounts for. It needs operations one at a time, without
// concurrent work.
func judgeWaiting(e evidence) finding {
	if e.row.Metric != metric.P50 || e.cost != metric.CPUPerOp {
		return unobservable("the CPU time of an operation was not sampled")
	}
	d, ok := e.pairedDifference("waiting", unit.Second, func(r *result.Run) (float64, bool) {
		latency, has := r.Value(metric.P50)
		cpu, sampled := sampledCPUTime(r, metric.CPUPerOp)
		return latency.Number - cpu, has && sampled
	})
	if !ok {
		return unobservable("there are too few blocks with samples")
	}
	whole, _ := e.metricDifference(metric.P50)
	f := finding{state: d.state(1, leastWait*whole.better), evidence: []string{d.subject + " " + d.change()}}
	if f.state == Supported {
		f.share = e.shareOf(d)
	}
	return f
}

// judgeRate compares the throughput with limits that facts of the targets state; without such limits it compares how
// often queues held packets back.
func judgeRate(e evidence) finding {
	f := unobservable("the targets do not tell their limits")
	rate, has := e.metricDifference(metric.Throughput)
	for _, fact := range []string{"underlay-rate", "bandwidth", "node-speed"} {
		worse, better, ok := e.targetFact(fact)
		limit, err := unit.ParseAs(worse, unit.BitPerSecond)
		other, unlimited := unit.ParseAs(better, unit.BitPerSecond)
		switch {
		case !ok || !has || e.path.Same():
			continue
		case err == nil && (unlimited != nil || other > limit) && rate.worse >= leastOfLimit*limit &&
			rate.worse <= mostOfLimit*limit:
			return finding{state: Supported, evidence: []string{worse + " instead of " + better}}
		}
		f = finding{state: Contradicted, evidence: []string{worse + "; on the other " + better}}
	}
	held := judgeCounts("times that a queue held packets back", leastHeld, metric.QueueOverlimits)(e)
	if held.state == Supported || f.state == NotObservable {
		return held
	}
	return f
}

func judgeSegments(e evidence) finding {
	d, ok := e.metricDifference(metric.MSS)
	if !ok {
		return unobservable("the runs have no segment size")
	}
	f := finding{state: d.state(-1, leastSegment*d.better), evidence: []string{d.String()}}
	if f.state == Supported {
		f.state = Differs // with segmentation offload, smaller packets may cost nothing
	}
	return f
}

// judgeFragments compares how many packets were too big for their way.
func judgeFragments(e evidence) finding {
	return judgeCounts("fragments and packets that were too big", leastEvents,
		metric.Fragments, metric.FragmentationFailed, metric.Unreachable)(e)
}

// judgeTunnelMTU uses the result of preflight checks of clusters and labs on the MTU of the tunnel.
func judgeTunnelMTU(e evidence) finding {
	worse, better, ok := e.targetFact("tunnel-mtu")
	if !ok {
		return unobservable("the targets do not tell what their tunnels add")
	}
	tight := func(text string) bool { return strings.HasPrefix(text, "does not fit") }
	f := finding{state: Contradicted, evidence: []string{worse + "; on the other " + better}}
	if tight(worse) && !tight(better) {
		f.state = Differs
	}
	return f
}

func judgeRetransmissions(e evidence) finding {
	d, ok := e.pairedDifference("segments sent again", unit.Ratio, func(r *result.Run) (float64, bool) {
		again, has := r.Value(metric.Retransmits)
		mss, sized := r.Value(metric.MSS)
		rate, moved := r.Value(metric.Throughput)
		segments := rate.Number / 8 * r.Window / mss.Number
		if !has || !sized || !moved || !(segments > 0) {
			return 0, false
		}
		return again.Number / segments, true
	})
	if !ok {
		return unobservable("the runs do not count retransmissions")
	}
	return finding{state: d.state(1, leastRepeated), evidence: []string{d.String()}}
}

// judgeFact returns a judge of whether the sides differ in a fact that is constant over the runs of each.
func judgeFact(name string) func(evidence) finding {
	return func(e evidence) finding {
		worse, better, ok := e.fact(name)
		switch {
		case !ok:
			return unobservable("the runs do not tell " + name)
		case worse == better:
			return finding{state: Contradicted, evidence: []string{"both have " + worse}}
		}
		return finding{state: Differs, evidence: []string{fmt.Sprintf("%s %s instead of %s", name, worse, better)}}
	}
}

func judgeCPUModel(e evidence) finding {
	worse, better, ok := e.targetFact("cpu-model")
	switch {
	case !ok:
		return unobservable("the targets do not tell their CPUs")
	case worse == better:
		return finding{state: Contradicted, evidence: []string{"both have " + worse}}
	}
	return finding{state: Differs, evidence: []string{worse + " instead of " + better}}
}

// judgeConfidential looks for signs of a confidential machine on the worse target only.
func judgeConfidential(e evidence) finding {
	worse, better, ok := e.targetFact(result.ConfidentialVM)
	switch {
	case !ok:
		return unobservable("the targets do not tell whether their machines are confidential")
	case worse == result.NoConfidentialSign || better != result.NoConfidentialSign:
		return finding{state: Contradicted, evidence: []string{worse + "; on the other " + better}}
	}
	return finding{state: Differs, evidence: []string{worse}}
}

// judgeOffloads looks for offloads that are off at one end of the worse target and on at the same end of the other.
func judgeOffloads(e evidence) finding {
	seen := false
	var off []string
	for _, end := range []string{"client", "server"} {
		worse, better, ok := e.fact("offloads." + end)
		if !ok {
			continue
		}
		seen = true
		on := strings.Fields(worse)
		for _, name := range strings.Fields(better) {
			if name != "none" && !slices.Contains(on, name) {
				off = append(off, name+" off at the "+end)
			}
		}
	}
	switch {
	case !seen:
		return unobservable("the runs do not tell their offloads")
	case len(off) == 0:
		return finding{state: Contradicted, evidence: []string{"none is off on the one and on on the other"}}
	}
	return finding{state: Differs, evidence: []string{strings.Join(off, ", ")}}
}

// judgeHostRouting checks whether Cilium uses the node's routing on the worse target only.
func judgeHostRouting(e evidence) finding {
	worse, better, ok := e.targetFact("cni-settings")
	if !ok {
		return unobservable("the targets do not tell their CNI's settings")
	}
	const legacy = "enable-host-legacy-routing=true"
	if strings.Contains(worse, legacy) && !strings.Contains(better, legacy) {
		return finding{state: Differs, evidence: []string{legacy}}
	}
	return finding{state: Contradicted, evidence: []string{"not on the worse target alone: " + legacy}}
}

// judgeLayer returns a judge that supports a cause if a layer accounts for at least the given share of the difference
// in CPU time.
func judgeLayer(name string, least float64) func(evidence) finding {
	return func(e evidence) finding {
		if e.cost == "" {
			return unobservable(missingSamplesReason(e))
		}
		whole, ok := e.kernelCost()
		i := slices.IndexFunc(e.layers, func(d difference) bool { return d.subject == name })
		if !ok || i < 0 || whole.estimate <= 0 || e.layers[i].estimate < least*whole.estimate || e.hasIdleCPU() {
			return finding{state: Contradicted, evidence: []string{"little of what takes more CPU time is " + name}}
		}
		f := finding{state: Supported, evidence: []string{name + " " + e.layers[i].change()}}
		if e.row.Unit == unit.Second && e.cost == metric.CPUPerOp {
			f.share = e.shareOf(e.layers[i])
		}
		return f
	}
}

// flowLimits are the maximum rates of a single flow by provider, in bit/s; the larger one may apply within a placement
// group.
var flowLimits = map[string][]float64{"aws": {5e9, 10e9}}

// judgeFlow compares the rate of a single flow with its provider's limits, if the other target exceeds them.
func judgeFlow(e evidence) finding {
	provider, _, ok := e.targetFact("provider")
	rate, has := e.metricDifference(metric.Throughput)
	limits, known := flowLimits[provider]
	switch {
	case !ok || !known || !has:
		return unobservable("of the nodes' provider no limit of a flow is known")
	case e.path.Same():
		return finding{state: Contradicted, evidence: []string{"the path stays on its node"}}
	case strings.Contains(e.workload, "flows="):
		return finding{state: Contradicted, evidence: []string{"there are more flows than one"}}
	}
	for _, limit := range limits {
		if rate.worse <= limit && rate.worse >= (1-nearLimit)*limit && rate.better > limit {
			text := fmt.Sprintf("%s, and %s lets a flow have %s", rate, provider, unit.Format(limit, unit.BitPerSecond))
			return finding{state: Supported, evidence: []string{text}}
		}
	}
	return finding{state: Contradicted, evidence: []string{rate.String()}}
}

// judgeWindow compares the rate with one window per round trip, and supports the cause if that is lower on the worse
// target, by a smaller window or a longer round trip.
func judgeWindow(e evidence) finding {
	worth, ok := e.pairedDifference("window per round trip", unit.BitPerSecond, func(r *result.Run) (float64, bool) {
		cwnd, hasC := r.Value(metric.Cwnd)
		mss, hasM := r.Value(metric.MSS)
		rtt, hasR := r.Value(metric.RTT)
		return cwnd.Number * mss.Number * 8 / rtt.Number, hasC && hasM && hasR && rtt.Number > 0
	})
	rate, has := e.metricDifference(metric.Throughput)
	switch {
	case !ok || !has:
		return unobservable("the runs have no window and round trip")
	case e.cpuFull():
		return finding{state: Contradicted, evidence: []string{"a CPU is full on both"}}
	case math.Abs(worth.worse/rate.worse-1) > windowTolerance:
		return finding{state: Contradicted, evidence: []string{fmt.Sprintf("%s, and throughput %s",
			worth, unit.Format(rate.worse, rate.unit))}}
	}
	return finding{state: worth.state(-1, leastSegment*worth.better), evidence: []string{worth.String()}}
}

func judgeOneCPU(e evidence) finding {
	wc, bc, okC := e.fact("cpu.client")
	ws, bs, okS := e.fact("cpu.server")
	shared, _, okShared := e.fact("cpu.shared")
	switch {
	case !okC || !okS || !okShared:
		return unobservable("the runs differ in the CPUs that they were on, or do not tell")
	case shared != "true" || wc != ws || bc == bs:
		cpus := fmt.Sprintf("CPUs %s and %s instead of %s and %s", wc, ws, bc, bs)
		return finding{state: Contradicted, evidence: []string{cpus}}
	}
	return finding{state: Differs, evidence: []string{fmt.Sprintf("CPU %s instead of %s and %s", wc, bc, bs)}}
}

func judgeStolen(e evidence) finding {
	d, ok := e.metricDifference(metric.CPUSteal)
	if !ok {
		return unobservable("the runs do not tell")
	}
	d.subject = "stolen"
	return finding{state: d.state(1, leastStolen), evidence: []string{d.String()}}
}
