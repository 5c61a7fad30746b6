package httpload

import (
	"math"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// searched runs a search on a server; rate returns the trial with a number of clients.
func searched(t *testing.T, s *saturation, rate func(clients int) Trial) *saturation {
	t.Helper()
	for n := 0; ; n++ {
		clients, done := s.Next()
		if done {
			return s
		}
		if n >= s.MaxTrials || clients < s.Least || clients > s.Most {
			t.Fatalf("trial %d with %d clients of %d to %d: %+v", n, clients, s.Least, s.Most, s.trials)
		}
		trial := rate(clients)
		trial.Clients = clients
		s.Record(trial)
	}
}

// upTo returns a server that responds to 100 requests per second of each client, for at most that many clients.
func upTo(most int) func(int) Trial {
	return func(clients int) Trial { return Trial{Rate: 100 * float64(min(clients, most)), Planned: 1000} }
}

// TestSaturation checks that the search finds a known saturation, whatever number it begins with.
func TestSaturation(t *testing.T) {
	for _, most := range []int{1, 2, 3, 7, 16, 100, 700} {
		want := int(math.Ceil(float64(most) / (1 + Saturated)))
		for seed := range uint64(20) {
			s := searched(t, newSaturation(1, 5000, seed), upTo(most))
			got, tooFew := s.Found()
			if got < want || float64(got) > 1.1*float64(want)+1 || tooFew >= want && want > 1 || want == 1 && tooFew != 0 ||
				s.Rises() || s.Limited() || s.Step() != Saturated {
				t.Errorf("saturated with %d, seed %d: found %d, %d are too few, in %d trials: %+v",
					want, seed, got, tooFew, len(s.trials), s.trials)
			}
		}
	}
}

// TestSaturationIsNotReached checks that the result is a lower bound if the rate rises to the end, requests begin to
// fail, or the generator is the limit.
func TestSaturationIsNotReached(t *testing.T) {
	for name, c := range map[string]struct {
		rate    func(int) Trial
		least   int // of what is found
		most    int
		limited bool
	}{
		"rises": {upTo(1000), 64, 64, false},
		"fails": {func(clients int) Trial {
			failed := uint64(0)
			if clients > 20 {
				failed = 1
			}
			return Trial{Rate: 100 * float64(clients), Planned: 1000, Failed: failed}
		}, 8, 20, false},
		"generator": {func(clients int) Trial {
			return Trial{Rate: 100 * float64(clients), Planned: 1000, Limited: clients > 20}
		}, 8, 20, true},
		"always fails": {func(int) Trial { return Trial{Rate: 100, Planned: 1000, Failed: 1} }, 0, 0, false},
		"no responses": {func(int) Trial { return Trial{} }, 0, 0, false},
	} {
		for seed := range uint64(10) {
			s := searched(t, newSaturation(2, 64, seed), c.rate)
			got, _ := s.Found()
			if got < c.least || got > c.most || !s.Rises() || s.Step() != 1 || s.Limited() != c.limited {
				t.Errorf("%s: found %d, rises %t, limited %t: %+v", name, got, s.Rises(), s.Limited(), s.trials)
			}
		}
	}
	// Single trials on a busy generator machine are repeated and do not end the search.
	n := 0
	s := searched(t, newSaturation(1, 64, 1), func(clients int) Trial {
		trial := upTo(16)(clients)
		n++
		trial.Limited = n%3 == 0
		return trial
	})
	if got, _ := s.Found(); got < 16 || got > 18 || s.Limited() {
		t.Errorf("with busy moments: found %d: %+v", got, s.trials)
	}
}

// TestSaturationEnds checks that the search ends within its range, whatever the results of trials.
func TestSaturationEnds(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for seed := range uint64(2000) {
		least := 1 + random.IntN(50)
		s := searched(t, newSaturation(least, least+1+random.IntN(3000), seed), func(int) Trial {
			return Trial{Rate: 1000 * random.Float64(), Planned: uint64(random.IntN(5)), Failed: uint64(random.IntN(5) / 4),
				Limited: random.IntN(8) == 0}
		})
		if got, tooFew := s.Found(); got != 0 && (got < s.Least || got > s.Most || tooFew >= got) {
			t.Fatalf("found %d, %d are too few, of %d to %d", got, tooFew, s.Least, s.Most)
		}
	}
}

// TestSaturationIsResolved compares servers whose highest rates are known, in experiments of 11 blocks. It checks that
// no verdict is finer than the share by which the rate found may be below the highest: equal servers are not equivalent
// to within 2 %, a smaller difference than that share never exceeds delta, and a larger one is found.
func TestSaturationIsResolved(t *testing.T) {
	const experiments = 40
	for _, c := range []struct {
		ratio float64
		apart bool
	}{{1, false}, {1.03, false}, {1.2, true}} {
		n := countVerdicts(t, experiments, func(server int, seed uint64) result.Value {
			highest := []float64{1000, c.ratio * 1000}[server]
			rate := func(clients int) float64 { return highest * (1 - math.Exp(-float64(clients)/30)) }
			s := searched(t, newSaturation(1, 500, seed), func(clients int) Trial {
				return Trial{Rate: rate(clients), Planned: 1000}
			})
			found, _ := s.Found()
			return result.Value{Metric: metric.Rate, Unit: unit.PerSecond, Better: metric.Higher,
				Number: rate(found), Step: s.Step()}
		})
		t.Logf("ratio %g: %+v", c.ratio, n)
		if n.equivalent > 0 || c.apart && n.exceeds < experiments*9/10 || !c.apart && n.exceeds > 0 {
			t.Errorf("ratio %g: of %d: %+v", c.ratio, experiments, n)
		}
	}
}

// TestSaturationServer checks that 12 clients saturate a server that handles 12 requests at a time, for 10 ms each.
func TestSaturationServer(t *testing.T) {
	simulate(t, func(t *testing.T) {
		several := make(chan struct{}, 12)
		c := serve(t, &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			several <- struct{}{}
			time.Sleep(10 * time.Millisecond)
			<-several
		})})
		c.Clients, c.MostClients, c.Window = 1, 100, 4*time.Second
		r, err := SearchAndRun(t.Context(), c)
		if err != nil || len(r.Invalid) > 0 || r.Rises || r.Limited || r.Step != Saturated {
			t.Fatalf("%+v, %v", r, err)
		}
		rate := float64(r.Total.OK) / r.Window
		if r.Clients < 11 || r.Clients > 13 || r.TooFew >= r.Clients || math.Abs(rate-1200) > 60 || r.AtOnce != r.Clients {
			t.Errorf("saturated with %d clients, %d are too few, at %g/s over %d connections: %+v",
				r.Clients, r.TooFew, rate, r.AtOnce, r.Trials)
		}
	})
}

// TestSaturationStops checks that a trial that ends because the server is in distress ends the search.
func TestSaturationStops(t *testing.T) {
	simulate(t, func(t *testing.T) {
		c := serve(t, &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			time.Sleep(time.Second)
		})})
		c.Clients, c.MostClients, c.Window = 1, 100, 4*time.Second
		c.Distress = func(p ServerHealth) string {
			if p.Ended >= 16 {
				return "enough"
			}
			return ""
		}
		r, err := SearchAndRun(t.Context(), c)
		if err != nil || r.Stopped != "enough" || r.Trials[len(r.Trials)-1].Clients < 10 {
			t.Errorf("%+v, %v", r, err)
		}
	})
}
