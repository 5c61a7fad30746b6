package netload

import "time"

// A Trial is one step of a sweep at an offered rate.
type Trial struct {
	Rate     float64 `json:"rate"`     // offered, datagrams per second; Unpaced: as fast as possible
	Achieved float64 `json:"achieved"` // sent, datagrams per second
	Sent     uint64  `json:"sent"`
	Received uint64  `json:"received"`
}

// Loss returns the fraction of the sent datagrams that did not arrive.
func (t Trial) Loss() float64 {
	if t.Sent == 0 || t.Received >= t.Sent {
		return 0
	}
	return float64(t.Sent-t.Received) / float64(t.Sent)
}

// Unpaced is a rate above any other, in datagrams per second: the generator sends as fast as it can.
const Unpaced = 1e9

// A sweep finds the highest rate whose loss stays at or below a threshold, by bisection as in RFC 2544 section 26.1: an
// unpaced trial gives the ceiling, then every trial halves the interval between the highest rate that passed and the
// lowest that failed. It is a pure state machine: Next returns the rate to try, Record takes the result.
type sweep struct {
	Threshold float64 // highest loss that passes, as a fraction
	Precision float64 // the sweep ends when the interval is below this fraction of its upper end
	MaxTrials int
	Held      float64 // datagrams that the receivers' buffers can hold

	passed, failed float64 // the highest rate that passed and the lowest that failed; 0: none
	firstGuess     float64 // received rate of the unpaced trial: the first guess
	trials         []Trial
}

// newSweep returns a sweep with a precision of 2 % and at most 12 trials; the receivers' buffers can hold held
// datagrams.
func newSweep(threshold, held float64) *sweep {
	return &sweep{Threshold: threshold, Precision: 0.02, MaxTrials: 12, Held: held}
}

// The duration of a trial: fillFactor times the time that fills the receivers' buffers, within these limits.
const (
	minTrial   = 100 * time.Millisecond
	maxTrial   = 500 * time.Millisecond
	fillFactor = 4
)

// Duration returns how long a trial at a rate sends: long enough that buffers cannot hide a rate above the capacity.
func (s *sweep) Duration(rate float64) time.Duration {
	if rate >= Unpaced {
		return maxTrial // the rate to be sent is unknown
	}
	seconds := min(fillFactor*s.Held/rate, maxTrial.Seconds())
	return max(minTrial, time.Duration(seconds*float64(time.Second)))
}

// Next returns the rate of the next trial; done reports that the sweep is complete.
func (s *sweep) Next() (rate float64, done bool) {
	switch {
	case len(s.trials) == 0:
		return Unpaced, false
	case s.failed == 0: // even the unpaced trial passed
		return 0, true
	case len(s.trials) >= s.MaxTrials || s.failed-s.passed <= s.Precision*s.failed:
		return 0, true
	case len(s.trials) == 1 && s.firstGuess > 0 && s.firstGuess < s.failed:
		return s.firstGuess, false
	default:
		return (s.passed + s.failed) / 2, false
	}
}

// Step returns how far, as a fraction, the rate found may be below the highest that would have passed: 1 if none did,
// 0 if none failed, because then the generator, not the grid of the search, limits the rate.
func (s *sweep) Step() float64 {
	switch {
	case s.failed == 0:
		return 0
	case s.passed == 0:
		return 1
	}
	return s.failed/s.passed - 1
}

// Record adds the result of the trial that Next asked for. If less was sent than offered, the rate that was sent
// counts.
func (s *sweep) Record(t Trial) {
	rate := min(t.Rate, t.Achieved)
	if len(s.trials) == 0 && t.Sent > 0 {
		s.firstGuess = rate * float64(min(t.Received, t.Sent)) / float64(t.Sent)
	}
	s.trials = append(s.trials, t)
	if t.Sent > 0 && t.Loss() <= s.Threshold {
		s.passed = max(s.passed, rate)
		return
	}
	if s.failed == 0 || rate < s.failed {
		s.failed = max(rate, 1)
	}
	// The path varies from trial to trial: a rate that failed now must not count as passed because of an earlier trial.
	s.passed = min(s.passed, s.failed)
}

// StepDown returns the rate of the next window after n windows, from 1, lost more than the threshold. The last of them
// was at rate, and received datagrams per second arrived. The steps double, from 2 % on.
func StepDown(rate, received float64, n int) float64 {
	return max(min(received, rate*(1-float64(int(1)<<n)/100)), 1)
}

// Fallback returns the rate to measure at if none passed: half of the lowest that failed.
func (s *sweep) Fallback() float64 { return max(s.failed/2, 1) }
