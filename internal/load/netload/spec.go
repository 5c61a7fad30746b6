package netload

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/knotmeter/knotmeter/internal/parameter"
	"github.com/knotmeter/knotmeter/internal/prose"
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

// Parameters returns the parameters of all kinds of workloads. The caller must not change the table.
func Parameters() parameter.Schema[Spec] { return parameters }

type param = parameter.Parameter[Spec]

// parameters is in the order of canonical names.
var parameters = parameter.Schema[Spec]{
	parameter.New(param{
		Name: "flows", Of: "all but `idle`", Has: except(Unloaded), Default: "1", Help: "connections at once",
	}, func(s *Spec) *int { return &s.Flows }, parameter.Int(1, maxFlows)),
	parameter.New(param{
		Name: "size", Of: "streams, `ping`", Has: only(TCPStream, UDPStream, UDPUnpaced, TCPRRLoaded, Ping),
		Default: "128KiB; of datagrams what the path's MTU holds; of `ping` 56", DefaultOf: defaultSize,
		Help: "bytes per send, of a datagram, or after the header of a ping",
	}, func(s *Spec) *int { return &s.Size }, parameter.Size(1, MaxSize, strconv.Itoa)),
	parameter.New(param{
		Name: "request", Of: "requests", Has: requests, Default: "1", Help: "bytes of a request",
	}, func(s *Spec) *int { return &s.Request }, parameter.Size(1, MaxSize, strconv.Itoa)),
	parameter.New(param{
		Name: "response", Of: "requests", Has: requests, Default: "1", Help: "bytes of a response",
	}, func(s *Spec) *int { return &s.Response }, parameter.Size(1, MaxSize, strconv.Itoa)),
	parameter.New(param{
		Name: "direction", Of: "streams", Has: only(TCPStream, UDPStream, UDPUnpaced), Default: string(Forward),
		Help: "client to server, server to client, or both as iperf3's `--bidir`: `throughput` is the sum, " +
			"`throughput-tx` and `throughput-rx` are the two from the client's side",
	}, func(s *Spec) *Direction { return &s.Direction }, parameter.OneOf(Forward, Reverse, Both)),
	{
		Name: "rate", Of: "requests, `udp-stream`",
		Has:    func(s Spec) bool { return requests(s) || s.Kind == UDPStream },
		Values: "above 0, up to 1e9 op/s; of `udp-stream` also up to 1 Tbit/s",
		Help: "operations or datagrams per second over all flows, or bits per second of `udp-stream`, such as " +
			"`10Gbit/s`; requests become an open loop",
		Set: setRate, Get: rateText,
		Valid: func(s Spec) bool {
			return s.Rate >= 0 && s.Rate <= maxRate && s.BitRate >= 0 && s.BitRate <= maxMaxRate
		},
	},
	{
		Name: "rate", Has: only(TCPStream),
		Refused: errors.New("tcp-stream has no rate; limit the path instead (?rate= of a lab target)"),
	},
	parameter.New(param{
		Name: "interval", Of: "`ping`", Has: only(Ping), Default: "10ms",
		Help: "time between the pings of a flow; a p99 takes 368 pings",
	}, func(s *Spec) *time.Duration { return &s.Interval }, parameter.Duration(minInterval, time.Minute)),
	parameter.New(param{
		Name: "max-rate", Of: "`tcp-stream`, `udp-stream`, `tcp-rr-loaded`", Has: only(TCPStream, UDPStream, TCPRRLoaded),
		Help: "most that the streams send, over all flows in each direction (default: no limit); `--max-rate` limits " +
			"all cases, and their names say so",
	}, func(s *Spec) *float64 { return &s.MaxRate }, parameter.Number(unit.BitPerSecond, "1 Mbit/s to 1 Tbit/s",
		func(v float64) bool { return v >= minMaxRate && v <= maxMaxRate })),
	parameter.New(param{
		Name: "loss", Of: "`udp-stream`", Has: only(UDPStream), Default: defaultLoss, DefaultOf: lossOfSearch,
		Help: "largest loss of the search for the highest rate",
	}, func(s *Spec) *float64 { return &s.Loss }, parameter.Number(unit.Ratio, "a fraction above 0 and below 1",
		func(v float64) bool { return v > 0 && v < 1 })),
	parameter.New(param{
		Name: "offload", Of: "streams of datagrams", Has: only(UDPStream, UDPUnpaced), Default: "false",
		Help: "segmentation offload",
	}, func(s *Spec) *bool { return &s.Offload }, parameter.Switch("false", "true")),
	parameter.New(param{
		Name: "mss", Of: "`tcp-stream`", Has: only(TCPStream),
		Help: "largest segment in bytes, with 12 of time stamps (default: what the path holds)",
	}, func(s *Spec) *int { return &s.MSS }, parameter.Int(minMSS, maxMSS)),
	parameter.New(param{
		Name: "buffer", Of: "streams", Has: only(TCPStream, UDPStream, UDPUnpaced),
		Help: "bytes of each socket's buffers for sending and for receiving, on both sides (default: the kernel's own " +
			"for TCP, which grow; 4 MiB for datagrams); a run whose host grants less fails",
	}, func(s *Spec) *int { return &s.Buffer }, parameter.Size(minBuffer, maxBuffer, strconv.Itoa)),
	parameter.New(param{
		Name: "congestion", Of: "`tcp-stream`", Has: only(TCPStream), Help: "congestion control (default: the hosts')",
	}, func(s *Spec) *string { return &s.Congestion }, parameter.Text("the name of a congestion control", plainName)),
	parameter.New(param{
		Name: "timeout", Of: "`udp-rr`, `ping`", Has: only(UDPRR, Ping), Default: DefaultUDPTimeout.String(),
		Help: "time until a request counts as lost",
	}, func(s *Spec) *time.Duration { return &s.Timeout }, parameter.Duration(time.Microsecond, time.Minute)),
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

// Defaults, in the form of the parameters.
const (
	defaultPing = "56" // bytes of payload, as ping has
	defaultLoss = "0.001"
)

func only(kinds ...Kind) func(Spec) bool {
	return func(s Spec) bool { return slices.Contains(kinds, s.Kind) }
}

func except(kind Kind) func(Spec) bool { return func(s Spec) bool { return s.Kind != kind } }

// requests reports whether the workload sends requests and waits for responses.
func requests(s Spec) bool {
	return s.Kind == TCPRR || s.Kind == UDPRR || s.Kind == TCPCRR || s.Kind == TCPRRLoaded
}

func defaultSize(s Spec) string {
	switch s.Kind {
	case TCPStream:
		return strconv.Itoa(DefaultStreamSize)
	case Ping:
		return defaultPing
	}
	return ""
}

func lossOfSearch(s Spec) string {
	if s.Searches() {
		return defaultLoss
	}
	return ""
}

// setRate sets Rate, or BitRate if the text is in bit/s.
func setRate(s *Spec, text string) error {
	v, u, err := unit.Parse(text)
	bits := u == unit.BitPerSecond && s.Kind == UDPStream
	switch {
	case err == nil && bits && v > 0 && v <= maxMaxRate:
		s.Rate, s.BitRate = 0, v
	case err == nil && (u == unit.PerSecond || u == unit.Count) && v > 0 && v <= maxRate:
		s.Rate, s.BitRate = v, 0
	case s.Kind == UDPStream:
		return errors.New("it has to be above 0, up to 1e9 op/s (datagrams) or up to 1 Tbit/s")
	default:
		return errors.New("it has to be above 0, up to 1e9 op/s")
	}
	return nil
}

func rateText(s Spec) string {
	switch {
	case s.BitRate != 0:
		return exact(s.BitRate) + "bit/s"
	case s.Rate != 0:
		return strconv.FormatFloat(s.Rate, 'f', -1, 64)
	}
	return ""
}

// exact formats a number with the largest prefix that leaves it whole: 2.5e9 is 2500M.
func exact(v float64) string {
	for _, prefix := range []struct {
		name  string
		scale float64
	}{{"G", 1e9}, {"M", 1e6}, {"k", 1e3}} {
		if whole := math.Trunc(v / prefix.scale); whole > 0 && whole*prefix.scale == v {
			return strconv.FormatFloat(whole, 'f', 0, 64) + prefix.name
		}
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}

// plainName matches names of congestion controls.
var plainName = regexp.MustCompile(`^[a-z0-9_-]{1,15}$`)

// Parse returns the workload with a name such as tcp-stream:flows=4,size=64KiB, with its defaults.
func Parse(text string) (Spec, error) {
	kind, _, _ := strings.Cut(text, ":")
	s := Spec{Kind: Kind(kind)}
	if !slices.Contains(kinds, s.Kind) {
		return Spec{}, noKind(kind)
	}
	if err := parameters.Parse(&s, text); err != nil {
		return Spec{}, err
	}
	return s.Resolved()
}

func noKind(kind string) error {
	var names []string
	for _, k := range kinds {
		names = append(names, string(k))
	}
	return fmt.Errorf("there is no workload %q; there are %s", kind, prose.Choices(kind, names))
}

// Name returns the canonical name, which Parse reads: the kind, then the parameters that are not the default:
// tcp-stream:flows=4,size=16384. Times of the run are not part of it.
func (s Spec) Name() string {
	s.fill()
	return parameters.Text(string(s.Kind), s)
}

// Resolved returns s with the defaults of its kind, or an error that names the parameter that is out of range.
func (s Spec) Resolved() (Spec, error) {
	s.fill()
	return s, s.validate()
}

func (s *Spec) fill() {
	parameters.Fill(s)
	s.Flows = cmp.Or(s.Flows, 1) // of idle too
	switch {
	case s.Kind == Ping:
		s.Rate = float64(s.Flows) / s.Interval.Seconds()
	case !s.Searches():
		s.Loss = 0
	}
}

func (s Spec) validate() error {
	datagrams := s.Kind.UDP() || s.Kind == Ping
	switch {
	case !slices.Contains(kinds, s.Kind):
		return noKind(string(s.Kind))
	case s.Duration < 0 || s.Duration > 24*time.Hour || s.Warmup < 0 || s.Warmup > time.Hour:
		return fmt.Errorf("a time of %s is out of range", s.Kind)
	case datagrams && max(s.Size, s.Request, s.Response) > MaxDatagram:
		return fmt.Errorf("a size of %s is not from 1 to %d bytes", s.Kind, MaxDatagram)
	case !requests(s) && s.Kind != UDPStream && s.Kind != Ping && s.Rate != 0:
		return fmt.Errorf("%s has no rate; udp-stream has", s.Kind)
	}
	return parameters.Check(s)
}
