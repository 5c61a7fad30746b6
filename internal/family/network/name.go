package network

import (
	"fmt"
	"net/netip"

	"github.com/knotmeter/knotmeter/internal/load/netload"
	"github.com/knotmeter/knotmeter/internal/metric"
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
