package netload

// work is the task of a worker.
type work string

const (
	workRequest  work = "tcp-request" // the client sends a request, the server responds, on one connection
	workDatagram work = "udp-request" // the same with datagrams
	workCycle    work = "tcp-cycle"   // connect, request, response, close
	workEcho     work = "ping"        // the client sends a request, the server's kernel responds
	workStream   work = "tcp-stream"  // one side writes, the other reads
	workPackets  work = "udp-stream"  // one side sends datagrams, the other counts them
	workNothing  work = "idle"        // both sides wait for the window's end
)

// A flow is one connection of a run, or for tcp-crr one thread that makes connections. Both sides derive the same list
// from the workload, so that an index identifies a flow.
type flow struct {
	Index  int
	Work   work
	Sender Role // of a stream
}

func (f flow) udp() bool { return f.Work == workDatagram || f.Work == workPackets }

// persistent reports whether the flow is opened before the run and lasts until its end.
func (f flow) persistent() bool { return f.Work != workCycle }

// flows returns the flows of a resolved workload.
func flows(w Spec) []flow {
	var plan []flow
	add := func(n int, k work, sender Role) {
		for range n {
			plan = append(plan, flow{Index: len(plan), Work: k, Sender: sender})
		}
	}
	streams := func(k work, n int, d Direction) {
		if d != Reverse {
			add(n, k, Client)
		}
		if d != Forward {
			add(n, k, Server)
		}
	}
	switch w.Kind {
	case TCPStream:
		streams(workStream, w.Flows, w.Direction)
	case UDPStream, UDPUnpaced:
		streams(workPackets, w.Flows, w.Direction)
	case TCPRR:
		add(w.Flows, workRequest, "")
	case UDPRR:
		add(w.Flows, workDatagram, "")
	case TCPCRR:
		add(w.Flows, workCycle, "")
	case Ping:
		add(w.Flows, workEcho, "")
	case Unloaded:
		add(1, workNothing, "")
	case TCPRRLoaded:
		add(w.Flows, workRequest, "")
		streams(workStream, 1, Both)
	}
	return plan
}

// searches reports whether the run searches for the rate that later runs use.
func (c Config) searches() bool { return c.Workload.Searches() && c.Found == 0 }

// offered returns the rate at which datagrams are sent, in datagrams per second; 0 if the run searches for it.
func (c Config) offered() float64 {
	switch {
	case c.Found > 0:
		return c.Found
	case c.Workload.Kind == UDPUnpaced:
		return Unpaced
	}
	return c.Workload.Rate
}
