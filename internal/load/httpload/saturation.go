package httpload

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"slices"
)

// Saturated is the largest rise of the rate with more clients, as a fraction, at which a server counts as saturated.
const Saturated = 0.05

// A saturation finds the smallest number of clients of a closed loop from which on more of them raise the rate by no
// more than [Saturated]. It doubles the number until the rate stops rising or requests fail, then halves the interval
// on a logarithmic scale. Like [search] it is a pure state machine, and draws its first number at random.
type saturation struct {
	Least, Most int     // clients
	Start       float64 // clients of the first trial, before rounding
	Precision   float64 // the search ends when the number found is at most this fraction above one that is too small
	MaxTrials   int

	limited int // consecutive trials in which the generator was the limit
	trials  []Trial
}

// newSaturation returns a search between two numbers of clients, to within 10 % in at most 20 trials. The first number
// is drawn from seed, uniformly on a logarithmic scale from least to twice least.
func newSaturation(least, most int, seed uint64) *saturation {
	octave := rand.New(rand.NewPCG(seed, 0)).Float64()
	return &saturation{Least: least, Most: most, Start: float64(least) * math.Exp2(octave), Precision: 0.1, MaxTrials: 20}
}

// above returns the smallest number above clients in the series Start, 2 Start, 4 Start and so on, at most Most.
func (s *saturation) above(clients int) int {
	x := s.Start
	for int(math.Round(x)) <= clients {
		x *= 2
	}
	return min(int(math.Round(x)), s.Most)
}

// usableTrials returns the trials without failures in which the server was the limit, by their number of clients.
func (s *saturation) usableTrials() []Trial {
	good := slices.DeleteFunc(slices.Clone(s.trials), func(t Trial) bool {
		return t.Limited || t.Failed > 0 || t.Planned == 0
	})
	slices.SortStableFunc(good, func(a, b Trial) int { return cmp.Compare(a.Clients, b.Clients) })
	return good
}

// lowestBad returns the smallest number of clients without a good trial, 0 if there is none.
func (s *saturation) lowestBad() int {
	good, lowest := s.usableTrials(), 0
	for _, t := range s.trials {
		if !tried(good, t.Clients) && (lowest == 0 || t.Clients < lowest) {
			lowest = t.Clients
		}
	}
	return lowest
}

// tried reports whether there is a trial with that number of clients.
func tried(trials []Trial, clients int) bool {
	return slices.ContainsFunc(trials, func(t Trial) bool { return t.Clients == clients })
}

// highest returns the highest rate of trials, 0 if there are none.
func highest(trials []Trial) float64 {
	best := 0.0
	for _, t := range trials {
		best = max(best, t.Rate)
	}
	return best
}

// Rises reports whether the rate still rose at the highest number of clients.
func (s *saturation) Rises() bool {
	good := s.usableTrials()
	last := len(good) - 1
	return last < 0 || good[last].Rate > (1+Saturated)*highest(good[:last])
}

// Found returns the fewest clients that saturate the server, or, if the rate rises to the end, the most that were
// tried; 0 if there is no such number. tooFew is the largest number below it that was tried, 0 if there is none.
func (s *saturation) Found() (clients, tooFew int) {
	good := s.usableTrials()
	best := highest(good)
	for i, t := range good {
		if (1+Saturated)*t.Rate >= best {
			if i > 0 {
				tooFew = good[i-1].Clients
			}
			return t.Clients, tooFew
		}
	}
	return 0, 0
}

// Next returns the number of clients of the next trial; done reports that the search is complete.
func (s *saturation) Next() (clients int, done bool) {
	switch {
	case len(s.trials) == 0:
		return s.above(0), false
	case len(s.trials) >= s.MaxTrials:
		return 0, true
	case s.limited > 0 && s.limited < maxLimited:
		return s.trials[len(s.trials)-1].Clients, false // the machine may have been busy
	}
	clients = s.propose()
	return clients, tried(s.trials, clients)
}

// propose returns the number of clients to try next; one that was tried already if the search is complete.
func (s *saturation) propose() int {
	good, bad := s.usableTrials(), s.lowestBad()
	if len(good) == 0 {
		return max(bad/2, s.Least)
	}
	top := good[len(good)-1].Clients
	found, tooFew := s.Found()
	switch {
	case s.Rises() && bad == 0:
		return s.above(top)
	case tooFew == 0:
		return max(found/2, s.Least)
	case s.Rises(), float64(found) <= float64(tooFew)*(1+s.Precision):
		return found
	}
	return int(math.Round(math.Sqrt(float64(tooFew) * float64(found))))
}

// Record adds the result of the trial that Next asked for.
func (s *saturation) Record(t Trial) {
	s.trials = append(s.trials, t)
	s.limited++
	if !t.Limited {
		s.limited = 0
	}
}

// Limited reports whether the generator, and not the server, ended the search.
func (s *saturation) Limited() bool {
	return s.Rises() && slices.ContainsFunc(s.trials, func(t Trial) bool { return t.Limited })
}

// Step returns how far, as a fraction, the rate found may be below the highest: 1 if it rose to the end.
func (s *saturation) Step() float64 {
	if s.Rises() {
		return 1
	}
	return Saturated
}

// runSaturation searches for the number of clients from c.Clients to c.MostClients, then runs with it for the whole
// window. A trial that Distress stops ends the search, and the report is that of the trial.
func runSaturation(ctx context.Context, c Config) (Report, *saturation, error) {
	s := newSaturation(c.Clients, c.MostClients, c.Seed)
	for {
		clients, done := s.Next()
		if done {
			break
		}
		trial := c
		trial.Clients = clients
		// With some warm-up all clients have a request under way at both ends of the window, so that as many requests
		// begin in it as are answered.
		trial.Warmup, trial.Window = minTrial, max(c.Window/trialShare, minTrial)
		trial.Timeout = min(cmp.Or(c.Timeout, defaultTimeout), defaultTimeout)
		trial.Distress = withoutTimeouts(c.Distress)
		r, err := Run(ctx, trial)
		if err != nil {
			return Report{}, s, err
		}
		t, err := r.clientTrial(clients)
		if err != nil {
			return Report{}, s, err
		}
		s.Record(t)
		if r.Stopped != "" {
			return r, s, nil
		}
	}
	if c.Clients, _ = s.Found(); c.Clients == 0 {
		c.Clients = s.Least
	}
	r, err := Run(ctx, c)
	return r, s, err
}

// clientTrial returns the report as a trial with a number of clients.
func (r Report) clientTrial(clients int) (Trial, error) {
	latency, err := r.Total.Histogram()
	if err != nil {
		return Trial{}, err
	}
	t := Trial{Clients: clients, Rate: float64(r.Total.OK) / r.Window, Planned: r.Planned, Failed: r.Total.Failed()}
	if latency.Count() > 0 {
		t.P50, t.P99 = latency.Quantile(0.5), latency.Quantile(0.99)
		t.Limited = r.Starved(t.P50)
	}
	return t, nil
}
