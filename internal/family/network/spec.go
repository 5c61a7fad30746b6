package network

import (
	"cmp"
	"fmt"
	"math"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/prose"
	"github.com/knotmeter/knotmeter/internal/result"
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
	Idle        Kind = "idle"               // no traffic; the CPU time of both machines
)

// Kinds returns the network workloads in the order of the documentation. The caller must not change the list.
func Kinds() []Kind { return kinds }

var kinds = []Kind{TCPStream, UDPStream, UDPUnpaced, TCPRR, UDPRR, TCPCRR, TCPRRLoaded, Ping, Idle}

// Unpaced is the fact that tools record for [UDPUnpaced].
var Unpaced = result.Fact{Name: "udp.pacing", Value: "none"}

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
	// BitRate is the rate of udp-stream in bit/s of payload, if the user gives it so; [Spec.Sized] converts it to Rate.
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
	// Timeout is when a request of udp-rr or a ping counts as lost.
	Timeout time.Duration `json:"timeout,omitempty"`

	Duration time.Duration `json:"duration"` // of the window
	Warmup   time.Duration `json:"warmup"`   // before the window, not measured
}

// Stream reports whether the workload moves bytes in one direction instead of exchanging requests.
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

// NotReached returns the warning about a sender of datagrams that could not keep its rate; both rates are in bit/s.
func NotReached(sent, asked float64) string {
	return fmt.Sprintf("the sender sent %s of the %s that were asked for: the rate is the sender's limit, and the loss "+
		"is what the path or the receiver's buffer dropped of it",
		unit.Format(sent, unit.BitPerSecond), unit.Format(asked, unit.BitPerSecond))
}

// OpenLoop reports whether latency counts from scheduled send times.
func (s Spec) OpenLoop() bool { return !s.Kind.Stream() && s.Kind != Ping && s.Rate > 0 }

// Metric returns the metric that a verdict on this workload is about.
func (s Spec) Metric() string {
	switch {
	case s.Kind.Stream():
		return metric.Throughput
	case s.Kind == Idle:
		return metric.CPUUnloaded
	}
	return metric.P50
}

// quantity returns what Metric measures for the kind, in plain words.
func (k Kind) quantity() string {
	switch k {
	case UDPStream:
		return "UDP throughput"
	case UDPUnpaced:
		return "UDP throughput, unpaced"
	case TCPRR:
		return "latency"
	case UDPRR:
		return "UDP latency"
	case TCPCRR:
		return "connection time"
	case TCPRRLoaded:
		return "latency under load"
	case Ping:
		return "round trip of pings"
	case Idle:
		return "CPU time without load"
	}
	return "throughput"
}

