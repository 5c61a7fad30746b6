package familytest

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/family/network"
	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/load/netload"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets/targettest"
)

// A Model is a tool that measures nothing. It draws its results from a seeded model with log-normal noise between runs
// and an effect of each label (the part of a host's name before "!", by which the twins of package targettest name
// their hosts), so that tests know what an analysis must find. Fields are set before first use.
type Model struct {
	Called string  // name of the tool; empty means "model"
	Starts string  // what Program returns
	Seed   uint64  // of the random numbers
	Noise  float64 // standard deviation of the logarithm between runs, such as 0.03
	// Effects holds factors on the cost of an operation, by label: 1.2 is 20 % more latency, and throughput divided by
	// 1.2. A missing label has 1.
	Effects map[string]float64
	// Unsupported holds the reasons why kinds are not supported.
	Unsupported map[netload.Kind]string
	// Fail is called in every run, with the number of the run from 1. The run is invalid if the returned reason is not
	// empty.
	Fail func(call int, p host.Pair, w family.Workload) (invalid string, err error)
	// Wait replaces the waiting for warm-up and window. If it is nil, a run of less than a minute ends at once, and a
	// longer one waits.
	Wait func(ctx context.Context, d time.Duration) error

	mu    sync.Mutex
	calls int
	rng   *rand.Rand
}

// Typical results of a path without a pod network.
const (
	baseThroughput = 20e9        // bit/s
	baseUnloaded   = 0.05        // CPUs
	baseLatency    = 20e-6       // s
	baseConnect    = 80e-6       // s
	modelSamples   = 1000        // in each histogram
	sampleSpread   = 0.2         // standard deviation of the logarithm within a run
	waitFrom       = time.Minute // runs of at least this length wait
)

// Name implements family.Tool.
func (m *Model) Name() string {
	if m.Called == "" {
		return "model"
	}
	return m.Called
}

// Supports implements family.Tool.
func (m *Model) Supports(w family.Workload) error {
	s, is := network.Timed(w, family.Times{})
	if reason, ok := m.Unsupported[s.Kind]; ok {
		return result.NotSupported(reason)
	}
	if !is || !slices.Contains(netload.Kinds(), s.Kind) {
		return result.NotSupported(fmt.Sprintf("the model has no %s", w))
	}
	return nil
}

// Program implements family.Tool.
func (m *Model) Program(family.Workload) string { return m.Starts }

// Metrics implements family.Tool.
func (m *Model) Metrics(w family.Workload) []metric.Metric {
	switch s, _ := network.Timed(w, family.Times{}); {
	case s.Kind.Stream():
		return metric.Of("", metric.Throughput)
	case s.Kind == netload.Unloaded:
		return metric.Of("", metric.CPUUnloaded)
	}
	return metric.Of("", metric.P50, metric.P99, metric.Rate)
}

// Calls returns how often Run was called.
func (m *Model) Calls() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.calls
}

// Run implements family.Tool.
func (m *Model) Run(ctx context.Context, p host.Pair, w family.Workload, t family.Times) (result.Measurement, error) {
	if err := m.Supports(w); err != nil {
		return result.Measurement{}, err
	}
	m.mu.Lock()
	m.calls++
	call := m.calls
	m.mu.Unlock()
	command := fmt.Sprintf("%s %s %s\n", m.Name(), w.Traits().Kind, p.Dial)
	out := result.Measurement{Raw: []result.File{{Name: "commands.txt", Data: []byte(command)}}}
	if p.Dial.Port() != p.Listen.Port() {
		return out, fmt.Errorf("from %s: connect to %s: nothing listens there", p.Client.Name(), p.Dial)
	}
	if m.Fail != nil {
		invalid, err := m.Fail(call, p, w)
		if err != nil {
			return out, err
		}
		if invalid != "" {
			out.Invalid = []result.Warning{{Code: result.GeneratorLate, Text: invalid}}
		}
	}
	if err := m.wait(ctx, t.Total()); err != nil {
		return out, err
	}
	s, _ := network.Timed(w, t)
	return m.measure(out, p, s)
}

func (m *Model) wait(ctx context.Context, d time.Duration) error {
	if m.Wait != nil {
		return m.Wait(ctx, d)
	}
	if d < waitFrom {
		return ctx.Err()
	}
	return targettest.Pause(ctx, d)
}

// measure draws the results of a run.
func (m *Model) measure(out result.Measurement, p host.Pair, w netload.Spec) (result.Measurement, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.rng == nil {
		m.rng = rand.New(rand.NewPCG(m.Seed, 0))
	}
	factor := math.Exp(m.Noise * m.rng.NormFloat64())
	if e := m.Effects[targettest.Label(p.Client)]; e > 0 {
		factor *= e
	}
	out.Window = w.Duration.Seconds()
	out.Facts = []result.Fact{{Name: "tool.version", Value: "model"}}
	if w.Kind.Stream() {
		v := result.NewValue(metric.Named(metric.Throughput), baseThroughput/factor)
		out.Values = []result.Value{v}
		out.Series = []result.Series{{Name: v.Metric, Unit: v.Unit, Step: 0.1, Values: []float64{v.Number, v.Number}}}
		return out, nil
	}
	if w.Kind == netload.Unloaded {
		out.Values = []result.Value{result.NewValue(metric.Named(metric.CPUUnloaded), baseUnloaded*factor)}
		return out, nil
	}
	latency := baseLatency
	if w.Kind == netload.TCPCRR {
		latency = baseConnect
	}
	return m.latencies(out, latency*factor)
}

func (m *Model) latencies(out result.Measurement, median float64) (result.Measurement, error) {
	h := hdrhistogram.New(1, int64(time.Minute), 3)
	for range modelSamples {
		if err := h.RecordValue(int64(1e9 * median * math.Exp(sampleSpread*m.rng.NormFloat64()))); err != nil {
			return out, err
		}
	}
	code, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		return out, err
	}
	out.Histograms = []result.Histogram{{Name: metric.Latency, Unit: "ns", Count: h.TotalCount(), Encoded: string(code)}}
	out.Values = []result.Value{
		// The median of the model, not of the samples, so that the difference between two labels is exactly Effects.
		result.NewValue(metric.Named(metric.P50), median),
		result.NewValue(metric.Named(metric.P99), float64(h.ValueAtPercentile(99))/1e9),
		result.NewValue(metric.Named(metric.Rate), 1/median),
	}
	return out, nil
}
