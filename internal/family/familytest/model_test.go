package familytest

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/load/netload"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
	"github.com/knotmeter/knotmeter/internal/targets/targettest"
	"github.com/knotmeter/knotmeter/internal/unit"
)

func twinPair(t *testing.T, label string) (host.Pair, *targettest.Twin) {
	t.Helper()
	twin := &targettest.Twin{Label: label}
	site, err := targets.OpenOne(t.Context(), twin, targets.Placement{Path: result.PodPodOther})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := site.Close(context.Background()); err != nil { // t.Context has ended here
			t.Error(err)
		}
	})
	return site.Pair, twin
}

func TestModel(t *testing.T) {
	var twin *targettest.Twin
	Suite(t, Config{
		Tool: &Model{Seed: 1, Noise: 0.05, Unsupported: map[netload.Kind]string{netload.UDPRR: "this model has no UDP"}},
		Pair: func(t *testing.T) (p host.Pair) { p, twin = twinPair(t, "a"); return p },
		Running: func(*testing.T) []string {
			if twin == nil {
				return nil
			}
			return twin.Left()
		},
	})
}

// second holds the times of a run of 1 s.
var second = family.Times{Window: time.Second}

// TestModelEffect checks that the results of the model have the given effect, on which all tests with the model depend.
func TestModelEffect(t *testing.T) {
	m := &Model{Seed: 7, Noise: 0.03, Effects: map[string]float64{"slow": 1.25}}
	fast, _ := twinPair(t, "fast")
	slow, _ := twinPair(t, "slow")
	for _, kind := range []netload.Kind{netload.TCPStream, netload.TCPRR, netload.TCPCRR} {
		w := Network(t, netload.Spec{Kind: kind})
		var sum float64
		const n = 200
		for range n {
			a, err := m.Run(t.Context(), fast, w, second)
			if err != nil {
				t.Fatal(err)
			}
			b, err := m.Run(t.Context(), slow, w, second)
			if err != nil {
				t.Fatal(err)
			}
			sum += math.Log(b.Values[0].Number / a.Values[0].Number)
		}
		want := math.Log(1.25)
		if kind.Stream() {
			want = -want
		}
		// The mean of n differences has a standard error of 0.03 sqrt(2/n) = 0.003.
		if got := sum / n; math.Abs(got-want) > 0.015 {
			t.Errorf("%s: the effect is %.3f in the logarithm, wanted %.3f", kind, got, want)
		}
	}
}

func TestModelFails(t *testing.T) {
	broken := errors.New("broken")
	m := &Model{Fail: func(call int, _ host.Pair, _ family.Workload) (string, error) {
		switch call {
		case 1:
			return "the generator was late", nil
		case 2:
			return "", broken
		}
		return "", nil
	}}
	p, _ := twinPair(t, "a")
	w := Network(t, netload.Spec{Kind: netload.TCPRR})
	if got, err := m.Run(t.Context(), p, w, family.Times{}); err != nil || len(got.Invalid) != 1 {
		t.Errorf("first run: %v, %v", got.Invalid, err)
	}
	if got, err := m.Run(t.Context(), p, w, family.Times{}); !errors.Is(err, broken) || len(got.Raw) == 0 {
		t.Errorf("second run: %v, raw %d", err, len(got.Raw))
	}
	if got, err := m.Run(t.Context(), p, w, family.Times{}); err != nil || len(got.Invalid) != 0 || m.Calls() != 3 {
		t.Errorf("third run: %v, %v, calls %d", got.Invalid, err, m.Calls())
	}
}

// TestCheckFinds checks that Check finds each problem of a measurement.
func TestCheckFinds(t *testing.T) {
	w := Network(t, netload.Spec{Kind: netload.TCPRR})
	good := func() result.Measurement {
		p, _ := twinPair(t, "a")
		m, err := (&Model{}).Run(t.Context(), p, w, second)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	if problems := Check(w, good()); len(problems) != 0 {
		t.Fatalf("a good measurement: %v", problems)
	}
	for _, test := range []struct {
		spoil func(*result.Measurement)
		want  string
	}{
		{func(m *result.Measurement) { m.Values = nil }, "there is no p50"},
		{func(m *result.Measurement) { m.Values[0].Number = math.NaN() }, "p50 is NaN"},
		{func(m *result.Measurement) { m.Values[0].Number = 0 }, "p50 is 0"},
		{func(m *result.Measurement) { m.Values[0].Unit = "us" }, "not a base unit"},
		{func(m *result.Measurement) { m.Values[0].Better = metric.Higher }, "better"},
		{func(m *result.Measurement) { m.Values[1] = m.Values[0] }, "there twice"},
		{func(m *result.Measurement) { m.Values[0].Unit = unit.BitPerSecond }, "bit/s"},
		{func(m *result.Measurement) { m.Histograms[0].Count++ }, "holds 1000 and says 1001"},
		{func(m *result.Measurement) { m.Histograms[0].Encoded = "x" }, "histogram latency"},
		{func(m *result.Measurement) { m.Series = []result.Series{{Name: "p50"}} }, "series"},
		{func(m *result.Measurement) { m.Raw = nil }, "exact commands"},
		{func(m *result.Measurement) { m.Raw[0].Name = "../commands" }, "plain name"},
		{func(m *result.Measurement) { m.Facts[0].Value = "" }, "fact"},
		{func(m *result.Measurement) { m.Warnings = []result.Warning{{Code: "stop", Text: "Stop."}} }, "full stop"},
		{func(m *result.Measurement) { m.Window = math.Inf(1) }, "window"},
	} {
		m := good()
		test.spoil(&m)
		if problems := strings.Join(Check(w, m), "\n"); !strings.Contains(problems, test.want) {
			t.Errorf("wanted %q, found %q", test.want, problems)
		}
	}
}
