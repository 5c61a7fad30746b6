package metric

import "github.com/knotmeter/knotmeter/internal/unit"

// Names of metrics.
const (
	Throughput       = "throughput"
	LoadThroughput   = "load-throughput"
	LayoutThroughput = "layout-throughput"
	ThroughputSent   = "throughput-sent"
	ThroughputTX     = "throughput-tx"
	ThroughputRX     = "throughput-rx"
	ThroughputIn     = "throughput-in"
	ThroughputOut    = "throughput-out"
	Bandwidth        = "bandwidth"
	Scaling          = "scaling-efficiency"

	Rate       = "rate"
	Offered    = "offered"
	Clients    = "clients"
	IOPS       = "iops"
	Operations = "operations"
	Sent       = "sent"
	Received   = "received"

	P50        = "p50"
	P90        = "p90"
	P95        = "p95"
	P99        = "p99"
	P999       = "p99.9"
	P9999      = "p99.99"
	P99999     = "p99.999"
	Min        = "min"
	Max        = "max"
	Mean       = "mean"
	Stddev     = "stddev"
	MeanOfRate = "mean-of-rate"
	Latency    = "latency"

	Loss       = "loss"
	Failed     = "failed"
	Success    = "success"
	Reordered  = "reordered"
	Duplicated = "duplicated"
	Jitter     = "jitter"

	PodsPerMinute = "pods-per-minute"

	SLOLimit   = "slo-limit"
	SLOSamples = "slo-samples"
	SLOAbove   = "slo-above"

	Retransmits = "retransmits"
	RTT         = "rtt"
	RTTVar      = "rttvar"
	Cwnd        = "cwnd"
	CwndBytes   = "cwnd-bytes"
	MSS         = "mss"
	PMTU        = "pmtu"
	RwndLimited = "rwnd-limited"
	SndLimited  = "sndbuf-limited"

	CPUPerGB        = "cpu-per-gb"
	CPUPerOp        = "cpu-per-op"
	CPUAgentsPerGB  = "cpu-agents-per-gb"
	ServiceDemand   = "service-demand"
	ServiceDemandOp = "service-demand-op"

	CPUBusy           = "cpu-busy"
	CPUUnloaded       = "cpu-unloaded"
	CPUTotal          = "cpu-total"
	CPUIdleLevel      = "cpu-idle-level"
	CPUUser           = "cpu-user"
	CPUNice           = "cpu-nice"
	CPUSystem         = "cpu-system"
	CPUIOWait         = "cpu-iowait"
	CPUIRQ            = "cpu-irq"
	CPUSoftIRQ        = "cpu-softirq"
	CPUSteal          = "cpu-steal"
	CPUIdle           = "cpu-idle"
	CPUBusiest        = "cpu-busiest"
	CPUBusiestSoftIRQ = "cpu-softirq-busiest"
	CPUAgents         = "cpu-agents"
	CPUOthers         = "cpu-others"
	CPUTimeClient     = "cpu-time-client"
	CPUTimeServer     = "cpu-time-server"
	Memory            = "memory"
	MemoryIdleLevel   = "memory-idle-level"

	SwitchesVoluntary   = "switches-voluntary"
	SwitchesInvoluntary = "switches-involuntary"
	LatenessP99         = "lateness-p99"

	Programming         = "programming"
	ProgrammingMax      = "programming-max"
	ProgrammingAPI      = "programming-api"
	ProgrammingDatapath = "programming-datapath"
	CanSend             = "can-send"
	LossWindow          = "loss-window"
	Gap                 = "gap"
	Lost                = "lost"
	LateAnswers         = "late"
	Broken              = "broken"
	Leaked              = "leaked"
	LeakWindow          = "leak-window"
	Trials              = "trials"
	Censored            = "censored"

	Pods     = "pods"
	APICalls = "api-calls"
)

// Names of parts: Sync + P99 is the metric sync-p99, CPUBusy + OfServer is cpu-busy-server.
const (
	Reads     = "read-"
	Writes    = "write-"
	Trims     = "trim-"
	Sync      = "sync-"
	Service   = "service-"
	FirstByte = "first-byte-"
	Connect   = "connect-"
	TLS       = "tls-"
	Request   = "request-"
	Created   = "created-"
	Scheduled = "scheduled-"
	Initial   = "initialized-"
	Started   = "started-"
	Ready     = "containers-ready-"
	UDPProbes = "udp-"
	TCPProbes = "tcp-"
	NewProbes = "tcp-new-"
	Send      = "send-"
	OfServer  = "-server"
)

