// Package netload is the native load generator: it carries out one side, client or server, of one
// workload and says what it saw. It stands between the agent, which gives it a [Config] and passes
// its [Report] on, and the kernel's sockets.
//
// What can be pure is: the [Pacer] turns time into what is due, sequence accounts for datagrams, sweep searches a
// rate, [Timeline] and [Meter] cut a run into warm-up, window and steps. Sockets are at the edge, in the files for
// Linux, where hot loops run on threads of their own: blocking system calls that the scheduler does not see, one
// clock reading per operation, no allocation, and no garbage collection while the run lasts.
package netload

import (
	"net/netip"
	"time"

	"github.com/knotmeter/knotmeter/internal/family/network"
	"github.com/knotmeter/knotmeter/internal/profile"
	"github.com/knotmeter/knotmeter/internal/result"
)

// A Role is which side of a run an agent is.
type Role string

// The roles. The client dials, asks and counts time; the server listens and answers.
const (
	Client Role = "client"
	Server Role = "server"
)

// Verb is the agent's, with a Config as its body and a Report as its result. The request's token is the run's.
const Verb = "net"

// Config is what one side of a run has to do.
type Config struct {
	Role     Role           `json:"role"`
	Token    Token          `json:"-"`              // the run's secret, the same on both sides
	Addr     netip.AddrPort `json:"address"`        // the server listens on it, the client dials it; 0 is any port
	CPUs     []int          `json:"cpus,omitempty"` // workers are pinned to these in turn; empty: anywhere
	Workload network.Spec   `json:"workload"`       // resolved; both sides have the same
	// Found is the rate, in datagrams per second and direction, of a udp-stream that names none; 0: the run searches for
	// it and has no window.
	Found float64 `json:"found,omitempty"`
	// Idle is how long the agent watches the machine before its first run to learn its idle level, in ns; 0: not at all.
	Idle time.Duration `json:"idle,omitempty"`
	// Watch does that; nil: the level is taken to be 0. A server listens meanwhile, since what is between may not wait.
	Watch func(time.Duration) (busy float64, err error) `json:"-"`
	// Profile asks for [Report.Layers], where the agent may sample the machine's CPUs; Count for [Report.Counters].
	Profile bool `json:"profile,omitempty"`
	Count   bool `json:"count,omitempty"`
}

// Limits that bound every run in time and memory.
const (
	grace       = 5 * time.Second         // beyond warm-up and window: connecting, draining, reporting
	Step        = 100 * time.Millisecond  // of a series
	dialTimeout = 4 * time.Second         // until the server must have answered
	drain       = 50 * time.Millisecond   // how long a receiver waits for datagrams still on their way
	overtime    = 1200 * time.Millisecond // that an answer may come after the window; a lost SYN is repeated after 1 s
	memoryLimit = 512 << 20               // where the collector would step in after all
)

// bound is the longest that a run of w may take, from start to end of an agent.
func (c Config) bound() time.Duration {
	if c.searches() {
		return c.Idle + network.SearchTime + grace
	}
	return c.Idle + c.Workload.Warmup + c.Workload.Duration + grace
}

// A Tally counts operations, bytes or datagrams by when they were done.
type Tally struct {
	Warm   uint64 `json:"warm"`   // during warm-up, left out
	Window uint64 `json:"window"` // what counts
	After  uint64 `json:"after"`  // after the window: in flight at its end
}

// Total is all of it.
func (t Tally) Total() uint64 { return t.Warm + t.Window + t.After }

func (t *Tally) add(o Tally) {
	t.Warm += o.Warm
	t.Window += o.Window
	t.After += o.After
}

