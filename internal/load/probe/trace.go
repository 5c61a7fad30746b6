package probe

import "slices"

// A Kind is how probes go.
type Kind string

// The kinds of probes: datagrams of one flow, requests on a connection that stays open, and connections that are opened
// for one request each.
const (
	UDP Kind = "udp"
	TCP Kind = "tcp"
	New Kind = "tcp-new"
)

// Kinds lists all of them in the order of the documentation.
func Kinds() []Kind { return slices.Clone(kinds) }

var kinds = []Kind{UDP, TCP, New}

// Late is the latency from which an answer is late, in ns: TCP's shortest time-out on Linux, so that what is late has
// waited for a retransmission at least (RFC 6298 wants a second, tcp_rto_min is 200 ms).
const Late = 200_000_000

// A Trace is what became of the probes of a kind, on the prober's clock: ns since it began.
type Trace struct {
	Kind     Kind    `json:"kind"`
	Interval int64   `json:"interval"` // between probes, ns
	Number   int     `json:"number"`   // of the first probe, from 0 when the prober began
	Sent     []int64 `json:"sent"`     // when each was sent; 0: it was not, since too many were on their way
	Answered []int64 `json:"answered"` // when its answer came; 0: none came while the prober was there
	Broken   []int64 `json:"broken"`   // when the connection that stays open broke
}

// A Loss is what of a trace was not answered.
type Loss struct {
	Sent, Lost, Late int
	// Begin is when the first lost probe was sent, and End when the first one after the last lost one was, 0 if there is
	// none. The window between them may have answers in it. Both are 0 without a loss.
	Begin, End int64
	Until      int64 // which probes count, by when they were sent
	Longest    int64 // without an answer to a probe, from the first lost one to the next that was answered, ns
	Gap        int64 // between two answers that came one after the other, ns
	Slowest    int64 // latency, ns
	Broken     int   // connections
}

// Window is how long there was loss: from the first lost probe to the end of the last loss, ns. One that had not ended
// when the trace did is as long as it was seen.
func (l Loss) Window() int64 {
	switch {
	case l.Lost == 0:
		return 0
	case l.End == 0:
		return l.Until - l.Begin
	}
	return l.End - l.Begin
}

// Loss is that of the probes which were sent from a time until another, ns.
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

// gap is the longest time between answers that came from a time until another.
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

// First is when the first answer came after a time, ns; 0 if none did.
func (t Trace) First(after int64) int64 {
	var first int64
	for _, at := range t.Answered {
		if at > after && (first == 0 || at < first) {
			first = at
		}
	}
	return first
}

// Last is when the last answer came before a time, ns; 0 if none did.
func (t Trace) Last(before int64) int64 {
	var last int64
	for _, at := range t.Answered {
		if at < before {
			last = max(last, at)
		}
	}
	return last
}

// Lateness is how much later than planned the probes from a time until another were sent, at a quantile from 0 to 1,
// ns; 0 without probes.
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
