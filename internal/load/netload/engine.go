// Package netload is the native network load generator. It runs one side of a workload, client or server, and measures
// it: the agent passes it a [Config] and forwards its [Report].
//
// The parts without system calls are pure: [Pacer] computes which operations are due, sequence counts lost and
// reordered datagrams, sweep searches for a rate, [Timeline] and [Meter] divide a run into warm-up, window and steps.
// Sockets are in the files for Linux. Their hot loops run on threads of their own, with blocking system calls that
// bypass the Go scheduler, one clock reading per operation, no allocation, and no garbage collection during the run.
package netload

import (
	"net/netip"
	"time"

	"github.com/knotmeter/knotmeter/internal/profile"
	"github.com/knotmeter/knotmeter/internal/result"
)

// A Role is the side of a run that an agent plays.
type Role string

// The roles. The client connects, sends requests and measures time; the server listens and responds.
const (
	Client Role = "client"
	Server Role = "server"
)

// Verb is the agent request that runs one side: its body is a Config, its result a Report, its token the run's.
const Verb = "net"

// A Config describes one side of a run.
type Config struct {
	Role     Role           `json:"role"`
	Token    Token          `json:"-"`              // the run's secret, the same on both sides
	Addr     netip.AddrPort `json:"address"`        // the server listens on it, the client connects to it; port 0: any
	CPUs     []int          `json:"cpus,omitempty"` // workers are pinned to these in turn; empty: anywhere
	Workload Spec           `json:"workload"`       // resolved; both sides have the same
	// Found is the rate, in datagrams per second and direction, of a udp-stream that names none. 0: the run searches for
	// the rate and has no window.
	Found float64 `json:"found,omitempty"`
	// Idle is how long the agent watches the machine before its first run to learn its idle level, in ns; 0: not at all.
	Idle time.Duration `json:"idle,omitempty"`
	// Watch measures the idle level; nil: the level is assumed to be 0. A server already listens when it calls Watch,
	// because a proxy or load balancer on the path may not wait.
	Watch func(time.Duration) (busy float64, err error) `json:"-"`
	// Profile asks for [Report.Layers], which needs permission to sample the machine's CPUs; Count asks for
	// [Report.Counters].
	Profile bool `json:"profile,omitempty"`
	Count   bool `json:"count,omitempty"`
}

// Limits that bound every run in time and memory.
const (
	grace       = 5 * time.Second         // in addition to warm-up and window: connecting, draining, reporting
	Step        = 100 * time.Millisecond  // length of a step of a series
	dialTimeout = 4 * time.Second         // for the server's first response
	drain       = 50 * time.Millisecond   // how long a receiver waits for datagrams in flight
	overtime    = 1200 * time.Millisecond // how late after the window a response may come; a lost SYN is resent after 1 s
	memoryLimit = 512 << 20               // bytes; above it the garbage collector runs after all
)

// bound returns the longest time that a run may take, from the agent's start to its end.
func (c Config) bound() time.Duration {
	if c.searches() {
		return c.Idle + SearchTime + grace
	}
	return c.Idle + c.Workload.Warmup + c.Workload.Duration + grace
}

// A Tally counts operations, bytes or datagrams by the phase of the run in which they were completed.
type Tally struct {
	Warm   uint64 `json:"warm"`   // during warm-up; not part of the results
	Window uint64 `json:"window"` // during the window
	After  uint64 `json:"after"`  // after the window: in flight at its end
}

// Total returns the sum over all phases.
func (t Tally) Total() uint64 { return t.Warm + t.Window + t.After }

func (t *Tally) add(o Tally) {
	t.Warm += o.Warm
	t.Window += o.Window
	t.After += o.After
}

