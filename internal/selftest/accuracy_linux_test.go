package selftest_test

import (
	"context"
	"fmt"
	"math"
	"os"
	"testing"
	"time"

	"github.com/knotmeter/knotmeter/internal/agent"
	"github.com/knotmeter/knotmeter/internal/lab"
	"github.com/knotmeter/knotmeter/internal/lab/datapath/host"
	"github.com/knotmeter/knotmeter/internal/lab/nft"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/selftest"
	"github.com/knotmeter/knotmeter/internal/target"
	"github.com/knotmeter/knotmeter/internal/target/lab"
	"github.com/knotmeter/knotmeter/internal/tool/native"
	"github.com/knotmeter/knotmeter/internal/workload"
)

const (
	holdArg  = "lab-holder"
	agentArg = "agent"
)

func kit() lab.Kit {
	return lab.Kit{Datapaths: []lab.Datapath{host.New()}, Services: []lab.Services{nft.Services{}}}
}

func TestMain(m *testing.M) {
	var err error
	switch {
	case len(os.Args) > 1 && os.Args[1] == holdArg:
		err = lab.Hold(kit())
	case len(os.Args) > 1 && os.Args[1] == agentArg:
		err = agent.Main(context.Background(), os.Stdin, os.Stdout, os.Stderr)
	default:
		os.Exit(m.Run())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func open(text string) (target.Target, error) {
	spec, err := target.ParseSpec(text)
	if err != nil {
		return nil, err
	}
	const self = "/proc/self/exe"
	return labtarget.New(spec, lab.Config{Kit: kit(), Argv: []string{self, holdArg}, Agent: []string{self, agentArg}})
}

// measure does one workload from node to node on a lab.
func measure(t *testing.T, spec string, w workload.Spec) map[string]float64 {
	t.Helper()
	tg, err := open(spec)
	if err != nil {
		t.Fatal(err)
	}
	defer tg.Close()
	site, err := tg.Open(t.Context(), target.Placement{Path: target.NodeNode})
	if err != nil {
		t.Fatal(err)
	}
	defer site.Close(context.WithoutCancel(t.Context()))
	if w, err = w.Resolved(); err != nil {
		t.Fatal(err)
	}
	m, err := native.New().Run(t.Context(), site.Pair, w)
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

// within tries until the value is as near to the truth as it must be. A machine that is busy with
// something else makes single measurements wrong; a generator that is wrong makes all of them so.
func within(t *testing.T, truth, tolerance float64, try func() float64) {
	t.Helper()
	const tries = 8
	var seen []float64
	for range tries {
		v := try()
		if math.Abs(v/truth-1) <= tolerance {
			return
		}
		seen = append(seen, v)
	}
	t.Errorf("never within %.0f %% of %g: %v", 100*tolerance, truth, seen)
}

func TestThroughputOfALinkOfKnownRate(t *testing.T) {
	for _, rate := range []float64{100e6, 1e9, 2e9} {
		t.Run(fmt.Sprintf("%.0fMbit", rate/1e6), func(t *testing.T) {
			within(t, rate*selftest.PayloadShare(1500), 0.01, func() float64 {
				w := workload.Spec{Kind: workload.TCPStream, Duration: 2 * time.Second, Warmup: 500 * time.Millisecond}
				return measure(t, fmt.Sprintf("lab:host?rate=%.0f", rate), w)["throughput"]
			})
		})
	}
}

func TestRoundTripOverAKnownDelay(t *testing.T) {
	const delay = 10 * time.Millisecond
	p50 := func(d time.Duration) float64 {
		w := workload.Spec{Kind: workload.TCPRR, Duration: time.Second, Warmup: 100 * time.Millisecond}
		return measure(t, fmt.Sprintf("lab:host?delay=%v", d), w)["p50"]
	}
	within(t, delay.Seconds(), 0.05, func() float64 { return p50(delay) - p50(0) })
}

func TestKnownLoss(t *testing.T) {
	const loss, rate = 0.01, 20000.0
	w := workload.Spec{Kind: workload.UDPStream, Size: 64, Rate: rate, Duration: 2 * time.Second, Warmup: 100 * time.Millisecond}
	// One time in a thousand the truth lies outside of the interval, and a busy machine loses more
	// than the link does.
	within(t, loss, selftest.LossInterval(loss, 2*rate)/loss, func() float64 {
		return measure(t, fmt.Sprintf("lab:host?loss=%g", loss), w)["loss"]
	})
}

// TestSelftest makes every check, and lets those that compare with a truth fail: how near a busy
// machine comes to it is the other tests' matter.
func TestSelftest(t *testing.T) {
	var checks []selftest.Check
	b := selftest.Bench{Lab: open, Tool: native.New(), Report: func(c selftest.Check) { checks = append(checks, c) }}
	failed, err := b.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	groups := map[string]int{}
	wrong := 0
	for _, c := range checks {
		groups[c.Group]++
		if c.Name == "" || c.Saw == "" {
			t.Errorf("a check says nothing: %+v", c)
		}
		if c.Truth != "" && !c.Passed {
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
	if got, want := selftest.PayloadShare(1500), 1448.0/1514.0; got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}
