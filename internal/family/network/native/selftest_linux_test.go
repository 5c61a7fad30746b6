package native

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/family/network"
	"github.com/knotmeter/knotmeter/internal/lab"
	"github.com/knotmeter/knotmeter/internal/lab/datapath"
	"github.com/knotmeter/knotmeter/internal/lab/labtarget"
	"github.com/knotmeter/knotmeter/internal/load/netload"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
)

func open(text string) (targets.Target, error) {
	spec, err := result.ParseSpec(text)
	if err != nil {
		return nil, err
	}
	const self = "/proc/self/exe"
	return labtarget.New(spec, lab.Config{Kit: datapath.Kit,
		Argv: []string{self, holderArgument}, Agent: []string{self, agentArgument}})
}

// measure runs one workload from node to node on a lab target.
func measure(t *testing.T, spec string, w netload.Spec) map[string]float64 {
	t.Helper()
	tg, err := open(spec)
	if err != nil {
		t.Fatal(err)
	}
	defer tg.Close()
	site, err := targets.OpenOne(t.Context(), tg, targets.Placement{Path: result.NodeNode})
	if err != nil {
		t.Fatal(err)
	}
	defer site.Close(context.WithoutCancel(t.Context()))
	if w, err = w.Resolved(); err != nil {
		t.Fatal(err)
	}
	times := family.Times{Warmup: w.Warmup, Window: w.Duration}
	m, err := New().Run(t.Context(), site.Pair, network.Workload{Spec: w}, times)
	if err != nil {
		t.Fatal(err)
	}
	return numbers(m.Values)
}

func numbers(values []result.Value) map[string]float64 {
	n := map[string]float64{}
	for _, v := range values {
		n[v.Metric] = v.Number
	}
	return n
}

// A reading is one measurement of a known quantity. It is contended if the machine had no spare CPU: software links
// then do not behave as configured, and the true value is unknown.
type reading struct {
	value     float64
	contended bool
}

// read returns the reading of a metric.
func read(n map[string]float64, metric string) reading {
	const busiest, steal = 0.8, 0.02 // the generator itself uses half of two CPUs at most
	return reading{n[metric], n["cpu-busy"] > busiest || n["cpu-steal"] > steal}
}

// A truth is the expected value with a relative tolerance.
type truth struct{ value, tolerance float64 }

// The median of this number of readings must be right. Contended ones do not count; at most maxReadings are taken.
const (
	readings    = 5
	maxReadings = 10
)

// judge reports whether the median of all readings is determined by those seen, and whether it is right.
func (want truth) judge(seen []float64) (decided, right bool) {
	const half = readings/2 + 1
	below, above, left := 0, 0, readings-len(seen)
	for _, v := range seen {
		switch off := v/want.value - 1; {
		case off < -want.tolerance:
			below++
		case !(off <= want.tolerance): // also NaN
			above++
		}
	}
	wrong := below >= half || above >= half
	right = below+left < half && above+left < half
	return wrong || right, right
}

// check takes readings until the median is decided.
func (want truth) check(t *testing.T, read func() reading) {
	t.Helper()
	var seen, contended []float64
	for len(seen)+len(contended) < maxReadings {
		r := read()
		if r.contended {
			contended = append(contended, r.value)
			continue
		}
		seen = append(seen, r.value)
		if decided, right := want.judge(seen); decided {
			if !right {
				t.Errorf("the median of %v is not within %.0f %% of %g", seen, 100*want.tolerance, want.value)
			}
			return
		}
	}
	t.Skipf("this machine has no CPU to spare: %v do not count, %v are too few to tell", contended, seen)
}

// TestJudge checks that one right reading is not enough, and that no more are taken than needed.
func TestJudge(t *testing.T) {
	for _, test := range []struct {
		seen           []float64
		decided, right bool
	}{
		{nil, false, false},
		{[]float64{100, 100}, false, false},
		{[]float64{100, 100.5, 99.5}, true, true},
		{[]float64{90, 90, 90}, true, false},
		{[]float64{110, 110, 110}, true, false},
		{[]float64{90, 90, 100, 110}, false, false},
		{[]float64{90, 90, 100, 110, 110}, true, true},
		{[]float64{90, 90, 100, 90}, true, false},
		{[]float64{100, 100, 90, 90, 90}, true, false},
		{[]float64{math.NaN(), math.NaN(), math.NaN()}, true, false},
	} {
		if decided, right := (truth{100, 0.01}).judge(test.seen); decided != test.decided || right != test.right {
			t.Errorf("%v: decided %t, right %t", test.seen, decided, right)
		}
	}
}

