package netload

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"time"

	"github.com/knotmeter/knotmeter/internal/unit"
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
	defaultPing       = 56 // bytes of payload, as ping has
	defaultInterval   = 10 * time.Millisecond
	minInterval       = 100 * time.Microsecond
	defaultLoss       = 0.001 // threshold of the udp-stream sweep
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

// Resolved returns s with the defaults of its kind, or an error that names the parameter that is out of range.
func (s Spec) Resolved() (Spec, error) {
	s.fill()
	return s, s.validate()
}

// fill sets the defaults of the kind.
func (s *Spec) fill() {
	if s.Flows == 0 {
		s.Flows = 1
	}
	switch {
	case s.Kind == TCPStream:
		s.Size = cmp.Or(s.Size, DefaultStreamSize)
	case s.Kind == UDPStream:
		if s.Loss == 0 {
			s.Loss = defaultLoss
		}
		if !s.Searches() {
			s.Loss = 0
		}
	case s.Kind == UDPUnpaced, s.Kind == Unloaded: // no defaults
	case s.Kind == Ping:
		s.Size, s.Interval = cmp.Or(s.Size, defaultPing), cmp.Or(s.Interval, defaultInterval)
		s.Rate = float64(s.Flows) / s.Interval.Seconds()
	default:
		s.Request, s.Response = cmp.Or(s.Request, 1), cmp.Or(s.Response, 1)
	}
	if s.Kind.Stream() && s.Direction == "" {
		s.Direction = Forward
	}
	if (s.Kind == UDPRR || s.Kind == Ping) && s.Timeout == 0 {
		s.Timeout = DefaultUDPTimeout
	}
}

func (s Spec) validate() error {
	known := slices.Contains(Kinds(), s.Kind)
	limit := MaxSize
	if s.Kind.UDP() || s.Kind == Ping {
		limit = MaxDatagram
	}
	switch {
	case s.Duration < 0 || s.Duration > 24*time.Hour || s.Warmup < 0 || s.Warmup > time.Hour || s.Timeout < 0 ||
		s.Timeout > time.Minute:
		return fmt.Errorf("a time of %s is out of range", s.Kind)
	case !known:
		return fmt.Errorf("there is no workload %q", s.Kind)
	case s.Flows < 1 || s.Flows > maxFlows:
		return fmt.Errorf("flows=%d is not from 1 to %d", s.Flows, maxFlows)
	case s.Size < 0 || s.Size > limit, s.Request < 0 || s.Request > limit, s.Response < 0 || s.Response > limit:
		return fmt.Errorf("a size of %s is not from 1 to %d bytes", s.Kind, limit)
	case s.Kind == Ping && (s.Interval < minInterval || s.Interval > time.Minute):
		return fmt.Errorf("interval=%s is not from %s to 1m", s.Interval, minInterval)
	case s.Rate < 0 || s.Rate > maxRate:
		return fmt.Errorf("rate=%g is not from 0 to 1e9 per second", s.Rate)
	case s.BitRate < 0 || s.BitRate > maxMaxRate:
		return fmt.Errorf("rate=%s is not from 0 to 1 Tbit/s", unit.Format(s.BitRate, unit.BitPerSecond))
	case s.MaxRate != 0 && !(s.MaxRate >= minMaxRate && s.MaxRate <= maxMaxRate):
		return fmt.Errorf("max-rate=%g is not from 1 Mbit/s to 1 Tbit/s", s.MaxRate)
	case s.Loss < 0 || s.Loss >= 1:
		return fmt.Errorf("loss=%g is not a fraction below 1", s.Loss)
	case s.Kind.Stream() && s.Direction != Forward && s.Direction != Reverse && s.Direction != Both:
		return fmt.Errorf("direction=%s is not forward, reverse or both", s.Direction)
	case s.MSS != 0 && (s.MSS < minMSS || s.MSS > maxMSS):
		return fmt.Errorf("mss=%d is not from %d to %d bytes", s.MSS, minMSS, maxMSS)
	case s.Buffer != 0 && (s.Buffer < minBuffer || s.Buffer > maxBuffer):
		return fmt.Errorf("buffer=%d is not from 4 KiB to 512 MiB", s.Buffer)
	case !plainName.MatchString(s.Congestion):
		return fmt.Errorf("congestion=%q is not the name of a congestion control", s.Congestion)
	case s.Kind == UDPUnpaced && s.Rate > 0:
		return fmt.Errorf("%s has no rate; udp-stream has", s.Kind)
	case s.Kind == TCPStream && s.Rate > 0:
		return fmt.Errorf("tcp-stream has no rate; limit the path instead (?rate= of a lab target)")
	}
	return nil
}

// plainName matches names of congestion controls, and "".
var plainName = regexp.MustCompile(`^[a-z0-9_-]{0,15}$`)

// Limits of a search for the highest rate below a loss threshold: it takes at most SearchTime. Then at most
// SearchWindows windows are measured at lower and lower rates until one stays below the threshold.
const (
	SearchTime    = 8 * time.Second
	SearchWindows = 7
)
