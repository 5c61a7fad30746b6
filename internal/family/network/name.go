package network

import (
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/load/netload"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/prose"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// Unpaced is the fact that tools record for [netload.UDPUnpaced].
var Unpaced = result.Fact{Name: "udp.pacing", Value: "none"}

// NotReached returns the warning about a sender of datagrams that could not keep its rate; both rates are in bit/s.
func NotReached(sent, asked float64) string {
	return fmt.Sprintf("the sender sent %s of the %s that were asked for: the rate is the sender's limit, and the loss "+
		"is what the path or the receiver's buffer dropped of it",
		unit.Format(sent, unit.BitPerSecond), unit.Format(asked, unit.BitPerSecond))
}

// Metric returns the metric that a verdict on a workload is about.
func Metric(s netload.Spec) string {
	switch {
	case s.Kind.Stream():
		return metric.Throughput
	case s.Kind == netload.Unloaded:
		return metric.CPUUnloaded
	}
	return metric.P50
}

// quantity returns what a kind measures, in plain words.
func quantity(k netload.Kind) string {
	switch k {
	case netload.UDPStream:
		return "UDP throughput"
	case netload.UDPUnpaced:
		return "UDP throughput, unpaced"
	case netload.TCPRR:
		return "latency"
	case netload.UDPRR:
		return "UDP latency"
	case netload.TCPCRR:
		return "connection time"
	case netload.TCPRRLoaded:
		return "latency under load"
	case netload.Ping:
		return "round trip of pings"
	case netload.Unloaded:
		return "CPU time without load"
	}
	return "throughput"
}

func kindNames() []string {
	names := make([]string, 0, len(netload.Kinds()))
	for _, k := range netload.Kinds() {
		names = append(names, string(k))
	}
	return names
}

// Name returns the workload's part of a case's name: the kind, then the parameters that are not the default, in the
// form that Parse reads: "tcp-stream:flows=4,size=16384". Times of the run are not part of it.
func Name(s netload.Spec) string {
	def, _ := netload.Spec{Kind: s.Kind}.Resolved()
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
	add(full.Rate != 0 && full.BitRate == 0 && full.Kind != netload.Ping,
		"rate=%s", strconv.FormatFloat(full.Rate, 'f', -1, 64))
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
		if whole := math.Trunc(v / prefix.scale); whole > 0 && whole*prefix.scale == v {
			return strconv.FormatFloat(whole, 'f', 0, 64) + prefix.name
		}
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}

// Parse reads the form that Name writes. Sizes may have units (64KiB). Every error wraps family.ErrInvalid.
func Parse(text string) (netload.Spec, error) {
	kind, opts, _ := strings.Cut(text, ":")
	s := netload.Spec{Kind: netload.Kind(kind)}
	if !slices.Contains(netload.Kinds(), s.Kind) {
		return s, fmt.Errorf("%w: there is no workload %q; there are %s",
			family.ErrInvalid, kind, prose.Choices(kind, kindNames()))
	}
	if err := family.Parameters(text, opts, func(key, val string) error { return set(&s, key, val) }); err != nil {
		return netload.Spec{}, err
	}
	s, err := s.Resolved()
	if err != nil {
		err = fmt.Errorf("%w: %w", family.ErrInvalid, err)
	}
	return s, err
}

// parameters returns the parameters of the kind in the order of the documentation; nil for an unknown kind.
func parameters(k netload.Kind) []string {
	switch k {
	case netload.TCPStream:
		return []string{"flows", "size", "direction", "mss", "buffer", "congestion", "max-rate"}
	case netload.UDPStream:
		return []string{"flows", "size", "direction", "rate", "loss", "offload", "buffer", "max-rate"}
	case netload.UDPUnpaced:
		return []string{"flows", "size", "direction", "offload", "buffer"}
	case netload.TCPRR, netload.TCPCRR:
		return []string{"flows", "request", "response", "rate"}
	case netload.UDPRR:
		return []string{"flows", "request", "response", "rate", "timeout"}
	case netload.Ping:
		return []string{"flows", "size", "interval", "timeout"}
	case netload.Unloaded:
		return []string{}
	case netload.TCPRRLoaded:
		return []string{"flows", "request", "response", "rate", "size", "max-rate"}
	}
	return nil
}

// set sets one parameter from text. A 0 that would silently become the default is an error.
func set(s *netload.Spec, key, val string) (err error) {
	known := parameters(s.Kind)
	switch {
	case known == nil:
		return nil // Resolved returns the error
	case s.Kind == netload.TCPStream && key == "rate":
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
		s.Direction = netload.Direction(val)
	case "rate":
		if v, u, e := unit.Parse(val); e == nil && u == unit.BitPerSecond && s.Kind == netload.UDPStream {
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

// Datagram returns the largest payload, in bytes, of a datagram to an address that fits into an MTU: the MTU minus the
// headers of IP and UDP, but not below least and not above netload.MaxDatagram. An mtu of 0 means unknown.
func Datagram(mtu int, to netip.Addr, least int) int {
	header := 20 + 8
	if to.Is6() && !to.Is4In6() {
		header = 40 + 8
	}
	if mtu <= 0 {
		mtu = unknownMTU
	}
	return min(max(mtu-header, least), netload.MaxDatagram)
}