// Resolved returns s with the defaults of its kind, or an error that Is family.ErrInvalid and names the parameter that
// is out of range.
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
	case s.Kind == UDPUnpaced, s.Kind == Idle: // no defaults
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
	if err := s.validateTimes(); err != nil {
		return err
	}
	known := slices.Contains(Kinds(), s.Kind)
	limit := MaxSize
	if s.Kind.UDP() || s.Kind == Ping {
		limit = MaxDatagram
	}
	switch {
	case !known:
		return fmt.Errorf("%w: there is no workload %q; there are %s",
			family.ErrInvalid, s.Kind, prose.Choices(string(s.Kind), kindNames()))
	case s.Flows < 1 || s.Flows > maxFlows:
		return fmt.Errorf("%w: flows=%d is not from 1 to %d", family.ErrInvalid, s.Flows, maxFlows)
	case s.Size < 0 || s.Size > limit, s.Request < 0 || s.Request > limit, s.Response < 0 || s.Response > limit:
		return fmt.Errorf("%w: a size of %s is not from 1 to %d bytes", family.ErrInvalid, s.Kind, limit)
	case s.Kind == Ping && (s.Interval < minInterval || s.Interval > time.Minute):
		return fmt.Errorf("%w: interval=%s is not from %s to 1m", family.ErrInvalid, s.Interval, minInterval)
	case s.Rate < 0 || s.Rate > maxRate:
		return fmt.Errorf("%w: rate=%g is not from 0 to 1e9 per second", family.ErrInvalid, s.Rate)
	case s.BitRate < 0 || s.BitRate > maxMaxRate:
		return fmt.Errorf("%w: rate=%sbit/s is not from 0 to 1 Tbit/s", family.ErrInvalid, exact(s.BitRate))
	case s.MaxRate != 0 && !(s.MaxRate >= minMaxRate && s.MaxRate <= maxMaxRate):
		return fmt.Errorf("%w: max-rate=%g is not from 1 Mbit/s to 1 Tbit/s", family.ErrInvalid, s.MaxRate)
	case s.Loss < 0 || s.Loss >= 1:
		return fmt.Errorf("%w: loss=%g is not a fraction below 1", family.ErrInvalid, s.Loss)
	case s.Kind.Stream() && s.Direction != Forward && s.Direction != Reverse && s.Direction != Both:
		return fmt.Errorf("%w: direction=%s is not forward, reverse or both", family.ErrInvalid, s.Direction)
	case s.MSS != 0 && (s.MSS < minMSS || s.MSS > maxMSS):
		return fmt.Errorf("%w: mss=%d is not from %d to %d bytes", family.ErrInvalid, s.MSS, minMSS, maxMSS)
	case s.Buffer != 0 && (s.Buffer < minBuffer || s.Buffer > maxBuffer):
		return fmt.Errorf("%w: buffer=%d is not from 4 KiB to 512 MiB", family.ErrInvalid, s.Buffer)
	case !plainName.MatchString(s.Congestion):
		return fmt.Errorf("%w: congestion=%q is not the name of a congestion control", family.ErrInvalid, s.Congestion)
	case s.Kind == UDPUnpaced && s.Rate > 0:
		return fmt.Errorf("%w: %s has no rate; udp-stream has", family.ErrInvalid, s.Kind)
	case s.Kind == TCPStream && s.Rate > 0:
		return fmt.Errorf("%w: tcp-stream has no rate; limit the path instead (?rate= of a lab target)", family.ErrInvalid)
	}
	return nil
}

// plainName matches names of congestion controls, and "".
var plainName = regexp.MustCompile(`^[a-z0-9_-]{0,15}$`)

func (s Spec) validateTimes() error {
	if s.Duration < 0 || s.Duration > 24*time.Hour || s.Warmup < 0 ||
		s.Warmup > time.Hour || s.Timeout < 0 || s.Timeout > time.Minute {
		return fmt.Errorf("%w: a time of %s is out of range", family.ErrInvalid, s.Kind)
	}
	return nil
}

func kindNames() []string {
	names := make([]string, 0, len(Kinds()))
	for _, k := range Kinds() {
		names = append(names, string(k))
	}
	return names
}

// String returns the workload's part of a case's name: the kind, then the parameters that are not the default, in the
// form that Parse reads: "tcp-stream:flows=4,size=16384". Times of the run are not part of it.
func (s Spec) String() string {
	def, _ := Spec{Kind: s.Kind}.Resolved()
	full, _ := s.Resolved()
	var opts []string
	add := func(differs bool, format string, a ...any) {
		if differs {
			opts = append(opts, fmt.Sprintf(format, a...))
		}
	}
	add(full.Flows != def.Flows && full.Flows != 0, "flows=%d", full.Flows)
	add(full.Size != def.Size, "size=%d", full.Size)
	add(full.Request != def.Request, "request=%d", full.Request)
	add(full.Response != def.Response, "response=%d", full.Response)
	add(full.Direction != def.Direction, "direction=%s", full.Direction)
	add(full.BitRate != 0, "rate=%sbit/s", exact(full.BitRate))
	add(full.Interval != def.Interval, "interval=%s", full.Interval)
	add(full.Rate != 0 && full.BitRate == 0 && full.Kind != Ping, "rate=%s", strconv.FormatFloat(full.Rate, 'f', -1, 64))
	add(full.MaxRate != 0, "max-rate=%s", strconv.FormatFloat(full.MaxRate, 'f', -1, 64))
	add(full.Loss != def.Loss && full.Searches(), "loss=%s", strconv.FormatFloat(full.Loss, 'f', -1, 64))
	add(full.Offload != def.Offload, "offload=%t", full.Offload)
	add(full.MSS != 0, "mss=%d", full.MSS)
	add(full.Buffer != 0, "buffer=%d", full.Buffer)
	add(full.Congestion != "", "congestion=%s", full.Congestion)
	add(full.Timeout != def.Timeout, "timeout=%s", full.Timeout)
	return family.Title(string(s.Kind), opts)
}

