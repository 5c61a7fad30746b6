package netload

import (
	"math"
	"time"
)

// A Kind is a network workload without parameters.
type Kind string

// The network workloads.
const (
	TCPStream   Kind = "tcp-stream"         // bytes read by the receiver
	UDPStream   Kind = "udp-stream"         // datagrams received, paced
	UDPUnpaced  Kind = "udp-stream-unpaced" // datagrams received, sent as fast as possible
	TCPRR       Kind = "tcp-rr"             // request and response on one connection
	UDPRR       Kind = "udp-rr"             // the same over UDP, with a time-out
	TCPCRR      Kind = "tcp-crr"            // connect, request, response, close
	TCPRRLoaded Kind = "tcp-rr-loaded"      // tcp-rr while streams fill the same path
	Ping        Kind = "ping"               // ICMP echo request and reply, at intervals
	Unloaded    Kind = "idle"               // no traffic; the CPU time of both machines
)

// Kinds returns the network workloads in the order of the documentation. The caller must not change the list.
func Kinds() []Kind { return kinds }

var kinds = []Kind{TCPStream, UDPStream, UDPUnpaced, TCPRR, UDPRR, TCPCRR, TCPRRLoaded, Ping, Unloaded}

// A Direction is the direction in which a stream moves bytes.
type Direction string

// The directions: client to server, server to client, and both at once.
const (
	Forward Direction = "forward"
	Reverse Direction = "reverse"
	Both    Direction = "both"
)

// Defaults and limits of a Spec.
const (
	DefaultStreamSize = 128 << 10 // bytes per send of tcp-stream
	DefaultUDPTimeout = 200 * time.Millisecond
	minInterval       = 100 * time.Microsecond
	maxFlows          = 128
	minBuffer         = 4 << 10
	maxBuffer         = 512 << 20
	minMSS            = 88 // the kernel's TCP_MIN_MSS
	maxMSS            = 32767
	MaxSize           = 16 << 20
	MaxDatagram       = 65507 // payload of the largest IPv4 UDP datagram
	minMaxRate        = 1e6   // bit/s
	maxMaxRate        = 1e12
	maxRate           = 1e9 // operations per second
)

// A Spec is one workload with its parameters. The zero value of a parameter means the default of the kind, which
// Resolved fills in.
type Spec struct {
	Kind  Kind `json:"kind"`
	Flows int  `json:"flows,omitempty"` // concurrent connections, 1 to maxFlows
	// Size is bytes per send of a stream, or the payload of a datagram; 0 for datagrams means as much as the path's MTU
	// allows.
	Size      int       `json:"size,omitempty"`
	Request   int       `json:"request,omitempty"`   // bytes
	Response  int       `json:"response,omitempty"`  // bytes
	Direction Direction `json:"direction,omitempty"` // of a stream
	// Rate makes the run an open loop: operations per second over all flows (requests; datagrams for udp-stream). 0 means
	// a closed loop for requests, and for udp-stream a search for the rate at the loss threshold.
	Rate float64 `json:"rate,omitempty"`
	// BitRate is the rate of udp-stream in bit/s of payload, if the user gives it in that unit; [Spec.Sized] converts
	// it to Rate.
	BitRate float64 `json:"bit_rate,omitempty"`
	Loss    float64 `json:"loss,omitempty"` // threshold of the search as a fraction
	// MaxRate limits streams, in bits of payload per second of all flows in each direction; 0 is no limit.
	MaxRate float64 `json:"max_rate,omitempty"`
	Offload bool    `json:"offload,omitempty"` // UDP segmentation offload (GSO, GRO)
	// MSS is the largest segment of tcp-stream in bytes, including TCP options; 0 means as much as the path allows.
	MSS int `json:"mss,omitempty"`
	// Buffer is the size of each socket's send and receive buffers in bytes; 0 is the default of host and tool.
	Buffer int `json:"buffer,omitempty"`
	// Congestion is the congestion control of tcp-stream; empty is the host's default.
	Congestion string `json:"congestion,omitempty"`
	// Interval is the time between the pings of a flow; it determines Rate.
	Interval time.Duration `json:"interval,omitempty"`
	// Timeout is how long a request of udp-rr or a ping may take before it counts as lost.
	Timeout time.Duration `json:"timeout,omitempty"`

	Duration time.Duration `json:"duration"` // of the window
	Warmup   time.Duration `json:"warmup"`   // before the window, not measured
}

// Stream reports whether the workload is a stream of bytes or datagrams instead of an exchange of requests.
func (k Kind) Stream() bool { return k == TCPStream || k.Datagrams() }

// Datagrams reports whether the workload is a stream of datagrams.
func (k Kind) Datagrams() bool { return k == UDPStream || k == UDPUnpaced }

// UDP reports whether the workload's traffic is UDP.
func (k Kind) UDP() bool { return k.Datagrams() || k == UDPRR }

// Limit returns MaxRate, or infinity if it is not set.
func (s Spec) Limit() float64 {
	if s.MaxRate == 0 {
		return math.Inf(1)
	}
	return s.MaxRate
}

// Searches reports whether the run has to search for its rate.
func (s Spec) Searches() bool { return s.Kind == UDPStream && s.Rate == 0 && s.BitRate == 0 }

// Sized returns the datagram workload with datagrams of size bytes and the rate in datagrams per second.
func (s Spec) Sized(size int) Spec {
	s.Size = size
	bits := float64(8 * size)
	if s.BitRate > 0 {
		s.Rate = s.BitRate / bits
	}
	s.Rate = min(s.Rate, s.Limit()/bits, maxRate)
	return s
}

// OpenLoop reports whether latency counts from scheduled send times.
func (s Spec) OpenLoop() bool { return !s.Kind.Stream() && s.Kind != Ping && s.Rate > 0 }

// Limits of a search for the highest rate below a loss threshold: it takes at most SearchTime. Then at most
// SearchWindows windows are measured at lower and lower rates until one stays below the threshold.
const (
	SearchTime    = 8 * time.Second
	SearchWindows = 7
)
