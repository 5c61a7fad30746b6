package metric

import "github.com/knotmeter/knotmeter/internal/unit"

// The names of metrics.
const (
	Throughput       = "throughput"
	LoadThroughput   = "load-throughput"
	LayoutThroughput = "layout-throughput"
	ThroughputSent   = "throughput-sent"
	ThroughputTX     = "throughput-tx"
	ThroughputRX     = "throughput-rx"
	ThroughputIn     = "throughput-in"
	ThroughputOut    = "throughput-out"

	Rate       = "rate"
	Offered    = "offered"
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

	CPUPerGB        = "cpu-per-gb"
	CPUPerOp        = "cpu-per-op"
	CPUAgentsPerGB  = "cpu-agents-per-gb"
	ServiceDemand   = "service-demand"
	ServiceDemandOp = "service-demand-op"

	CPUBusy       = "cpu-busy"
	CPUTotal      = "cpu-total"
	CPUIdleLevel  = "cpu-idle-level"
	CPUUser       = "cpu-user"
	CPUNice       = "cpu-nice"
	CPUSystem     = "cpu-system"
	CPUIOWait     = "cpu-iowait"
	CPUIRQ        = "cpu-irq"
	CPUSoftIRQ    = "cpu-softirq"
	CPUSteal      = "cpu-steal"
	CPUIdle       = "cpu-idle"
	CPUBusiest    = "cpu-busiest"
	CPUAgents     = "cpu-agents"
	CPUTimeClient = "cpu-time-client"
	CPUTimeServer = "cpu-time-server"
	Memory        = "memory"

	SwitchesVoluntary   = "switches-voluntary"
	SwitchesInvoluntary = "switches-involuntary"
	LatenessP99         = "lateness-p99"

	Pods     = "pods"
	APICalls = "api-calls"
)

// The names of parts: Sync + P99 is the metric sync-p99, CPUBusy + OfServer is cpu-busy-server.
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
	Started   = "started-"
	Send      = "send-"
	OfServer  = "-server"
)

