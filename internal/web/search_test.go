package web

import (
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// The search finds a knee that is known, from below and from above.
func TestSearch(t *testing.T) {
	for _, knee := range []float64{0.5, 2, 49, 50, 51, 777, 30_000, 99_000} {
		s := NewSearch(100 * time.Millisecond)
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
		if got := s.Rate(); knee >= 1 && (got > knee || got < knee/1.06) || knee < 1 && got != 0 || s.Limited() {
			t.Errorf("knee at %g: found %g in %d trials", knee, got, len(s.Trials()))
		}
	}
}

func TestSearchEnds(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		s := NewSearch(time.Second)
		for n := 0; ; n++ {
			rate, done := s.Next()
			if done {
				break
			}
			if n > s.MaxTrials || rate <= 0 || rate > MaxRate {
				t.Fatalf("trial %d at %g", n, rate)
			}
			s.Took(Trial{Rate: rate, Planned: uint64(random.IntN(3)), Failed: uint64(random.IntN(2)), P99: random.Float64() * 2, Limited: random.IntN(20) == 0})
		}
		if s.Rate() > 0 && s.failed > 0 && s.Rate() >= s.failed {
			t.Fatalf("%g passed, %g failed", s.Rate(), s.failed)
		}
	}
	limited := NewSearch(time.Second)
	limited.Took(Trial{Rate: 50, Planned: 1, P99: 0.1})
	for range limitedAtMost {
		rate, done := limited.Next()
		if rate != 100 || done {
			t.Errorf("%g, %v", rate, done)
		}
		limited.Took(Trial{Rate: rate, Planned: 1, P99: 0.1, Limited: true})
	}
	if _, done := limited.Next(); !done || limited.Rate() != 50 || !limited.Limited() {
		t.Errorf("%+v", limited)
	}
}

// A server that does one thing at a time, for 10 ms each, cannot do 100 in a second; somewhere below is its knee.
func TestSearchServer(t *testing.T) {
	one := make(chan struct{}, 1)
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		one <- struct{}{}
		time.Sleep(10 * time.Millisecond)
		<-one
	}))
	defer s.Close()
	c := config(serverOf(s), get("/"))
	c.Window = 4 * time.Second
	r, search, err := RunSearch(t.Context(), c, 400*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	if search.Limited() {
		t.Skipf("this machine is too busy to generate load: %+v", search.Trials())
	}
	if search.Rate() < 25 || search.Rate() > 110 || r.Total.OK == 0 {
		t.Errorf("the knee is at %g, %+v", search.Rate(), search.Trials())
	}
}
