package netload

// recent is how many sequence numbers back a datagram is told from its duplicate. What comes later
// than that counts as reordered.
const recent = 1 << 13

// sequence accounts for the datagrams of one flow by their sequence numbers, which begin at 0. It
// holds a fixed amount of memory and allocates nothing.
type sequence struct {
	Next      uint64 // one above the highest number seen
	Received  uint64 // datagrams, duplicates not among them
	Reordered uint64 // arrived after a higher number had (RFC 4737, type-P-reordered)
	Duplicate uint64
	Arrived   uint64 // of those received, sent within the timeline's window

	timeline    Timeline
	jitter      float64 // ns
	transit     int64   // of the datagram before
	transitSeen bool
	seen        [recent / 64]uint64
}

// newSequence starts the account of a flow; the timeline is the sender's.
func newSequence(t Timeline) *sequence { return &sequence{timeline: t} }

// Observe takes in one datagram: its number, when the sender sent it (ns on the sender's clock)
// and when it arrived (ns on any other clock).
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

// observeTransit is the estimator of RFC 3550, section 6.4.1: J += (|D| - J) / 16. The two clocks
// may differ by a constant, which the difference of two transits does not have.
func (s *sequence) observeTransit(transit int64) {
	if s.transitSeen {
		d := transit - s.transit
		s.jitter += (float64(max(d, -d)) - s.jitter) / 16
	}
	s.transit, s.transitSeen = transit, true
}

// advance moves the highest number up to seq and forgets what falls out of the memory.
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

// Gaps is how many numbers below the highest one seen never arrived.
func (s *sequence) Gaps() uint64 {
	if s.Received > s.Next {
		return 0 // duplicates older than the memory
	}
	return s.Next - s.Received
}

// Jitter is the interarrival jitter in ns.
func (s *sequence) Jitter() float64 { return s.jitter }
