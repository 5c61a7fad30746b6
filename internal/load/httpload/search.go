package httpload

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/knotmeter/knotmeter/internal/load/netload"
)

// A Trial is one step of a search: so many requests per second were planned, or so many clients asked, and this became
// of them.
type Trial struct {
	Clients int     `json:"clients,omitempty"` // 0: an open loop
	Rate    float64 `json:"rate"`              // per second: planned, or with clients answered
	P50     float64 `json:"p50,omitempty"`     // seconds, of clients
	P99     float64 `json:"p99"`               // seconds, from the planned time
	Planned uint64  `json:"planned"`           // requests
	Failed  uint64  `json:"failed"`            //
	LateP99 float64 `json:"late_p99"`          // seconds, of the generator itself
	Limited bool    `json:"limited,omitempty"` // the generator was the limit
}

// A search finds the highest rate whose 99th percentile stays at or below a limit and at which nothing
// fails: it doubles the rate until a trial fails, then halves the interval. It is a pure state machine: Next says what
// to try, Took takes the outcome.
//
// All rates that it tries follow from the first one. With the same first rate everywhere, two servers whose knees are
// between the same rates would have equal results in every block, and two with a rate between their knees always
// different ones. So each search draws its own.
type search struct {
	Limit     float64 // of the 99th percentile, seconds
	Start     float64 // first rate, per second
	Highest   float64 // rate that is tried at most
	Precision float64 // ends when the failed rate is within this fraction above the passed one
	MaxTrials int

	passed, failed float64 // the highest rate that passed, and the lowest that failed; 0 as long as none did
	limited        int     // trials in a row in which the generator was the limit
	trials         []Trial
	whole          bool // trials are as long as the window
	from           int  // of trials, what counts
}

// newSearch is a search from about 50 requests per second on, to within 1 % in at most 20 trials: half of the smallest
// difference that matters unless a user says otherwise. The first rate is drawn from seed, uniformly from an octave on
// a logarithmic scale.
func newSearch(limit time.Duration, seed uint64) *search {
	octave := rand.New(rand.NewPCG(seed, 0)).Float64() - 0.5
	return &search{Limit: limit.Seconds(), Start: 50 * math.Exp2(octave), Highest: MaxRate, Precision: 0.01, MaxTrials: 20}
}

// Step is how far, as a fraction, the rate that was found may be below the highest that would have passed: 1 where the
// search ended without a rate above it that failed.
func (s *search) Step() float64 {
	if s.passed == 0 || s.failed == 0 || s.Limited() {
		return 1
	}
	return s.failed/s.passed - 1
}

// Next is the rate of the next trial; done says that there is none.
func (s *search) Next() (rate float64, done bool) {
	const slowest = 1
	switch {
	case len(s.trials) == 0:
		return s.Start, false
	case len(s.trials) < s.MaxTrials && s.limited > 0 && s.limited < limitedAtMost:
		return s.trials[len(s.trials)-1].Rate, false
	case s.limited > 0, len(s.trials) >= s.MaxTrials, s.passed >= s.Highest:
		return 0, true
	case s.failed == 0:
		return min(2*s.passed, s.Highest), false
	case s.passed == 0 && s.whole:
		// The rate that held for a short trial is seldom far from one that holds: down by 5, 10, 20, 40, then 80 %.
		n := len(s.trials) - s.from
		return s.failed * (1 - 0.05*float64(int(1)<<min(n, 4))), s.failed <= slowest
	case s.passed == 0:
		return s.failed / 4, s.failed <= slowest
	case s.failed <= s.passed*(1+s.Precision):
		return 0, true
	}
	return (s.passed + s.failed) / 2, false
}

// Took takes the outcome of the trial that Next asked for.
func (s *search) Took(t Trial) {
	s.trials = append(s.trials, t)
	switch {
	case t.Limited:
		s.limited++ // the machine may have been busy; if it stays so, nothing above can be judged
		return
	case s.Passes(t):
		s.passed = max(s.passed, t.Rate)
	default:
		if s.failed == 0 || t.Rate < s.failed {
			s.failed = t.Rate
		}
		// A server is not quite the same from trial to trial; what failed now can't have passed before.
		s.passed = s.below(s.failed)
	}
	s.limited = 0
}

// wholeTrials are so many at most.
const wholeTrials = 10

