package network

import (
	"time"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/load/netload"
	"github.com/knotmeter/knotmeter/internal/result"
)

// fullSuite returns every workload on every path, except for unpaced datagrams, pings and idle nodes, which exist to
// repeat published measurements. Its five primary cases matter most to users of a cluster: pods on different nodes,
// directly and through a Service. The node-node cases are compared like the others, and are the reference of those that
// leave the node.
func fullSuite() family.Suite {
	s := family.Suite{Name: "network", About: "nine paths with six workloads each, five of them primary"}
	for _, p := range result.Paths() {
		for _, k := range netload.Kinds() {
			if k != netload.UDPUnpaced && k != netload.Ping && k != netload.Unloaded {
				s.Cases = append(s.Cases, newCase(p, k, role(p, k)))
			}
		}
	}
	return s
}

func role(p result.Path, k netload.Kind) result.Role {
	switch {
	case p == result.PodPodOther && (k == netload.TCPStream || k == netload.TCPRR || k == netload.TCPCRR):
		return result.Primary
	case p == result.PodSvcOther && (k == netload.TCPRR || k == netload.TCPCRR):
		return result.Primary
	}
	return result.Exploratory
}

// quickSuite returns the cases of a comparison in a few minutes: throughput, latency and connections between pods on
// different nodes, directly and through a Service, all primary, with node-node as their reference. It covers no UDP, no
// load, and no traffic within a node. Its runs are short, because the variation between runs hardly depends on their
// length, so that more runs help more than longer ones; but they are long enough to take most of the time, even if a
// site takes seconds to open.
func quickSuite() family.Suite {
	s := family.Suite{
		Name: "network:quick", About: "pods on different nodes, directly and through a Service, in a few minutes",
		Duration: 750 * time.Millisecond,
	}
	for _, p := range []result.Path{result.PodPodOther, result.PodSvcOther, result.NodeNode} {
		for _, k := range []netload.Kind{netload.TCPStream, netload.TCPRR, netload.TCPCRR} {
			r := result.Primary
			if p == result.NodeNode {
				r = result.Bound
			}
			s.Cases = append(s.Cases, newCase(p, k, r))
		}
	}
	return s
}

func newCase(p result.Path, k netload.Kind, r result.Role) family.Case {
	return family.Cases(r, func(name string) (family.Workload, error) { return parse(string(p), name, "") }, string(k))[0]
}