// A Report holds the results of one side. Times are in seconds unless a comment says otherwise.
type Report struct {
	Role    Role    `json:"role"`
	Version string  `json:"version"`
	Window  float64 `json:"window"` // length of the window on this side's clock

	// Sent and Received count the bytes of TCP streams, or the datagrams of UDP streams.
	Sent     Tally `json:"sent"`
	Received Tally `json:"received"`
	// Operations counts the answered requests of the client; Sent and Received are 0 for workloads without streams.
	Operations Tally  `json:"operations"`
	Answered   uint64 `json:"answered"` // by the server, over the whole run
	// DatagramBytes is the size of the datagrams of udp-stream.
	DatagramBytes int `json:"datagram_bytes,omitempty"`
	// ReceivedAll reports whether every stream that this side reads was read to its end.
	ReceivedAll bool `json:"received_all"`

	Steps   []uint64 `json:"steps,omitempty"`   // per Step of the window: what was received, or operations
	Latency string   `json:"latency,omitempty"` // latencies of answered requests in ns, as an HdrHistogram V2
	Waited  string   `json:"waited,omitempty"`  // waiting times of requests without a response, in the same form
	Late    string   `json:"late,omitempty"`    // lateness of the pacer, in the same form

	Lost       uint64  `json:"lost"`       // requests of the window that timed out, and cycles that failed
	Stale      uint64  `json:"stale"`      // responses that came after the request had timed out
	Unfinished uint64  `json:"unfinished"` // requests of the window without a response when overtime had passed
	Failure    string  `json:"failure,omitempty"`
	Planned    float64 `json:"planned,omitempty"` // operations that an open loop scheduled in the window

	Arrived   uint64  `json:"arrived"` // received datagrams that were sent in the sender's window
	Gaps      uint64  `json:"gaps"`    // sequence numbers that were never received, over the whole run
	Reordered uint64  `json:"reordered"`
	Duplicate uint64  `json:"duplicate"`
	Jitter    float64 `json:"jitter,omitempty"`
	Blocked   uint64  `json:"blocked"` // sends that the kernel refused because buffers were full

	Sweep *SweepReport `json:"sweep,omitempty"`

	TCP  *TCP `json:"tcp,omitempty"`
	Cost Cost `json:"cost"`
	// Layers holds CPU seconds of the whole machine in the window. It is nil if they were not requested, or not available
	// for the reason in Unsampled.
	Layers    map[profile.Layer]float64 `json:"layers,omitempty"`
	Unsampled string                    `json:"unsampled,omitempty"`
	// Counters holds the increase of the kernel's counters in the window, by their names in [metric.Counters]. If
	// OfNode is set, those of the node are among them, with [metric.OfNode] before their names. It is nil if they were
	// not requested, or not available for the reason in Uncounted.
	Counters  map[string]float64 `json:"counters,omitempty"`
	OfNode    bool               `json:"of_node,omitempty"`
	Uncounted string             `json:"uncounted,omitempty"`
	Spin      float64            `json:"spin,omitempty"`  // CPU seconds spent spinning until scheduled times
	Threads   []Thread           `json:"threads"`         // one per worker
	Refused   uint64             `json:"refused"`         // connections and datagrams without the token
	Facts     []result.Fact      `json:"facts,omitempty"` // how the run was carried out
}

// A SweepReport holds the highest rate below the loss threshold and the trials that found it.
type SweepReport struct {
	Rate   float64 `json:"rate"` // datagrams per second over all flows, per direction
	Trials []Trial `json:"trials"`
	// Step is how far, as a fraction, Rate may be below the highest rate that the path carries.
	Step float64 `json:"step,omitempty"`
}

// TCP summarizes TCP_INFO at the window's end over the sending flows of this side. Retransmits are summed over the
// window; the other values are medians over the flows.
type TCP struct {
	Retransmits uint64  `json:"retransmits"`
	RTT         float64 `json:"rtt"`
	RTTVar      float64 `json:"rttvar"`
	Cwnd        float64 `json:"cwnd"` // segments
	PMTU        float64 `json:"pmtu"` // bytes
	MSS         float64 `json:"mss"`  // bytes
	// Shares of the window in which the peer's receive window or the local send buffer limited the sender.
	RwndLimited float64 `json:"rwnd_limited"`
	SndLimited  float64 `json:"sndbuf_limited"`
	Congestion  string  `json:"congestion"`
}

// A Thread describes the thread of one worker over its whole life.
type Thread struct {
	Work     string  `json:"work"`
	Pinned   int     `json:"pinned"` // CPU, -1: not pinned
	CPUs     []int   `json:"cpus"`   // CPUs that the thread was observed on
	User     float64 `json:"user"`   // CPU seconds
	System   float64 `json:"system"`
	Lifetime float64 `json:"lifetime"` // seconds
}

// Busy returns the share of its life that the thread was on a CPU.
func (t Thread) Busy() float64 {
	if t.Lifetime <= 0 {
		return 0
	}
	return (t.User + t.System) / t.Lifetime
}
