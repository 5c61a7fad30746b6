package netload

import "github.com/knotmeter/knotmeter/internal/family/network"

// work is what a worker does.
type work string

const (
	workRequest  work = "tcp-request" // client asks, server answers, on one connection
	workDatagram work = "udp-request" // the same by datagrams
	workCycle    work = "tcp-cycle"   // connect, request, response, close
	workEcho     work = "ping"        // client asks, the server's kernel answers
	workStream   work = "tcp-stream"  // one side writes, the other reads
	workPackets  work = "udp-stream"  // one side sends datagrams, the other counts them
	workNothing  work = "idle"        // both sides wait for the window's end
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

// flows is the plan of a resolved network.
func flows(w network.Spec) []flow {
	var plan []flow
	add := func(n int, k work, sender Role) {
		for range n {
			plan = append(plan, flow{Index: len(plan), Work: k, Sender: sender})
		}
	}
	streams := func(k work, n int, d network.Direction) {
		if d != network.Reverse {
			add(n, k, Client)
		}
		if d != network.Forward {
			add(n, k, Server)
		}
	}
	switch w.Kind {
	case network.TCPStream:
		streams(workStream, w.Flows, w.Direction)
	case network.UDPStream, network.UDPUnpaced:
		streams(workPackets, w.Flows, w.Direction)
	case network.TCPRR:
		add(w.Flows, workRequest, "")
	case network.UDPRR:
		add(w.Flows, workDatagram, "")
	case network.TCPCRR:
		add(w.Flows, workCycle, "")
	case network.Ping:
		add(w.Flows, workEcho, "")
	case network.Idle:
		add(1, workNothing, "")
	case network.TCPRRLoaded:
		add(w.Flows, workRequest, "")
		streams(workStream, 1, network.Both)
	}
	return plan
}

// searches reports whether the run is the search for the rate that other runs then have.
func (c Config) searches() bool { return c.Workload.Searches() && c.Found == 0 }

// offered is the rate at which datagrams are sent; 0 where it is searched for.
func (c Config) offered() float64 {
	switch {
	case c.Found > 0:
		return c.Found
	case c.Workload.Kind == network.UDPUnpaced:
		return Unpaced
	}
	return c.Workload.Rate
}