func TestAccuracyOfThroughput(t *testing.T) {
	for _, rate := range []float64{100e6, 1e9, 2e9} {
		t.Run(fmt.Sprintf("%.0fMbit", rate/1e6), func(t *testing.T) {
			truth{rate * payloadShare(1500), 0.01}.check(t, func() reading {
				w := netload.Spec{Kind: netload.TCPStream, Duration: 2 * time.Second, Warmup: 500 * time.Millisecond}
				return read(measure(t, fmt.Sprintf("lab:host?rate=%.0f", rate), w), "throughput")
			})
		})
	}
}

// TestAccuracyOfSearch checks that a search finds the rate of a link and that its window stays within the threshold,
// although the link's queue and the receive buffer hold the excess of a short trial.
func TestAccuracyOfSearch(t *testing.T) {
	for _, rate := range []float64{50e6, 200e6} {
		t.Run(fmt.Sprintf("%.0fMbit", rate/1e6), func(t *testing.T) {
			truth{rate * 1472 / 1514, 0.03}.check(t, func() reading {
				w := netload.Spec{Kind: netload.UDPStream, Duration: time.Second, Warmup: 200 * time.Millisecond}
				seen := measure(t, fmt.Sprintf("lab:host?rate=%.0f", rate), w)
				r := read(seen, "throughput")
				if loss := seen["loss"]; loss > 0.001 && !r.contended {
					t.Errorf("a window at %.0f datagrams per second lost %g", seen["offered"], loss)
				}
				return r
			})
		})
	}
}

func TestAccuracyOfRoundTrip(t *testing.T) {
	const delay = 10 * time.Millisecond
	p50 := func(d time.Duration) reading {
		w := netload.Spec{Kind: netload.TCPRR, Duration: time.Second, Warmup: 100 * time.Millisecond}
		return read(measure(t, fmt.Sprintf("lab:host?delay=%v", d), w), "p50")
	}
	truth{delay.Seconds(), 0.05}.check(t, func() reading {
		with, without := p50(delay), p50(0) // contention hardly affects the run without delay
		return reading{with.value - without.value, with.contended}
	})
}

// TestAccuracyOfLayers checks that the layers add up to the CPU time that the kernel accounts for.
func TestAccuracyOfLayers(t *testing.T) {
	p := pair(t, "127.0.0.1")
	w, err := netload.Spec{Kind: netload.TCPRR, Warmup: 200 * time.Millisecond, Duration: 2 * time.Second}.Resolved()
	if err != nil {
		t.Fatal(err)
	}
	m, err := do(t.Context(), New(), p, w)
	if err != nil {
		t.Fatal(err)
	}
	if why := fact(m, "layers.client"); why != "" {
		t.Skip(why)
	}
	sum := 0.0
	for _, v := range m.Values {
		if cost, _ := metric.Layer(v.Metric); cost == metric.CPUPerOp {
			sum += v.Number
		}
	}
	busy := number(t, m, metric.CPUBusy) * float64(runtime.NumCPU()) / number(t, m, metric.Rate)
	if sum < 0.95*busy || sum > 1.05*busy {
		t.Errorf("the layers add up to %.2f us per operation, of %.2f us that the machine was busy", sum*1e6, busy*1e6)
	}
}

func TestAccuracyOfLoss(t *testing.T) {
	const loss, rate = 0.01, 20000.0
	w := netload.Spec{
		Kind: netload.UDPStream, Size: 64, Rate: rate, Duration: 2 * time.Second, Warmup: 100 * time.Millisecond,
	}
	// The link drops datagrams at random, even on a busy machine. One time in a thousand the truth is outside of the
	// interval.
	truth{loss, lossInterval(loss, 2*rate) / loss}.check(t, func() reading {
		return reading{value: measure(t, fmt.Sprintf("lab:host?loss=%g", loss), w)["loss"]}
	})
}

// TestAccuracyChecks makes every check and accepts those that miss their truth: accuracy on a busy machine is covered
// by the other tests.
func TestAccuracyChecks(t *testing.T) {
	var checks []family.Check
	failed, err := New().Selftest(t.Context(), open, func(c family.Check) { checks = append(checks, c) })
	if err != nil {
		t.Fatal(err)
	}
	groups := map[string]int{}
	wrong := 0
	for _, c := range checks {
		groups[c.Group]++
		if c.Name == "" || c.Measured == "" {
			t.Errorf("a check says nothing: %+v", c)
		}
		if c.Expected != "" && !c.Passed {
			wrong++
		}
	}
	if groups["ceiling"] != 4 || groups["overhead"] != 1 || groups["accuracy"] != 4 {
		t.Errorf("made %v", groups)
	}
	if failed != wrong {
		t.Errorf("counted %d failures of %d", failed, wrong)
	}
}

func TestPayloadShare(t *testing.T) {
	if got, want := payloadShare(1500), 1448.0/1514.0; got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}
