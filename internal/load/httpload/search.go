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

// A Trial is one step of a search, at a rate or with a number of clients.
type Trial struct {
	Clients int     `json:"clients,omitempty"` // 0: an open loop
	Rate    float64 `json:"rate"`              // per second: scheduled, or with clients answered
	P50     float64 `json:"p50,omitempty"`     // seconds; with clients only
	P99     float64 `json:"p99"`               // seconds, from the scheduled time
	Planned uint64  `json:"planned"`           // requests
	Failed  uint64  `json:"failed"`            // requests
	LateP99 float64 `json:"late_p99"`          // seconds, of the generator itself
	Limited bool    `json:"limited,omitempty"` // the generator was the limit
}

// A search finds the highest rate whose 99th percentile stays at or below a limit without failed requests: it doubles
// the rate until a trial fails, then halves the interval. It is a pure state machine: Next returns the rate to try,
// Record takes the result.
//
// All rates that it tries follow from the first one. With the same first rate everywhere, two servers whose knees are
// between the same two rates would have equal results in every block, and two servers with a rate between their knees
// would always have different ones. So each search draws its own first rate.
type search struct {
	Limit     float64 // of the 99th percentile, seconds
	Start     float64 // first rate, per second
	Highest   float64 // highest rate to try
	Precision float64 // the search ends when the failed rate is within this fraction above the passed one
	MaxTrials int

	passed, failed float64 // the highest rate that passed and the lowest that failed; 0: none
	limited        int     // consecutive trials in which the generator was the limit
	trials         []Trial
	whole          bool // trials have the length of the window
	from           int  // index of the first trial that counts
}

// newSearch returns a search from about 50 requests per second on, to within 1 %, half of the default delta, in at most
// 20 trials. The first rate is drawn from seed, uniformly from an octave on a logarithmic scale.
func newSearch(limit time.Duration, seed uint64) *search {
	octave := rand.New(rand.NewPCG(seed, 0)).Float64() - 0.5
	return &search{Limit: limit.Seconds(), Start: 50 * math.Exp2(octave), Highest: MaxRate, Precision: 0.01, MaxTrials: 20}
}

// Step returns how far, as a fraction, the rate found may be below the highest that would have passed: 1 if no rate
// above it failed.
func (s *search) Step() float64 {
	if s.passed == 0 || s.failed == 0 || s.Limited() {
		return 1
	}
	return s.failed/s.passed - 1
}

// Next returns the rate of the next trial; done reports that the search is complete.
func (s *search) Next() (rate float64, done bool) {
	const slowest = 1
	switch {
	case len(s.trials) == 0:
		return s.Start, false
	case len(s.trials) < s.MaxTrials && s.limited > 0 && s.limited < maxLimited:
		return s.trials[len(s.trials)-1].Rate, false
	case s.limited > 0, len(s.trials) >= s.MaxTrials, s.passed >= s.Highest:
		return 0, true
	case s.failed == 0:
		return min(2*s.passed, s.Highest), false
	case s.passed == 0 && s.whole:
		// A rate that passed a short trial is seldom far above one that lasts: down by 5, 10, 20, 40, then 80 %.
		n := len(s.trials) - s.from
		return s.failed * (1 - 0.05*float64(int(1)<<min(n, 4))), s.failed <= slowest
	case s.passed == 0:
		return s.failed / 4, s.failed <= slowest
	case s.failed <= s.passed*(1+s.Precision):
		return 0, true
	}
	return (s.passed + s.failed) / 2, false
}

// Record adds the result of the trial that Next asked for.
func (s *search) Record(t Trial) {
	s.trials = append(s.trials, t)
	switch {
	case t.Limited:
		s.limited++ // the machine may be busy for a moment; if it stays so, no higher rate can be judged
		return
	case s.Passes(t):
		s.passed = max(s.passed, t.Rate)
	default:
		if s.failed == 0 || t.Rate < s.failed {
			s.failed = t.Rate
		}
		// The server varies from trial to trial: a rate that failed now must not count as passed.
		s.passed = s.below(s.failed)
	}
	s.limited = 0
}