// exact formats a number with the largest prefix that leaves it whole: 2.5e9 is 2500M.
func exact(v float64) string {
	for _, prefix := range []struct {
		name  string
		scale float64
	}{{"G", 1e9}, {"M", 1e6}, {"k", 1e3}} {
		if fullSuite := math.Trunc(v / prefix.scale); fullSuite > 0 && fullSuite*prefix.scale == v {
			return strconv.FormatFloat(fullSuite, 'f', 0, 64) + prefix.name
		}
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}

// Parse reads the form that String writes. Sizes may have units (64KiB). Every error Is family.ErrInvalid.
func Parse(text string) (Spec, error) {
	kind, opts, _ := strings.Cut(text, ":")
	s := Spec{Kind: Kind(kind)}
	if err := family.Parameters(text, opts, s.set); err != nil {
		return Spec{}, err
	}
	return s.Resolved()
}

// parameters returns the parameters of the kind in the order of the documentation; nil for an unknown kind.
func (k Kind) parameters() []string {
	switch k {
	case TCPStream:
		return []string{"flows", "size", "direction", "mss", "buffer", "congestion", "max-rate"}
	case UDPStream:
		return []string{"flows", "size", "direction", "rate", "loss", "offload", "buffer", "max-rate"}
	case UDPUnpaced:
		return []string{"flows", "size", "direction", "offload", "buffer"}
	case TCPRR, TCPCRR:
		return []string{"flows", "request", "response", "rate"}
	case UDPRR:
		return []string{"flows", "request", "response", "rate", "timeout"}
	case Ping:
		return []string{"flows", "size", "interval", "timeout"}
	case Idle:
		return []string{}
	case TCPRRLoaded:
		return []string{"flows", "request", "response", "rate", "size", "max-rate"}
	}
	return nil
}

// set sets one parameter from text. A 0 that would silently become the default is an error.
func (s *Spec) set(key, val string) (err error) {
	known := s.Kind.parameters()
	switch {
	case known == nil:
		return nil // Resolved returns the error
	case s.Kind == TCPStream && key == "rate":
		// The error of Resolved recommends an alternative.
	default:
		if err := family.CheckParameter(string(s.Kind), key, known); err != nil {
			return err
		}
	}
	switch key {
	case "flows":
		s.Flows, err = family.Positive(strconv.Atoi(val))
	case "size":
		s.Size, err = unit.ParseSize(val)
	case "request":
		s.Request, err = family.Positive(unit.ParseSize(val))
	case "response":
		s.Response, err = family.Positive(unit.ParseSize(val))
	case "direction":
		s.Direction = Direction(val)
	case "rate":
		if v, u, e := unit.Parse(val); e == nil && u == unit.BitPerSecond && s.Kind == UDPStream {
			s.BitRate, err = family.Positive(v, nil)
			break
		}
		s.Rate, err = unit.ParseAs(val, unit.PerSecond)
	case "max-rate":
		s.MaxRate, err = family.Positive(unit.ParseAs(val, unit.BitPerSecond))
	case "loss":
		s.Loss, err = family.Positive(fraction(val))
	case "mss":
		s.MSS, err = family.Positive(strconv.Atoi(val))
	case "buffer":
		s.Buffer, err = family.Positive(unit.ParseSize(val))
	case "congestion":
		s.Congestion = val
	case "offload":
		s.Offload, err = strconv.ParseBool(val)
	case "interval":
		s.Interval, err = family.Positive(time.ParseDuration(val))
	case "timeout":
		s.Timeout, err = family.Positive(time.ParseDuration(val))
	}
	return err
}

func fraction(text string) (float64, error) { return unit.ParseAs(text, unit.Ratio) }

// unknownMTU is the assumed MTU of a path whose MTU is unknown: the smallest that IPv6 permits.
const unknownMTU = 1280

// Datagram returns the largest payload of a datagram to an address that fits into an MTU, in bytes: the MTU less the
// headers of IP and UDP, at least least. An mtu of 0 is unknown.
func Datagram(mtu int, to netip.Addr, least int) int {
	header := 20 + 8
	if to.Is6() && !to.Is4In6() {
		header = 40 + 8
	}
	if mtu <= 0 {
		mtu = unknownMTU
	}
	return min(max(mtu-header, least), MaxDatagram)
}