// layers lists user space and the parts of the kernel that use CPU time, roughly in the order in which packets pass
// them.
var layers = []Part{
	{Name: "user", Meaning: "in user space, of the agents"},
	{Name: Programs, Meaning: "in other programs, and in the kernel for their system calls"},
	{Name: "copy", Meaning: "in copies between user space and the kernel"},
	{Name: "socket", Meaning: "in system calls and sockets"},
	{Name: "tcp", Meaning: "in TCP"},
	{Name: "udp", Meaning: "in UDP"},
	{Name: "ip", Meaning: "in IP, routing and neighbours"},
	{Name: "netfilter", Meaning: "in netfilter and connection tracking"},
	{Name: "ebpf", Meaning: "in eBPF programs and their maps"},
	{Name: "bridge", Meaning: "in bridges"},
	{Name: "veth", Meaning: "in veth devices"},
	{Name: "vxlan", Meaning: "in VXLAN, Geneve and other tunnels over UDP"},
	{Name: "ipip", Meaning: "in IP-in-IP"},
	{Name: "crypto", Meaning: "in WireGuard, IPsec and cryptography"},
	{Name: "qdisc", Meaning: "in queueing disciplines"},
	{Name: "bounce", Meaning: "in bounce buffers, as confidential machines have them"},
	{Name: "driver", Meaning: "in drivers of network devices"},
	{Name: "softirq", Meaning: "on the way between driver and protocol"},
	{Name: "sched", Meaning: "in scheduling and wake-ups"},
	{Name: "other", Meaning: "in other parts of the kernel"},
}

// Names of kernel counters; [OfCounter] returns the names of their metrics.
const (
	TCPRetransmitted      = "tcp-retransmitted"
	TCPTimeouts           = "tcp-timeouts"
	TCPReordered          = "tcp-reordered"
	TCPReceiveDrops       = "tcp-receive-drops"
	SYNRetransmitted      = "syn-retransmitted"
	ListenOverflows       = "listen-overflows"
	ChecksumErrors        = "checksum-errors"
	ReceiveBufferErrors   = "receive-buffer-errors"
	SendBufferErrors      = "send-buffer-errors"
	Fragments             = "fragments"
	FragmentationFailed   = "fragmentation-failed"
	Unreachable           = "unreachable"
	DeviceDrops           = "device-drops"
	AllowanceExceeded     = "allowance-exceeded"
	RingDrops             = "ring-drops"
	QueueDrops            = "queue-drops"
	QueueOverlimits       = "queue-overlimits"
	ConntrackInsertFailed = "conntrack-insert-failed"
	ConntrackDrops        = "conntrack-drops"
	ConntrackUsed         = "conntrack-used"
	SoftnetDrops          = "softnet-drops"
	SoftnetSqueezes       = "softnet-squeezes"
	CPUPressure           = "cpu-pressure"
	CPUThrottled          = "cpu-throttled"
)

