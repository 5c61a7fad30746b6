package network

import (
	"time"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
)

// whole is every workload on every path. Its five primary cases are those that a user of a cluster feels most: pods on
// different nodes, directly and through a Service. The node-node cases are compared like the others, and bound those
// that leave the node. Unpaced datagrams, pings and idle nodes are for repeating what others published.
func whole() family.Suite {
	s := family.Suite{Name: "network", About: "nine paths with six workloads each, five of them primary"}
	for _, p := range targets.Paths() {
		for _, k := range kinds {
			if k != UDPUnpaced && k != Ping && k != Idle {
				s.Cases = append(s.Cases, newCase(p, k, role(p, k)))
			}
		}
	}
	return s
}

func role(p targets.Path, k Kind) result.Role {
	switch {
	case p == targets.PodPodOther && (k == TCPStream || k == TCPRR || k == TCPCRR):
		return result.Primary
	case p == targets.PodSvcOther && (k == TCPRR || k == TCPCRR):
		return result.Primary
	}
	return result.Exploratory
}

// quick is what a comparison in a few minutes needs: throughput, latency and connections between
// pods on different nodes, directly and through a Service, all primary, with node-node as their bound. It
// tells nothing of UDP, of load, nor of traffic within a node. Its runs are short: how much runs differ hardly
// depends on their length, so more of them tell more than longer ones. They are long enough that most of the time is
// measuring, also where a site takes seconds.
func quick() family.Suite {
	s := family.Suite{
		Name: "network:quick", About: "pods on different nodes, directly and through a Service, in a few minutes",
		Duration: 750 * time.Millisecond,
	}
	for _, p := range []targets.Path{targets.PodPodOther, targets.PodSvcOther, targets.NodeNode} {
		for _, k := range []Kind{TCPStream, TCPRR, TCPCRR} {
			r := result.Primary
			if p == targets.NodeNode {
				r = result.Bound
			}
			s.Cases = append(s.Cases, newCase(p, k, r))
		}
	}
	return s
}

func newCase(p targets.Path, k Kind, r result.Role) family.Case {
	return family.Cases(r, func(name string) (family.Workload, error) { return parse(string(p), name, "") }, string(k))[0]
}
