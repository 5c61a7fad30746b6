package httpload

import (
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"
)

// The search finds a knee that is known, from below and from above.
func TestSearch(t *testing.T) {
	for _, knee := range []float64{0.5, 2, 49, 50, 51, 777, 30_000, 99_000} {
		s := newSearch(100 * time.Millisecond)
		for {
			rate, done := s.Next()
			if done {
				break
			}
			p99 := 0.01
			if rate > knee {
				p99 = 0.5
			}
			s.Took(Trial{Rate: rate, Planned: 1000, P99: p99})
		}
		if got := s.passed; knee >= 1 && (got > knee || got < knee/1.06) || knee < 1 && got != 0 || s.Limited() {
			t.Errorf("knee at %g: found %g in %d trials", knee, got, len(s.trials))
		}
	}
}

// What passed in short trials counts no more once a whole window did not: the search goes on below with whole ones.
func TestSearchDoubts(t *testing.T) {
	for _, knee := range []float64{30, 130, 390, 399} {
		s := newSearch(100 * time.Millisecond)
		to := 400.0 // where short trials end
		for {
			rate, done := s.Next()
			if done && s.whole {
				break
			}
			p99 := 0.01
			if done {
				rate = s.passed
			}
			if rate > to || (done || s.whole) && rate > knee {
				p99 = 0.5
			}
			if took := (Trial{Rate: rate, Planned: 1000, P99: p99}); done {
				s.Doubt(took)
			} else {
				s.Took(took)
			}
		}
		if got := s.passed; got > knee || got < knee/1.3 {
			t.Errorf("knee at %g: found %g: %+v", knee, got, s.trials)
		}
	}
}

func TestSearchEnds(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		s := newSearch(time.Second)
		for n := 0; ; n++ {
			rate, done := s.Next()
			if done {
				break
			}
			if n > s.MaxTrials || rate <= 0 || rate > MaxRate {
				t.Fatalf("trial %d at %g", n, rate)
			}
			s.Took(Trial{Rate: rate, Planned: uint64(random.IntN(3)), Failed: uint64(random.IntN(2)),
				P99: random.Float64() * 2, Limited: random.IntN(20) == 0})
		}
		if s.passed > 0 && s.failed > 0 && s.passed >= s.failed {
			t.Fatalf("%g passed, %g failed", s.passed, s.failed)
		}
	}
	limited := newSearch(time.Second)
	limited.Took(Trial{Rate: 50, Planned: 1, P99: 0.1})
	for range limitedAtMost {
		rate, done := limited.Next()
		if rate != 100 || done {
			t.Errorf("%g, %v", rate, done)
		}
		limited.Took(Trial{Rate: rate, Planned: 1, P99: 0.1, Limited: true})
	}
	if _, done := limited.Next(); !done || limited.passed != 50 || !limited.Limited() {
		t.Errorf("%+v", limited)
	}
}

// A server that does one thing at a time, for 10 ms each, cannot do more than 100 in a second: that is its knee.
func TestSearchServer(t *testing.T) {
	simulate(t, func(t *testing.T) {
		one := make(chan struct{}, 1)
		c := serve(t, &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			one <- struct{}{}
			time.Sleep(10 * time.Millisecond)
			<-one
		})})
		c.Window = 4 * time.Second
		r, search := found(t, c)
		if search.passed < 95 || search.passed > 110 || r.Total.OK == 0 {
			t.Errorf("the knee is at %g, %+v", search.passed, search.trials)
		}
	})
}

// found is what a search for 400 ms finds.
func found(t *testing.T, c Config) (Report, *search) {
	t.Helper()
	r, search, err := runSearch(t.Context(), c, 400*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	if search.Limited() {
		t.Fatalf("the generator was the limit: %+v", search.trials)
	}
	return r, search
}

// A server that is well for the time of a trial and not for a window: the rate that is found is one that holds.
func TestSearchHolds(t *testing.T) {
	simulate(t, func(t *testing.T) {
		const always = 250
		c := serve(t, tiring(always))
		c.Warmup, c.Window = 0, 2*time.Second
		r, search := found(t, c)
		if search.passed > 1.1*always || search.passed == 0 ||
			math.Abs(float64(r.Planned)-2*search.passed) > 2 || r.Total.OK != r.Planned {
			t.Errorf("the knee is at %g, measured were %d requests, %+v", search.passed, r.Planned, search.trials)
		}
	})
}

// tiring is a server that can do 1000 requests a second at first, and later fewer.
func tiring(always float64) *http.Server {
	const atFirst, long = 1000, 1200 * time.Millisecond
	var mu sync.Mutex
	var began time.Time
	n, open := 0, 0
	handler := func(http.ResponseWriter, *http.Request) {
		mu.Lock()
		n++
		since := time.Since(began)
		slow := float64(n) > 10+atFirst*since.Seconds() || since > long && float64(n) > always*since.Seconds()
		mu.Unlock()
		if slow {
			time.Sleep(500 * time.Millisecond)
		}
	}
	connState := func(_ net.Conn, state http.ConnState) {
		mu.Lock()
		defer mu.Unlock()
		switch state {
		case http.StateNew:
			if open++; open == 1 {
				began, n = time.Now(), 0 // the next trial
			}
		case http.StateClosed:
			open--
		}
	}
	return &http.Server{Handler: http.HandlerFunc(handler), ConnState: connState}
}