// counters are kernel counters of lost, delayed and repeated packets, and of exhausted resources.
var counters = []Metric{
	{TCPRetransmitted, unit.Count, Neutral, "segments that TCP sent again"},
	{TCPTimeouts, unit.Count, Neutral, "times that TCP waited in vain for an acknowledgement"},
	{TCPReordered, unit.Count, Neutral, "times that TCP found segments out of order"},
	{TCPReceiveDrops, unit.Count, Neutral, "segments dropped for want of room in a TCP socket"},
	{SYNRetransmitted, unit.Count, Neutral, "questions for a connection that were repeated, the first one after 1 s"},
	{ListenOverflows, unit.Count, Neutral, "connections dropped since too many waited to be accepted"},
	{ChecksumErrors, unit.Count, Neutral, "TCP segments and UDP datagrams with a wrong checksum"},
	{ReceiveBufferErrors, unit.Count, Neutral, "UDP datagrams dropped for want of room at the receiving socket"},
	{SendBufferErrors, unit.Count, Neutral, "UDP datagrams dropped for want of room at the sending socket"},
	{Fragments, unit.Count, Neutral, "IP fragments made of packets that were too big"},
	{FragmentationFailed, unit.Count, Neutral, "IP packets dropped since they were too big and may not be fragmented"},
	{Unreachable, unit.Count, Neutral, "ICMP messages that a packet could not be delivered or was too big"},
	{DeviceDrops, unit.Count, Neutral, "packets that network devices dropped or had errors with"},
	{AllowanceExceeded, unit.Count, Neutral, "packets that the provider held back or dropped above the instance's " +
		"allowance, as the driver counts them"},
	{RingDrops, unit.Count, Neutral, "packets that found no room in a network card's receive ring"},
	{QueueDrops, unit.Count, Neutral, "packets that queueing disciplines dropped"},
	{QueueOverlimits, unit.Count, Neutral, "times that queueing disciplines held packets back to keep a rate"},
	{ConntrackInsertFailed, unit.Count, Neutral, "packets dropped since another one had just made the same connection"},
	{ConntrackDrops, unit.Count, Neutral, "packets dropped since the table of tracked connections was full, " +
		"and connections thrown out of it"},
	{ConntrackUsed, unit.Ratio, Neutral, "share of the table of tracked connections that was in use"},
	{SoftnetDrops, unit.Count, Neutral, "packets dropped since a CPU had too many waiting"},
	{SoftnetSqueezes, unit.Count, Neutral, "times that a CPU put packets off since it had dealt with enough"},
	{CPUPressure, unit.Second, Neutral, "time in which something waited for a CPU"},
	{CPUThrottled, unit.Count, Neutral, "periods in which the agent had used up its quota of CPU time"},
}