// A Report is what one side saw. Times are in seconds unless a name says otherwise.
type Report struct {
	Role    Role    `json:"role"`
	Version string  `json:"version"`
	Window  float64 `json:"window"` // length of the window on this side's clock

	// Streams: bytes. Requests: operations completed (client). Datagrams: datagrams.
	Sent     Tally `json:"sent"`
	Received Tally `json:"received"`
	// Operations of requests; with tcp-rr-loaded beside the bytes of its streams.
	Operations Tally  `json:"operations"`
	Answered   uint64 `json:"answered"` // by a server, over the whole run
	// DatagramBytes is the size of the datagrams of udp-stream.
	DatagramBytes int `json:"datagram_bytes,omitempty"`
	// ReceivedAll says that every stream that this side reads was read to its end.
	ReceivedAll bool `json:"received_all"`

	Steps   []uint64 `json:"steps,omitempty"`   // what was received, or operations, per Step of the window
	Latency string   `json:"latency,omitempty"` // histogram of latencies of answered requests, ns, as HdrHistogram V2
	Waited  string   `json:"waited,omitempty"`  // the same of how long others were waited for
	Late    string   `json:"late,omitempty"`    // histogram of pacing lateness, ns

	Lost       uint64  `json:"lost"`       // requests of the window that timed out, and cycles that failed
	Stale      uint64  `json:"stale"`      // answers that came after their time-out
	Unfinished uint64  `json:"unfinished"` // requests of the window without an answer overtime after its end
	Failure    string  `json:"failure,omitempty"`
	Planned    float64 `json:"planned,omitempty"` // operations that an open loop should have begun in the window

	Arrived   uint64  `json:"arrived"` // datagrams sent in the sender's window that arrived
	Gaps      uint64  `json:"gaps"`    // sequence numbers never seen, over the whole run
	Reordered uint64  `json:"reordered"`
	Duplicate uint64  `json:"duplicate"`
	Jitter    float64 `json:"jitter,omitempty"`
	Blocked   uint64  `json:"blocked"` // sends that the kernel refused for want of buffers

	Sweep *SweepReport `json:"sweep,omitempty"`

	TCP  *TCP `json:"tcp,omitempty"`
	Cost Cost `json:"cost"`
	// Layers are CPU seconds of the whole machine in the window; nil if they were not asked for or could not be had, which
	// Unsampled tells why.
	Layers    map[profile.Layer]float64 `json:"layers,omitempty"`
	Unsampled string                    `json:"unsampled,omitempty"`
	// Counters are what the kernel counted in the window, by [metric.Counters], and with [metric.OfNode] what it counted
	// on the node, if OfNode says that this is known. What is not in it was counted and stayed as it was. It is nil if
	// it was not asked for, or could not be had for the reason in Uncounted.
	Counters  map[string]float64 `json:"counters,omitempty"`
	OfNode    bool               `json:"of_node,omitempty"`
	Uncounted string             `json:"uncounted,omitempty"`
	Spin      float64            `json:"spin,omitempty"`  // CPU time spent waiting for planned times
	Threads   []Thread           `json:"threads"`         // one per worker
	Refused   uint64             `json:"refused"`         // connections and datagrams without the token
	Facts     []result.Fact      `json:"facts,omitempty"` // about how the run was done
}

// A SweepReport is how the highest rate under the loss threshold was found.
type SweepReport struct {
	Rate   float64 `json:"rate"` // found; datagrams per second over all flows, per direction
	Trials []Trial `json:"trials"`
}

// TCP is what TCP_INFO said at the window's end, of the flows of this side that send; retransmits
// are those of the window, summed; the others are medians over the flows.
type TCP struct {
	Retransmits uint64  `json:"retransmits"`
	RTT         float64 `json:"rtt"`
	RTTVar      float64 `json:"rttvar"`
	Cwnd        float64 `json:"cwnd"` // segments
	PMTU        float64 `json:"pmtu"` // bytes
	MSS         float64 `json:"mss"`  // bytes
	// Shares of the window in which the peer's window and the own buffer kept from sending.
	RwndLimited float64 `json:"rwnd_limited"`
	SndLimited  float64 `json:"sndbuf_limited"`
	Congestion  string  `json:"congestion"`
}

// A Thread is how one worker fared over its whole life.
type Thread struct {
	Work     string  `json:"work"`
	Pinned   int     `json:"pinned"` // CPU, -1: not pinned
	CPUs     []int   `json:"cpus"`   // where it was seen
	User     float64 `json:"user"`   // CPU seconds
	System   float64 `json:"system"`
	Lifetime float64 `json:"lifetime"` // seconds
}

// Busy is the share of its life that the thread was on a CPU.
func (t Thread) Busy() float64 {
	if t.Lifetime <= 0 {
		return 0
	}
	return (t.User + t.System) / t.Lifetime
}
