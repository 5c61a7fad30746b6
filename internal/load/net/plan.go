package netload

import "github.com/knotmeter/knotmeter/internal/workload"

// work is what a worker does.
type work string

const (
	workRequest  work = "tcp-request" // client asks, server answers, on one connection
	workDatagram work = "udp-request" // the same by datagrams
	workCycle    work = "tcp-cycle"   // connect, request, response, close
	workStream   work = "tcp-stream"  // one side writes, the other reads
	workPackets  work = "udp-stream"  // one side sends datagrams, the other counts them
)

// A flow is one connection, or for tcp-crr one thread of connections, of a run. Both sides derive
// the same list from the workload, so that an index is enough to name one.
type flow struct {
	Index  int
	Work   work
	Sender Role // of a stream
}

func (f flow) udp() bool { return f.Work == workDatagram || f.Work == workPackets }

// persistent says whether the flow is opened before the run and lasts until its end.
func (f flow) persistent() bool { return f.Work != workCycle }

// flows is the plan of a resolved workload.
func flows(w workload.Spec) []flow {
	var plan []flow
	add := func(n int, k work, sender Role) {
		for range n {
			plan = append(plan, flow{Index: len(plan), Work: k, Sender: sender})
		}
	}
	streams := func(k work, n int, d workload.Direction) {
		if d != workload.Reverse {
			add(n, k, Client)
		}
		if d != workload.Forward {
			add(n, k, Server)
		}
	}
	switch w.Kind {
	case workload.TCPStream:
		streams(workStream, w.Flows, w.Direction)
	case workload.UDPStream:
		streams(workPackets, w.Flows, w.Direction)
	case workload.TCPRR:
		add(w.Flows, workRequest, "")
	case workload.UDPRR:
		add(w.Flows, workDatagram, "")
	case workload.TCPCRR:
		add(w.Flows, workCycle, "")
	case workload.TCPRRLoaded:
		add(w.Flows, workRequest, "")
		streams(workStream, 1, workload.Both)
	}
	return plan
}

// sweeps says whether the run searches its rate.
func sweeps(w workload.Spec) bool { return w.Kind == workload.UDPStream && w.Rate == 0 }
