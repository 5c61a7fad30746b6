package probe

import "slices"

// A Kind is a way to send probes.
type Kind string

// The kinds of probes: datagrams of one flow, requests on a connection that stays open, and a new connection for each
// request.
const (
	UDP    Kind = "udp"
	TCP    Kind = "tcp"
	TCPNew Kind = "tcp-new"
)

// Kinds returns all kinds in the order of the documentation.
func Kinds() []Kind { return slices.Clone(kinds) }

var kinds = []Kind{UDP, TCP, TCPNew}

// Late is the latency from which a response counts as late, in ns: TCP's shortest time-out on Linux, so that a late
// response has waited for at least one retransmission (RFC 6298 requires a second, tcp_rto_min is 200 ms).
const Late = 200_000_000

// A Trace holds the times of the probes of a kind, in ns since the prober began.
type Trace struct {
	Kind     Kind    `json:"kind"`
	Interval int64   `json:"interval"` // between probes, ns
	Number   int     `json:"number"`   // of the first probe, counted from 0
	Sent     []int64 `json:"sent"`     // when each was sent; 0: not sent, because too many were in progress
	Answered []int64 `json:"answered"` // when its response came; 0: none came until the trace was taken
	Broken   []int64 `json:"broken"`   // when the open connection broke
}

// A Loss summarizes the probes of a trace that were not answered.
type Loss struct {
	Sent, Lost, Late int
	// Begin is when the first lost probe was sent; End is when the first probe after the last lost one was sent, 0 if
	// there is none. Probes between them may have been answered. Both are 0 without loss.
	Begin, End int64
	Until      int64 // end of the time in which probes count, ns
	Longest    int64 // longest loss, from the first lost probe to the next answered one, ns
	Gap        int64 // longest time between two consecutive responses, ns
	Slowest    int64 // largest latency, ns
	Broken     int   // broken connections
}

// Window returns how long there was loss, from the first lost probe to the end of the last loss, in ns. Loss that had
// not ended counts until the end of the trace.
func (l Loss) Window() int64 {
	switch {
	case l.Lost == 0:
		return 0
	case l.End == 0:
		return l.Until - l.Begin
	}
	return l.End - l.Begin
}

// Loss summarizes the probes that were sent from a time until another, in ns.
func (t Trace) Loss(from, until int64) Loss {
	l := Loss{Until: until}
	var lostSince, lost int64
	for n, sent := range t.Sent {
		if sent == 0 || sent < from || sent >= until {
			continue
		}
		l.Sent++
		answered := t.Answered[n]
		if answered == 0 {
			l.Lost++
			if l.Begin == 0 {
				l.Begin = sent
			}
			if lostSince == 0 {
				lostSince = sent
			}
			lost, l.End = sent, 0
			continue
		}
		if lost != 0 && l.End == 0 {
			l.End = sent
		}
		if lostSince != 0 {
			l.Longest, lostSince = max(l.Longest, sent-lostSince), 0
		}
		l.Slowest = max(l.Slowest, answered-sent)
		if answered-sent >= Late {
			l.Late++
		}
	}
	if lostSince != 0 {
		l.Longest = max(l.Longest, until-lostSince)
	}
	for _, at := range t.Broken {
		if at >= from && at < until {
			l.Broken++
		}
	}
	l.Gap = t.gap(from, until)
	return l
}

// gap returns the longest time between responses from a time until another.
func (t Trace) gap(from, until int64) int64 {
	arrivals := []int64{from, until}
	for _, at := range t.Answered {
		if at > from && at < until {
			arrivals = append(arrivals, at)
		}
	}
	slices.Sort(arrivals)
	var longest int64
	for i := 1; i < len(arrivals); i++ {
		longest = max(longest, arrivals[i]-arrivals[i-1])
	}
	return longest
}

// First returns when the first response after a time came, in ns; 0 if there is none.
func (t Trace) First(after int64) int64 {
	var first int64
	for _, at := range t.Answered {
		if at > after && (first == 0 || at < first) {
			first = at
		}
	}
	return first
}

// Last returns when the last response before a time came, in ns; 0 if there is none.
func (t Trace) Last(before int64) int64 {
	var last int64
	for _, at := range t.Answered {
		if at < before {
			last = max(last, at)
		}
	}
	return last
}

// Lateness returns how much later than planned the probes from a time until another were sent, at a quantile from 0 to
// 1, in ns; 0 without probes.
func (t Trace) Lateness(from, until int64, q float64) int64 {
	var late []int64
	for n, sent := range t.Sent {
		if sent != 0 && sent >= from && sent < until {
			late = append(late, sent-int64(t.Number+n)*t.Interval)
		}
	}
	if len(late) == 0 {
		return 0
	}
	slices.Sort(late)
	return late[min(int(q*float64(len(late))), len(late)-1)]
}
