// Package network is the family of network workloads: nine paths and nine workloads, which have netperf's names where
// netperf has them.
//
// What the workloads measure, and what they do not:
//
//   - tcp-stream: how many bytes one connection moves; not what many connections share, nor what
//     slow start or a lossy link does to short transfers.
//   - udp-stream: the rate of datagrams at which loss begins; not how a protocol on top of UDP
//     would behave at it.
//   - udp-stream-unpaced: how many datagrams arrive if the sender sends as many as its CPU can, as published
//     comparisons have it; not what the path carries without loss.
//   - tcp-rr: the time that the path adds to a small exchange on an open connection; not the time under
//     load, nor at a given rate of arrivals, since the next request waits for the answer.
//   - udp-rr: the same without TCP; a lost datagram counts as a failed request.
//   - tcp-crr: the cost of a new connection, including connection tracking and service rules; not
//     the effect of TLS or a connection pool.
//   - ping: how long the server's kernel takes to answer; no program and no Service is involved.
//   - tcp-rr-loaded: how long small exchanges wait behind streams on the same path; not behind other tenants.
//   - idle: the CPU time of both nodes without load, like knb's case of that name; not which program uses it.
//
// And the paths:
//
//   - node-node is what the machine and the link can do without a pod network: the reference.
//   - pod-node crosses the pod network on one side only, as probes and host daemons do.
//   - pod-pod is the pod network itself; /same stays within a node and does not involve an overlay.
//   - node-svc and pod-svc add a Service with one backend; they do not show how a Service spreads load.
package network

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/load/netload"
	"github.com/knotmeter/knotmeter/internal/parameter"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// Family returns the family of network workloads with its tools.
func Family(tools ...family.Tool) family.Family {
	f := family.Family{
		Name: "network", Parse: parse, Parameters: parameters, Suites: []family.Suite{fullSuite(), quickSuite()},
		Tools: tools,
	}
	for _, p := range result.Paths() {
		f.Paths = append(f.Paths, string(p))
		stream := netload.Spec{Kind: netload.TCPStream, Flows: 1}
		f.Offers = append(f.Offers, family.Sample{Name: string(p), Workload: Workload{p, stream}})
	}
	for _, k := range netload.Kinds() {
		f.Kinds = append(f.Kinds, family.Sample{Name: string(k), Workload: Workload{result.PodPodOther, basic(k)}})
	}
	return f
}

// basic returns the workload of a kind that every tool with that kind supports.
func basic(k netload.Kind) netload.Spec {
	s := netload.Spec{Kind: k}
	if k == netload.UDPStream {
		s.Rate = 1000
	}
	s, _ = s.Resolved()
	return s
}

// usualSearch is the usual time of a search for the highest rate below a loss threshold.
const usualSearch = 2 * time.Second

// A Workload is a Spec on a path.
type Workload struct {
	Path result.Path
	netload.Spec
}

func parse(path, name, _ string) (family.Workload, error) {
	s, err := netload.Parse(name)
	return Workload{result.Path(path), s}, err
}

func parameters(of family.Workload) []parameter.Help {
	if w, is := of.(Workload); is {
		return netload.Parameters().HelpOf(w.Spec)
	}
	return netload.Parameters().Help()
}

func (w Workload) String() string { return string(w.Path) + "/" + w.Name() }

// subject returns a path in plain words: "Pod → pod, other node".
func subject(p result.Path) string {
	from, to, where := "Node", "node", ", other node"
	if p.ClientPod() {
		from = "Pod"
	}
	switch {
	case p.Service():
		to = "Service"
	case p.ServerPod():
		to = "pod"
	}
	switch {
	case p.Same():
		where = ", same node"
	case p == result.NodeNode:
		where = ""
	}
	return from + " → " + to + where
}

