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
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets/targettest"
)

// A Model is a tool that measures nothing: its figures are drawn from a seeded model in which each
// label (the part of a host's name before "!", as with the twin of a target) has an effect and every run log-normal
// noise. So what an analysis must find is known. Fields are set before first use.
type Model struct {
	Called string  // its name; empty is "model"
	Starts string  // the program that it says it starts
	Seed   uint64  //
	Noise  float64 // standard deviation of the logarithm between runs, such as 0.03
	// Effects are factors on the cost of an operation: 1.2 is 20 % more latency, and throughput
	// divided by 1.2. A label that is not there has 1.
	Effects map[string]float64
	// Unsupported workloads, with the reason.
	Unsupported map[network.Kind]string
	// Fail is asked in every run, which are counted from 1; invalid is a failed gate.
	Fail func(call int, p host.Pair, w family.Workload) (invalid string, err error)
	// Wait stands for warm-up and window; nil ends at once, but for windows of a minute and more.
	Wait func(ctx context.Context, d time.Duration) error

	mu    sync.Mutex
	calls int
	rng   *rand.Rand
}

// Typical figures of a path without a pod network.
const (
	baseThroughput = 20e9  // bit/s
	baseUnloaded   = 0.05  // CPUs
	baseLatency    = 20e-6 // s
	baseConnect    = 80e-6 // s
	modelSamples   = 1000  // in each histogram
	sampleSpread   = 0.2   // standard deviation of the logarithm within a run
	endless        = time.Minute
)

// Name is Tool's.
func (m *Model) Name() string {
	if m.Called == "" {
		return "model"
	}
	return m.Called
}

// Supports is Tool's.
func (m *Model) Supports(w family.Workload) error {
	s, is := network.Timed(w, family.Times{})
	if reason, ok := m.Unsupported[s.Kind]; ok {
		return result.NotSupported(reason)
	}
	if !is || !slices.Contains(network.Kinds(), s.Kind) {
		return result.NotSupported(fmt.Sprintf("the model has no %s", w))
	}
	return nil
}

// Program is Tool's.
func (m *Model) Program(family.Workload) string { return m.Starts }

// Metrics is Tool's.
func (m *Model) Metrics(w family.Workload) []metric.Metric {
	switch s, _ := network.Timed(w, family.Times{}); {
	case s.Kind.Stream():
		return metric.Of("", metric.Throughput)
	case s.Kind == network.Idle:
		return metric.Of("", metric.CPUUnloaded)
	}
	return metric.Of("", metric.P50, metric.P99, metric.Rate)
}

// Calls is how often Run was called.
func (m *Model) Calls() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.calls
}

// Run is Tool's.
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
		return out, fmt.Errorf("from %s: connect to %s: nobody listens there", p.Client.Name(), p.Dial)
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
	if d < endless {
		return ctx.Err()
	}
	return targettest.Pause(ctx, d)
}

// measure draws the figures of a run.
func (m *Model) measure(out result.Measurement, p host.Pair, w network.Spec) (result.Measurement, error) {
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
	if w.Kind == network.Idle {
		out.Values = []result.Value{result.NewValue(metric.Named(metric.CPUUnloaded), baseUnloaded*factor)}
		return out, nil
	}
	latency := baseLatency
	if w.Kind == network.TCPCRR {
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
		// The median of the model and not of the samples, so that Effects is exactly what is between two labels.
		result.NewValue(metric.Named(metric.P50), median),
		result.NewValue(metric.Named(metric.P99), float64(h.ValueAtPercentile(99))/1e9),
		result.NewValue(metric.Named(metric.Rate), 1/median),
	}
	return out, nil
}
