// Package network is the suites of network cases: nine paths, six workloads.
//
// What the workloads tell, and what they do not:
//
//   - tcp-stream tells how many bytes one connection moves; not what many connections share, nor what
//     a slow start or a lossy link does to short transfers.
//   - udp-stream tells the rate of datagrams at which loss begins; not how a protocol on top of UDP
//     would behave at it.
//   - tcp-rr tells the time that the path adds to a small exchange on an open connection; not what
//     it is under load, nor at a given rate of arrivals, since the next request waits for the answer.
//   - udp-rr tells the same without TCP; a lost datagram is counted and does not show in the latency.
//   - tcp-crr tells what a new connection costs, in connection tracking and service rules too; not
//     what TLS or a connection pool makes of it.
//   - tcp-rr-loaded tells how long small exchanges wait behind streams on the same path; not behind
//     other tenants.
//
// And the paths:
//
//   - node-node tells what the machine and the link can do without a pod network: the upper bound.
//   - pod-node tells half of the pod network, and the way of every probe and host daemon.
//   - pod-pod is the pod network itself; /same stays within a node and says nothing of an overlay.
//   - node-svc and pod-svc add a Service with one backend; they do not tell how a Service spreads load.
package network

import (
	"time"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/suite"
	"github.com/knotmeter/knotmeter/internal/target"
	"github.com/knotmeter/knotmeter/internal/workload"
)

// Suite is every workload on every path. Its five primary cases are those that a user of a cluster feels
// most: pods on different nodes, directly and through a Service. The node-node cases are compared like
// the others, and bound those that leave the node.
func Suite() suite.Suite {
	s := suite.Suite{Name: "network", About: "nine paths with six workloads each, five of them primary"}
	for _, p := range target.Paths() {
		for _, k := range workload.Kinds() {
			s.Cases = append(s.Cases, newCase(p, k, role(p, k)))
		}
	}
	return s
}

func role(p target.Path, k workload.Kind) result.Role {
	switch {
	case p == target.PodPodOther && (k == workload.TCPStream || k == workload.TCPRR || k == workload.TCPCRR):
		return result.Primary
	case p == target.PodSvcOther && (k == workload.TCPRR || k == workload.TCPCRR):
		return result.Primary
	}
	return result.Exploratory
}

// Quick is what a comparison in a few minutes needs: throughput, latency and connections between
// pods on different nodes, directly and through a Service, all primary, with node-node as their bound. It
// tells nothing of UDP, of load, nor of traffic within a node. Its runs are short: how much runs differ hardly
// depends on their length, so more of them tell more than longer ones.
func Quick() suite.Suite {
	s := suite.Suite{Name: "network:quick", About: "pods on different nodes, directly and through a Service, in a few minutes", Duration: 400 * time.Millisecond}
	for _, p := range []target.Path{target.PodPodOther, target.PodSvcOther, target.NodeNode} {
		for _, k := range []workload.Kind{workload.TCPStream, workload.TCPRR, workload.TCPCRR} {
			r := result.Primary
			if p == target.NodeNode {
				r = result.Bound
			}
			s.Cases = append(s.Cases, newCase(p, k, r))
		}
	}
	return s
}

func newCase(p target.Path, k workload.Kind, r result.Role) suite.Case {
	w, err := workload.Spec{Kind: k}.Resolved()
	if err != nil {
		panic("a workload's defaults are out of its own range: " + err.Error())
	}
	return suite.Case{Path: p, Workload: w, Role: r}
}