// wholeTrials is the largest number of trials with whole windows.
const wholeTrials = 10

// Reject adds the result of a whole window at the rate that was found, which did not pass. From then on the success of
// short trials no longer counts.
func (s *search) Reject(t Trial) {
	s.trials = append(s.trials, t)
	s.passed, s.failed, s.limited = 0, t.Rate, 0
	s.whole, s.from, s.MaxTrials = true, len(s.trials), len(s.trials)+wholeTrials
}

// below returns the highest rate below another one that passed, 0 if none did.
func (s *search) below(rate float64) float64 {
	best := 0.0
	for _, t := range s.trials[s.from:] {
		if !t.Limited && s.Passes(t) && t.Rate < rate {
			best = max(best, t.Rate)
		}
	}
	return best
}

// Passes reports whether the server kept up in a trial.
func (s *search) Passes(t Trial) bool { return t.Planned > 0 && t.Failed == 0 && t.P99 <= s.Limit }

// Limited reports whether the generator, and not the server, ended the search.
func (s *search) Limited() bool { return s.limited > 0 || s.passed >= s.Highest }

// Lengths and limits of trials. The last trial is the measurement, so it has the whole window.
const (
	minTrial     = 500 * time.Millisecond
	trialShare   = 4   // a trial takes the window divided by this
	trialSamples = 368 // requests that a 99th percentile needs
	// maxLateShare is a share of the limit: if the generator is later than that, or half of its goroutines wait longer
	// than that for a CPU, the trial does not count.
	maxLateShare = 0.5
	// maxLimited is how often a trial is repeated in which the generator was the limit.
	maxLimited = 3
)

// trialWindow returns the length of a trial at a rate: enough for a 99th percentile, at most the whole window.
func trialWindow(window time.Duration, rate float64) time.Duration {
	enough := time.Duration(trialSamples / rate * float64(time.Second))
	return min(max(window/trialShare, minTrial, enough), max(window, minTrial))
}

// runSearch searches for the rate, then runs at it for the whole window; if no rate passed, it runs at a quarter of the
// lowest that failed. Short trials miss queues that grow slowly: if the rate does not pass for a whole window, the
// search continues below it with whole windows, and the report is that of the rate found last. c's Rate and Clients are
// not used.
func runSearch(ctx context.Context, c Config) (Report, *search, error) {
	limit := c.Knee
	s := newSearch(limit, c.Seed)
	c.Clients = 0
	r, err := s.run(ctx, c, limit)
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
	s.Reject(t)
	held, err := s.run(ctx, c, limit)
	if s.passed > 0 || held.Stopped != "" {
		r = held
	}
	return r, s, err
}

// run makes trials until the search is complete. The report is that of the rate found, or of a trial that Distress
// stopped, which also ends the search.
func (s *search) run(ctx context.Context, c Config, limit time.Duration) (Report, error) {
	reports := map[float64]Report{}
	for {
		rate, done := s.Next()
		if done {
			return reports[s.passed], nil
		}
		trial := c
		trial.Rate = rate
		if !s.whole {
			trial.Warmup, trial.Window = min(c.Warmup, minTrial), trialWindow(c.Window, rate)
			trial.Timeout = min(max(4*limit, time.Second), cmp.Or(c.Timeout, defaultTimeout))
			trial.Distress = withoutTimeouts(c.Distress)
		}
		r, err := Run(ctx, trial)
		if err != nil {
			return Report{}, err
		}
		t, err := r.trial(rate, limit)
		if err != nil {
			return Report{}, err
		}
		s.Record(t)
		if r.Stopped != "" {
			return r, nil
		}
		reports[rate] = r
	}
}

// trial returns the report as a trial at a rate; limit is that of the 99th percentile.
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
	t.Limited = t.LateP99 > maxLateShare*limit.Seconds() || r.Wake > maxLateShare*limit.Seconds()
	return t, nil
}