// Traits returns the traits of the case.
func (w Workload) Traits() family.Traits {
	t := family.Traits{
		Path: string(w.Path), Kind: w.Name(), Metric: Metric(w.Spec),
		Needs: targets.Placement{Path: w.Path, Datagrams: w.Kind.UDP() || w.Kind == netload.Ping},
		Load:  result.Load{BothWays: w.Direction == netload.Both},
		Words: result.Words{Subject: subject(w.Path), Quantity: quantity(w.Kind)},
	}
	if !w.Kind.Stream() && w.Kind != netload.Unloaded && w.Rate == 0 {
		t.Load.Outstanding = max(w.Flows, 1)
	}
	if w.Searches() {
		t.Limits = family.Limits{Windows: netload.SearchWindows, Run: netload.SearchTime}
		t.Nominal.Run = usualSearch
	}
	// The reference of a path between nodes is the same workload from node to node.
	if w.Path.Other() && w.Path != result.NodeNode {
		t.Reference = Workload{result.NodeNode, w.Spec}
	}
	return t
}

// Limits above which a network workload needs consent on targets with other users, in addition to those of
// [family.Disturbing].
const (
	gentleBits      = 100e6  // per second, in each direction
	gentleExchanges = 20_000 // planned requests, or datagrams, per second
	gentleMessage   = 64     // bytes of a request or response in a closed loop, whose rate is unknown in advance
)

// Disturbs returns how the workload exceeds the limits for targets with other users; "" if it does not.
func (w Workload) Disturbs(family.Times) string {
	bits := w.bits()
	switch message := max(w.Request, w.Response); {
	case math.IsInf(bits, 1):
		return "it sends as much as the network carries"
	case bits > gentleBits:
		return fmt.Sprintf("%s are more than %s", unit.Format(bits, unit.BitPerSecond),
			unit.Format(gentleBits, unit.BitPerSecond))
	case w.Kind == netload.TCPCRR && w.Rate == 0:
		return "it opens connections as fast as the network carries"
	case w.Kind == netload.TCPCRR && w.Rate > family.GentleRate:
		return fmt.Sprintf("%g new connections per second are more than %d", w.Rate, family.GentleRate)
	case w.Flows > family.GentleClients:
		return fmt.Sprintf("%d connections at once are more than %d", w.Flows, family.GentleClients)
	case w.exchanges() > gentleExchanges:
		return fmt.Sprintf("%.0f packets per second are more than %d", w.exchanges(), gentleExchanges)
	case !w.Kind.Stream() && w.Rate == 0 && message > gentleMessage:
		return fmt.Sprintf("requests of %d bytes, one after the other, are larger than %d", message, gentleMessage)
	}
	return ""
}

// bits returns the most payload that the workload plans to send in a direction, in bit/s; infinite if nothing limits
// it.
func (w Workload) bits() float64 {
	switch {
	case w.Kind == netload.UDPStream && !w.Searches():
		size := cmp.Or(w.Size, jumbo)
		return 8 * float64(size) * w.Sized(size).Rate
	case w.Kind.Stream() || w.Kind == netload.TCPRRLoaded:
		return w.Limit()
	}
	return 8 * w.Rate * float64(max(w.Request, w.Response, w.Size))
}

// exchanges returns the most requests or datagrams that the workload plans to send per second.
func (w Workload) exchanges() float64 {
	if w.Kind != netload.UDPStream {
		return w.Rate
	}
	size := cmp.Or(w.Size, jumbo)
	if w.Searches() {
		return w.Limit() / float64(8*size)
	}
	return w.Sized(size).Rate
}

// jumbo is the assumed payload of a datagram whose size depends on the path, in bytes.
const jumbo = 9000

// Capped returns the workload with its streams limited to a rate in bit/s, in each direction.
func (w Workload) Capped(rate float64) (family.Workload, error) {
	switch {
	case w.Kind == netload.UDPUnpaced:
		return nil, fmt.Errorf("%s sends as fast as it can; udp-stream can be limited", w)
	case w.Kind.Stream() || w.Kind == netload.TCPRRLoaded:
		w.MaxRate = min(w.Limit(), rate)
	}
	var err error
	w.Spec, err = w.Resolved()
	return w, err
}

// Timed returns the workload with the times of a run; false if it belongs to another family.
func Timed(w family.Workload, t family.Times) (netload.Spec, bool) {
	own, is := w.(Workload)
	own.Spec.Warmup, own.Spec.Duration = t.Warmup, t.Window
	return own.Spec, is
}