// table lists the metrics in the order of the documentation.
var table = []Metric{
	{Throughput, unit.BitPerSecond, Higher, "payload that receivers read in the window, all flows and directions, " +
		"or that storage read and wrote, over the window"},
	{LoadThroughput, unit.BitPerSecond, Neutral, "payload of the streams next to the requests, over the window"},
	{LayoutThroughput, unit.BitPerSecond, Neutral, "bandwidth of the first two seconds of writing the file, " +
		"by which it has its size"},
	{ThroughputSent, unit.BitPerSecond, Neutral, "payload that the sender sent, over its time"},
	{ThroughputTX, unit.BitPerSecond, Higher, "throughput from client to server of a case with both directions; " +
		"in tables, what the side that they are about sends"},
	{ThroughputRX, unit.BitPerSecond, Higher, "throughput from server to client of such a case"},
	{ThroughputIn, unit.BitPerSecond, Neutral, "bodies of responses, over the window"},
	{ThroughputOut, unit.BitPerSecond, Neutral, "bodies of requests, over the window"},

	{Bandwidth, unit.BytePerSecond, Higher, "bytes that a computation read, or that a memory loop read and wrote, " +
		"over the window"},
	{Scaling, unit.Ratio, Higher, "rate or bandwidth of several CPUs, over their number times that of one of them alone"},

	{Rate, unit.PerSecond, Higher, "operations completed in the window (datagrams received, successful requests, " +
		"reads and writes), over the window"},
	{Offered, unit.PerSecond, Neutral, "datagrams or requests sent or planned in the window, over the window"},
	{Clients, unit.Count, Neutral, "clients of a closed loop that saturate the server; more raise the rate by up to 5 %"},
	{IOPS, unit.PerSecond, Higher, "rate of storage, as published tables name it"},
	{Operations, unit.Count, Neutral, "number of operations behind the latencies"},
	{Sent, unit.Count, Neutral, "amount sent, as a table counts it"},
	{Received, unit.Count, Neutral, "amount received, as a table counts it"},

	{P50, unit.Second, Lower, "median latency of all operations, failed ones too; in an open loop from the planned time"},
	{P90, unit.Second, Lower, "90th percentile of the latency"},
	{P95, unit.Second, Lower, "95th percentile of the latency"},
	{P99, unit.Second, Lower, "99th percentile of the latency; from 368 operations on"},
	{P999, unit.Second, Lower, "99.9th percentile of the latency; from 3688 operations on"},
	{P9999, unit.Second, Lower, "99.99th percentile of the latency; from 36887 operations on"},
	{P99999, unit.Second, Lower, "99.999th percentile of the latency"},
	{Min, unit.Second, Lower, "smallest latency"},
	{Max, unit.Second, Lower, "largest latency"},
	{Mean, unit.Second, Lower, "mean latency"},
	{Stddev, unit.Second, Neutral, "standard deviation of the latency"},
	{MeanOfRate, unit.Second, Neutral, "mean latency that the rate of a closed loop implies"},
	{Latency, unit.Second, Lower, "latency of a table that does not say whether it is a mean or a percentile"},

	{Loss, unit.Ratio, Lower, "share of the datagrams sent in the window that never arrived, " +
		"or of its requests without an answer in time"},
	{Failed, unit.Ratio, Lower, "share of the operations of the window that failed"},
	{Success, unit.Ratio, Higher, "share of the requests that succeeded, as a table gives it"},
	{Reordered, unit.Ratio, Lower, "share of the datagrams that arrived after a later one (RFC 4737)"},
	{Duplicated, unit.Ratio, Lower, "share of the datagrams that arrived more than once"},
	{Jitter, unit.Second, Lower, "interarrival jitter (RFC 3550)"},

	{PodsPerMinute, unit.Count, Higher, "pods that became ready, over the minutes from the first one's request " +
		"until the last was ready"},

	{SLOLimit, unit.Second, Neutral, "limit of the official objective for the 99th percentile"},
	{SLOSamples, unit.Count, Neutral, "number of requests that the objective is about"},
	{SLOAbove, unit.Count, Neutral, "number of them above the limit or without success"},

	{Retransmits, unit.Count, Lower, "segments sent again in the window, both sides"},
	{RTT, unit.Second, Neutral, "smoothed round trip that the sender's TCP saw at the window's end; median over flows"},
	{RTTVar, unit.Second, Neutral, "mean deviation of the round trip"},
	{Cwnd, unit.Count, Neutral, "congestion window in segments at the window's end; median over flows"},
	{CwndBytes, unit.Byte, Neutral, "congestion window in bytes, from tools that do not report the segment size"},
	{MSS, unit.Byte, Neutral, "segment size that TCP sends with"},
	{PMTU, unit.Byte, Neutral, "path MTU that TCP assumes"},
	{RwndLimited, unit.Ratio, Neutral, "share of the window in which the receiver's window kept TCP from sending; " +
		"median over flows"},
	{SndLimited, unit.Ratio, Neutral, "share of the window in which the sender's buffer kept TCP from sending; " +
		"median over flows"},

	{CPUPerGB, unit.SecondPerGB, Lower, "CPU time of both nodes, all modes, less the idle level and the pacer's " +
		"spinning, per 10^9 bytes received"},
	{CPUPerOp, unit.SecondPerOp, Lower, "CPU time of both nodes, likewise, per operation or datagram received"},
	{CPUAgentsPerGB, unit.SecondPerGB, Lower, "CPU time of the two processes that measure, per 10^9 bytes received"},
	{ServiceDemand, unit.SecondPerGB, Lower, "CPU time of both nodes, idle level included, per 10^9 bytes"},
	{ServiceDemandOp, unit.SecondPerOp, Lower, "CPU time of both nodes, idle level included, per transaction"},

	{CPUUnloaded, unit.Ratio, Lower, "CPUs of both machines that were busy without load, less what the agents used; " +
		"1 is one CPU"},
	{CPUBusy, unit.Ratio, Neutral, "share of the client's machine that was busy (user, nice, system, irq, softirq, " +
		"steal), nothing taken off"},
	{CPUTotal, unit.Ratio, Neutral, "share of the client's machine that was busy, as its tool counts it"},
	{CPUIdleLevel, unit.Ratio, Neutral, "the same before the test, with nothing to do"},
	{CPUUser, unit.Ratio, Neutral, "share of the client's machine in user mode"},
	{CPUNice, unit.Ratio, Neutral, "share in user mode at low priority, where it is counted apart"},
	{CPUSystem, unit.Ratio, Neutral, "share in the kernel for processes"},
	{CPUIOWait, unit.Ratio, Neutral, "share idle with input or output pending"},
	{CPUIRQ, unit.Ratio, Neutral, "share in hard interrupts"},
	{CPUSoftIRQ, unit.Ratio, Neutral, "share in soft interrupts, where much of a datapath runs"},
	{CPUSteal, unit.Ratio, Neutral, "share that the hypervisor gave to other guests"},
	{CPUIdle, unit.Ratio, Neutral, "share idle"},
	{CPUBusiest, unit.Ratio, Neutral, "share of the window that the busiest CPU of either machine was busy"},
	{CPUBusiestSoftIRQ, unit.Ratio, Neutral, "share of the window that one CPU of either machine was in soft " +
		"interrupts, the largest of all CPUs"},
	{CPUAgents, unit.Ratio, Neutral, "CPUs that the processes that measure used; 1 is one CPU"},
	{CPUOthers, unit.Ratio, Neutral, "share of the window in which other programs had the CPUs of the measuring threads"},
	{CPUTimeClient, unit.Second, Neutral, "CPU time of the client's process in the window"},
	{CPUTimeServer, unit.Second, Neutral, "CPU time of the server's process in the window"},
	{Memory, unit.Byte, Neutral, "memory in use on the client's machine under load, without what the kernel can free"},
	{MemoryIdleLevel, unit.Byte, Neutral, "the same before the test, with nothing to do"},

	{SwitchesVoluntary, unit.PerSecond, Neutral, "context switches per second of both agents because they waited"},
	{SwitchesInvoluntary, unit.PerSecond, Neutral, "context switches per second of both agents because others wanted " +
		"the CPU"},
	{LatenessP99, unit.Second, Neutral, "99th percentile of the generator's own lateness in an open loop"},

	{Programming, unit.Second, Lower, "time from the request for a change until it shows in the network, median of the " +
		"trials"},
	{ProgrammingMax, unit.Second, Lower, "the same, largest of the trials"},
	{ProgrammingAPI, unit.Second, Lower, "the part of it until the API server announces what the datapath waits for"},
	{ProgrammingDatapath, unit.Second, Lower, "the part of it from then on, in which the datapath is changed"},
	{CanSend, unit.Second, Lower, "time from the request for a pod until its first datagram arrives elsewhere"},
	{LossWindow, unit.Second, Lower, "time from the first probe without an answer to the first one after the last of " +
		"them, at least the time between two probes, median of the trials"},
	{Gap, unit.Second, Lower, "longest time between two answers that came one after the other, median of the trials"},
	{Lost, unit.Count, Lower, "probes that were never answered, mean of the trials"},
	{LateAnswers, unit.Count, Lower, "probes that were answered after 200 ms or more, mean of the trials"},
	{Broken, unit.Count, Lower, "open connections that broke, mean of the trials"},
	{Leaked, unit.Ratio, Lower, "share of the trials in which something passed that was forbidden"},
	{LeakWindow, unit.Second, Lower, "time in which it did, at least the time between two probes, median of the trials"},
	{Trials, unit.Count, Neutral, "number of trials"},
	{Censored, unit.Count, Neutral, "trials that ended before the change showed"},

	{Pods, unit.Count, Neutral, "pods created for a block"},
	{APICalls, unit.Count, Neutral, "requests to the API server for a block, without the load of its runs"},
}

