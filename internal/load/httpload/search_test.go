package httpload

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// TestSearch checks that the search finds a known knee from below and from above.
func TestSearch(t *testing.T) {
	for _, knee := range []float64{0.5, 2, 49, 50, 51, 777, 30_000, 99_000} {
		s := newSearch(100*time.Millisecond, 1)
		for {
			rate, done := s.Next()
			if done {
				break
			}
			p99 := 0.01
			if rate > knee {
				p99 = 0.5
			}
			s.Record(Trial{Rate: rate, Planned: 1000, P99: p99})
		}
		if got := s.passed; knee >= 1 && (got > knee || got < knee/1.012) || knee < 1 && got != 0 || s.Limited() {
			t.Errorf("knee at %g: found %g in %d trials", knee, got, len(s.trials))
		}
	}
}

// TestSearchDoubts checks that short trials no longer count after a whole window failed, and that the search continues
// at lower rates with whole windows.
func TestSearchDoubts(t *testing.T) {
	for _, knee := range []float64{30, 130, 390, 399} {
		s := newSearch(100*time.Millisecond, 1)
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
				s.Reject(took)
			} else {
				s.Record(took)
			}
		}
		if got := s.passed; got > knee || got < knee/1.3 {
			t.Errorf("knee at %g: found %g: %+v", knee, got, s.trials)
		}
	}
}

// rateOf returns the rate that a search finds on a server with a knee.
func rateOf(knee float64, seed uint64) result.Value {
	s := newSearch(100*time.Millisecond, seed)
	for {
		rate, done := s.Next()
		if done {
			return result.Value{Metric: metric.Rate, Unit: unit.PerSecond, Better: metric.Higher,
				Number: s.passed, Step: s.Step()}
		}
		t := Trial{Rate: rate, Planned: 1000, P99: 0.01}
		if rate > knee {
			t.P99 = 0.5
		}
		s.Record(t)
	}
}

// A verdictCount counts the verdicts of experiments on two servers.
type verdictCount struct {
	different, exceeds, equivalent int // exceeds: those different by more than delta
}

// countVerdicts compares two servers in experiments of 11 blocks with a delta of 2 %. find returns the value that a
// search of server 0 or 1 finds with a seed.
func countVerdicts(t *testing.T, experiments int, find func(server int, seed uint64) result.Value) verdictCount {
	t.Helper()
	var n verdictCount
	const blocks = 11
	e := result.Experiment{ID: "searches", Baseline: "a", Targets: []result.Target{{Name: "a"}, {Name: "b"}},
		Cases:  []result.Case{{Name: "search", Role: result.Primary, Metric: metric.Rate}},
		Design: result.Design{Blocks: blocks, Alpha: 0.05, Delta: 0.02}}
	for experiment := range experiments {
		var runs []result.Run
		for block := range blocks {
			for server, target := range e.Targets {
				r := result.Run{Case: "search", Target: target.Name, Block: block + 1, Attempt: 1, Slot: server + 1}
				r.ID = fmt.Sprint(r.Target, r.Block)
				r.Values = []result.Value{find(server, uint64(1000*experiment+2*block+server))}
				runs = append(runs, r)
			}
		}
		compared, err := compare.Compare(result.Results{Experiment: e, Runs: runs})
		if err != nil {
			t.Fatal(err)
		}
		switch row := compared.Comparisons[0]; {
		case row.Verdict == compare.Different:
			n.different++
			if row.CI.Lo > compared.Delta || row.CI.Hi < -compared.Delta {
				n.exceeds++
			}
		case row.Verdict == compare.Equivalent:
			n.equivalent++
		}
	}
	return n
}

// TestKneesAreResolved compares servers whose knees are known, in experiments of 11 blocks. It checks that a difference
// of twice delta is never equivalent and mostly found, and that a tenth of delta never exceeds delta. With a fixed grid
// of rates neither would hold, for knees between the same two rates and for knees on either side of one.
func TestKneesAreResolved(t *testing.T) {
	const experiments = 40
	for _, c := range []struct {
		knees [2]float64
		apart bool
	}{{[2]float64{500.5, 520.8}, true}, {[2]float64{524.5, 525.5}, false}} {
		n := countVerdicts(t, experiments, func(server int, seed uint64) result.Value {
			return rateOf(c.knees[server], seed)
		})
		t.Logf("%g: %+v", c.knees, n)
		if c.apart && (n.equivalent > 0 || n.different < experiments*9/10) ||
			!c.apart && (n.exceeds > 0 || n.equivalent < experiments*9/10) {
			t.Errorf("%g: of %d: %+v", c.knees, experiments, n)
		}
	}
}

func TestSearchEnds(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		s := newSearch(time.Second, 1)
		for n := 0; ; n++ {
			rate, done := s.Next()
			if done {
				break
			}
			if n > s.MaxTrials || rate <= 0 || rate > MaxRate {
				t.Fatalf("trial %d at %g", n, rate)
			}
			s.Record(Trial{Rate: rate, Planned: uint64(random.IntN(3)), Failed: uint64(random.IntN(2)),
				P99: random.Float64() * 2, Limited: random.IntN(20) == 0})
		}
		if s.passed > 0 && s.failed > 0 && s.passed >= s.failed {
			t.Fatalf("%g passed, %g failed", s.passed, s.failed)
		}
	}
	limited := newSearch(time.Second, 1)
	limited.Record(Trial{Rate: limited.Start, Planned: 1, P99: 0.1})
	for range maxLimited {
		rate, done := limited.Next()
		if rate != 2*limited.Start || done {
			t.Errorf("%g, %v", rate, done)
		}
		limited.Record(Trial{Rate: rate, Planned: 1, P99: 0.1, Limited: true})
	}
	if _, done := limited.Next(); !done || limited.passed != limited.Start || !limited.Limited() {
		t.Errorf("%+v", limited)
	}
}

// TestSearchServer checks that a server that handles one request at a time, for 10 ms each, has its knee at 100
// requests per second.
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

// found runs a search for a 99th percentile of 400 ms.
func found(t *testing.T, c Config) (Report, *search) {
	t.Helper()
	c.Knee = 400 * time.Millisecond
	r, search, err := runSearch(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if search.Limited() {
		t.Fatalf("the generator was the limit: %+v", search.trials)
	}
	return r, search
}

// TestSearchHolds checks that the search finds a lasting rate of a server that keeps up for a trial but not for a
// window.
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

// tiring returns a server that handles 1000 requests per second at first, and later fewer.
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
				began, n = time.Now(), 0 // the next trial begins
			}
		case http.StateClosed:
			open--
		}
	}
	return &http.Server{Handler: http.HandlerFunc(handler), ConnState: connState}
}