var table = []Metric{
	{Throughput, unit.BitPerSecond, Higher, "payload that receivers read in the window, all flows and directions, " +
		"or that storage read and wrote, over the window"},
	{LoadThroughput, unit.BitPerSecond, Neutral, "payload that the streams beside the requests moved, over the window"},
	{LayoutThroughput, unit.BitPerSecond, Neutral, "bandwidth of the first two seconds of writing the file, " +
		"by which it has its size"},
	{ThroughputSent, unit.BitPerSecond, Neutral, "payload that the sender sent, over its time"},
	{ThroughputTX, unit.BitPerSecond, Higher, "throughput of one direction, from the side that a table is about"},
	{ThroughputRX, unit.BitPerSecond, Higher, "throughput of the other direction"},
	{ThroughputIn, unit.BitPerSecond, Neutral, "bodies of answers, over the window"},
	{ThroughputOut, unit.BitPerSecond, Neutral, "bodies of requests, over the window"},

	{Rate, unit.PerSecond, Higher, "operations completed in the window (datagrams received, requests answered well, " +
		"reads and writes), over the window"},
	{Offered, unit.PerSecond, Neutral, "datagrams or requests sent or planned in the window, over the window"},
	{IOPS, unit.PerSecond, Higher, "rate of storage, as tables name it"},
	{Operations, unit.Count, Neutral, "how many operations the latencies are of"},
	{Sent, unit.Count, Neutral, "what was sent, as a table counts it"},
	{Received, unit.Count, Neutral, "what was received, as a table counts it"},

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
	{Latency, unit.Second, Lower, "latency of which a table does not say whether it is a mean or a percentile"},

	{Loss, unit.Ratio, Lower, "share of the datagrams sent in the window that never arrived, " +
		"or of its requests without an answer in time"},
	{Failed, unit.Ratio, Lower, "share of the operations of the window that failed"},
	{Success, unit.Ratio, Higher, "share of the requests that succeeded, as a table gives it"},
	{Reordered, unit.Ratio, Lower, "share of the datagrams that arrived after a later one (RFC 4737)"},
	{Duplicated, unit.Ratio, Lower, "share of the datagrams that arrived again"},
	{Jitter, unit.Second, Lower, "interarrival jitter (RFC 3550)"},

	{SLOLimit, unit.Second, Neutral, "limit of the official objective for the 99th percentile"},
	{SLOSamples, unit.Count, Neutral, "how many latencies the objective is about"},
	{SLOAbove, unit.Count, Neutral, "how many of them are above the limit"},

	{Retransmits, unit.Count, Lower, "segments sent again in the window, both sides"},
	{RTT, unit.Second, Neutral, "smoothed round trip that the sender's TCP saw at the window's end; median over flows"},
	{RTTVar, unit.Second, Neutral, "mean deviation of the round trip"},
	{Cwnd, unit.Count, Neutral, "congestion window in segments at the window's end; median over flows"},
	{CwndBytes, unit.Byte, Neutral, "congestion window in bytes, from tools that do not report the segment size"},
	{MSS, unit.Byte, Neutral, "segment size that TCP sends with"},
	{PMTU, unit.Byte, Neutral, "path MTU that TCP assumes"},

	{CPUPerGB, unit.SecondPerGB, Lower, "CPU time of both nodes, all modes, less the idle level and the pacer's " +
		"spinning, per 10^9 bytes received"},
	{CPUPerOp, unit.SecondPerOp, Lower, "CPU time of both nodes, likewise, per operation or datagram received"},
	{CPUAgentsPerGB, unit.SecondPerGB, Lower, "CPU time of the two processes that measure, per 10^9 bytes received"},
	{ServiceDemand, unit.SecondPerGB, Lower, "CPU time of both nodes, idle level included, per 10^9 bytes"},
	{ServiceDemandOp, unit.SecondPerOp, Lower, "CPU time of both nodes, idle level included, per transaction"},

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
	{CPUSteal, unit.Ratio, Neutral, "share that the hypervisor gave to others"},
	{CPUIdle, unit.Ratio, Neutral, "share idle"},
	{CPUBusiest, unit.Ratio, Neutral, "share of the window that the busiest CPU of either machine was busy"},
	{CPUAgents, unit.Ratio, Neutral, "CPUs that the processes that measure used; 1 is one CPU"},
	{CPUTimeClient, unit.Second, Neutral, "CPU time of the client's process in the window"},
	{CPUTimeServer, unit.Second, Neutral, "CPU time of the server's process in the window"},
	{Memory, unit.Byte, Neutral, "memory in use on the client's machine"},

	{SwitchesVoluntary, unit.PerSecond, Neutral, "context switches per second of both agents because they waited"},
	{SwitchesInvoluntary, unit.PerSecond, Neutral, "context switches per second of both agents because others wanted " +
		"the CPU"},
	{LatenessP99, unit.Second, Neutral, "99th percentile of how late the generator itself was in an open loop"},

	{Pods, unit.Count, Neutral, "pods that were made for a block"},
	{APICalls, unit.Count, Neutral, "requests to the API server that a block took besides the load of its runs"},
}

var parts = []Part{
	{Name: Reads, Meaning: "of a storage job's reads"},
	{Name: Writes, Meaning: "of its writes"},
	{Name: Trims, Meaning: "of its trims"},
	{Name: Sync, Meaning: "of the fdatasync or fsync after writes"},
	{Name: Service, Meaning: "from sending, without the wait for a free connection"},
	{Name: FirstByte, Meaning: "from sending until the answer begins"},
	{Name: Connect, Meaning: "of opening a TCP connection"},
	{Name: TLS, Meaning: "of the TLS handshake"},
	{Name: Request, Meaning: "of the request alone, for watches and pods"},
	{Name: Created, Meaning: "until a watch shows the pod"},
	{Name: Scheduled, Meaning: "until a watch shows the pod scheduled"},
	{Name: Started, Meaning: "until a watch shows the pod's containers started"},
	{Name: Send, Meaning: "of the time in send() and not on the network", Neutral: true},
	{Name: OfServer, Meaning: "of the server's machine"},
}