var parts = []Part{
	{Name: Reads, Meaning: "of a storage job's reads"},
	{Name: Writes, Meaning: "of its writes"},
	{Name: Trims, Meaning: "of its trims"},
	{Name: Sync, Meaning: "of the fdatasync or fsync after writes"},
	{Name: Service, Meaning: "from sending, without the wait for a free connection"},
	{Name: FirstByte, Meaning: "from sending to the first byte of the response"},
	{Name: Connect, Meaning: "of opening a TCP connection"},
	{Name: TLS, Meaning: "of the TLS handshake"},
	{Name: Request, Meaning: "of the request alone, for watches and pods"},
	{Name: Created, Meaning: "until a watch shows the pod"},
	{Name: Scheduled, Meaning: "until a watch shows the pod scheduled"},
	{Name: Initial, Meaning: "until a watch shows the pod initialized"},
	{Name: Started, Meaning: "until a watch shows the pod's containers started"},
	{Name: Ready, Meaning: "until a watch shows the pod's containers ready"},
	{Name: NewProbes, Meaning: "of probes with a new TCP connection each"},
	{Name: TCPProbes, Meaning: "of probes on a TCP connection that stays open"},
	{Name: UDPProbes, Meaning: "of probes over UDP"},
	{Name: Send, Meaning: "of the time in send(), not on the network", Neutral: true},
	{Name: OfServer, Meaning: "of the server's machine"},
}