// Doubt takes the outcome of a whole window at the rate that was found, if that did not pass: then the success of a
// short trial no longer counts.
func (s *search) Doubt(t Trial) {
	s.trials = append(s.trials, t)
	s.passed, s.failed, s.limited = 0, t.Rate, 0
	s.whole, s.from, s.MaxTrials = true, len(s.trials), len(s.trials)+wholeTrials
}

// below is the highest rate that passed below another one, 0 if none did.
func (s *search) below(rate float64) float64 {
	best := 0.0
	for _, t := range s.trials[s.from:] {
		if !t.Limited && s.Passes(t) && t.Rate < rate {
			best = max(best, t.Rate)
		}
	}
	return best
}

// Passes says whether the server kept up.
func (s *search) Passes(t Trial) bool { return t.Planned > 0 && t.Failed == 0 && t.P99 <= s.Limit }

// Limited says that the generator, and not the server, ended the search.
func (s *search) Limited() bool { return s.limited > 0 || s.passed >= s.Highest }

// Shares of a search's time. The last trial is the measurement, so it has the whole window.
const (
	leastTrial   = 500 * time.Millisecond
	trialShare   = 4   // a trial takes a quarter of the window
	trialSamples = 368 // that a 99th percentile needs
	// lateAtMost is a share of the limit: when the generator is later than that, or half of it waits so long for a CPU,
	// the trial tells nothing.
	lateAtMost = 0.5
	// limitedAtMost is how often a trial is made in which the generator was the limit.
	limitedAtMost = 3
)

// trialWindow is long enough for a 99th percentile.
func trialWindow(window time.Duration, rate float64) time.Duration {
	enough := time.Duration(trialSamples / rate * float64(time.Second))
	return min(max(window/trialShare, leastTrial, enough), max(window, leastTrial))
}

// runSearch searches the rate, then runs at it for the whole window; where none passed it runs at a quarter of the
// lowest that failed. Trials are short, and a queue that grows slowly shows later: if the rate does not hold for a
// window, the search goes on below it with whole windows, and the report is that of the rate that it ends with. c's
// Rate and Clients are not used.
func runSearch(ctx context.Context, c Config) (Report, *search, error) {
	limit := c.Knee
	s := newSearch(limit, c.Seed)
	c.Clients = 0
	r, err := s.try(ctx, c, limit)
	if err != nil || r.Stopped != "" {
		return r, s, err
	}
	if c.Rate = s.passed; c.Rate == 0 {
		c.Rate = max(s.failed/4, 1)
	}
	if r, err = Run(ctx, c); err != nil || s.passed == 0 {
		return r, s, err
	}
	t, err := r.trial(c.Rate, limit)
	if err != nil || t.Limited || s.Passes(t) {
		return r, s, err
	}
	s.Doubt(t)
	held, err := s.try(ctx, c, limit)
	if s.passed > 0 || held.Stopped != "" {
		r = held
	}
	return r, s, err
}

// try makes trials until there are no more. The report is that of the rate found, or of the trial that was stopped
// before its time, since whoever stopped it does not want more of it.
func (s *search) try(ctx context.Context, c Config, limit time.Duration) (Report, error) {
	reports := map[float64]Report{}
	for {
		rate, done := s.Next()
		if done {
			return reports[s.passed], nil
		}
		trial := c
		trial.Rate = rate
		if !s.whole {
			trial.Warmup, trial.Window = min(c.Warmup, leastTrial), trialWindow(c.Window, rate)
			trial.Timeout = min(max(4*limit, time.Second), cmp.Or(c.Timeout, defaultTimeout))
			trial.Distress = impatient(c.Distress)
		}
		r, err := Run(ctx, trial)
		if err != nil {
			return Report{}, err
		}
		t, err := r.trial(rate, limit)
		if err != nil {
			return Report{}, err
		}
		s.Took(t)
		if r.Stopped != "" {
			return r, nil
		}
		reports[rate] = r
	}
}

func (r Report) trial(rate float64, limit time.Duration) (Trial, error) {
	latency, err := r.Total.Histogram()
	if err != nil {
		return Trial{}, err
	}
	late, err := netload.DecodeHistogram(r.Late)
	if err != nil {
		return Trial{}, fmt.Errorf("lateness: %w", err)
	}
	t := Trial{Rate: rate, Planned: r.Planned, Failed: r.Total.Failed(),
		P99: latency.Quantile(0.99), LateP99: late.Quantile(0.99)}
	t.Limited = t.LateP99 > lateAtMost*limit.Seconds() || r.Wake > lateAtMost*limit.Seconds()
	return t, nil
}
