package netload

// recent is how many of the latest sequence numbers are remembered to recognize duplicates. An older datagram counts as
// reordered.
const recent = 1 << 13

// A sequence accounts for the datagrams of one flow by their sequence numbers, which begin at 0. It uses a fixed amount
// of memory and allocates nothing.
type sequence struct {
	Next      uint64 // one above the highest number seen
	Received  uint64 // datagrams without duplicates
	Reordered uint64 // arrived after a higher number (RFC 4737, type-P-reordered)
	Duplicate uint64
	Arrived   uint64 // those received that were sent within the timeline's window

	timeline    Timeline
	jitter      float64 // ns
	transit     int64   // of the previous datagram, ns
	transitSeen bool
	seen        [recent / 64]uint64
}

// newSequence returns an empty account of a flow; the timeline is the sender's.
func newSequence(t Timeline) *sequence { return &sequence{timeline: t} }

// Observe records one datagram: its number, its sending time (ns on the sender's clock) and its arrival (ns on any
// other clock).
func (s *sequence) Observe(seq uint64, sent, arrived int64) {
	switch {
	case seq >= s.Next:
		s.advance(seq)
	case s.Next-seq > recent:
		s.Reordered++
	case s.marked(seq):
		s.Duplicate++
		return
	default:
		s.Reordered++
	}
	s.mark(seq)
	s.Received++
	if s.timeline.In(sent) {
		s.Arrived++
	}
	s.observeTransit(arrived - sent)
}

// observeTransit updates the jitter by the estimator of RFC 3550, section 6.4.1: J += (|D| - J) / 16. A constant
// difference between the two clocks cancels out.
func (s *sequence) observeTransit(transit int64) {
	if s.transitSeen {
		d := transit - s.transit
		s.jitter += (float64(max(d, -d)) - s.jitter) / 16
	}
	s.transit, s.transitSeen = transit, true
}

// advance moves the highest number up to seq and forgets the numbers that are no longer recent.
func (s *sequence) advance(seq uint64) {
	if seq-s.Next >= recent {
		clear(s.seen[:])
	} else {
		for n := s.Next; n <= seq; n++ {
			s.seen[n%recent/64] &^= 1 << (n % 64)
		}
	}
	s.Next = seq + 1
}

func (s *sequence) mark(seq uint64) {
	if s.Next-seq <= recent {
		s.seen[seq%recent/64] |= 1 << (seq % 64)
	}
}

func (s *sequence) marked(seq uint64) bool { return s.seen[seq%recent/64]&(1<<(seq%64)) != 0 }

// Gaps returns how many numbers below the highest one never arrived.
func (s *sequence) Gaps() uint64 {
	if s.Received > s.Next {
		return 0 // duplicates that are no longer recent
	}
	return s.Next - s.Received
}

// Jitter returns the interarrival jitter in ns.
func (s *sequence) Jitter() float64 { return s.jitter }
