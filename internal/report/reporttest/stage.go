package reporttest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
)

// Experiment is one of the network suite by the native tool, its cases still missing.
func Experiment(id string, seed uint64, targets []result.Target, d result.Design) result.Experiment {
	d.Kind, d.Duration, d.Warmup, d.Alpha, d.Delta = "randomised complete blocks", 1, 0.2, 0.05, 0.02
	return result.Experiment{
		Schema: result.ExperimentSchema, ID: id, Created: time.Date(2026, 11, 21, 14, 5, 0, 0, time.UTC),
		Version: "v0.1.0", Seed: seed, Suite: "network", Tool: "native",
		Baseline: targets[0].Name, Targets: targets, Design: d, NotMeasured: []result.NotMeasured{},
	}
}

// Targets are targets whose names are their specs.
func Targets(specs ...string) []result.Target {
	var list []result.Target
	for _, s := range specs {
		list = append(list, result.Target{Name: s, Spec: s, Underlay: "one"})
	}
	return list
}

// Case is a workload on a path, measured for its throughput or its median latency.
func Case(path, workload string) result.Case {
	c := result.Case{Name: path + "/" + workload, Path: path, Workload: workload,
		Role: result.Exploratory, Metric: metric.P50}
	if strings.HasSuffix(workload, "-stream") {
		c.Metric = metric.Throughput
	}
	return c
}

// Facts are those of a target.
func Facts(mtu, datapath string) []result.Fact {
	return []result.Fact{
		{Name: "kernel", Value: "6.18.2"}, {Name: "cpu.model", Value: "AMD EPYC 7B13"}, {Name: "cpu.count", Value: "2"},
		{Name: "cpu.governor", Value: result.Unknown}, {Name: "mtu", Value: mtu}, {Name: "datapath", Value: datapath},
		{Name: "tcp.congestion", Value: "cubic"}, {Name: "virtualisation", Value: "kvm"},
	}
}

// A Stage is where the runs of a block take place: it has the runs and sites of all blocks so far, and the clock.
type Stage struct {
	Random *rand.Rand
	Runs   []result.Run
	Sites  []result.Site
	clock  time.Time
	open   map[string]int // sites of the block, by target
}

// NewStage is one on which nothing has happened.
func NewStage(e result.Experiment, seed uint64) *Stage {
	return &Stage{Random: rand.New(rand.NewPCG(e.Seed, seed)), clock: e.Created.Add(2 * time.Second)}
}

// Next fills in what is known of the next run of a case before it measures.
func (s *Stage) Next(c result.Case, r *result.Run) {
	r.Schema, r.ID, r.Case = result.RunSchema, fmt.Sprintf("r%05d", len(s.Runs)+1), c.Name
	r.Tool, r.Start, r.Site, r.Window = "native", s.clock, s.open[r.Target], 1
}

// Record ends a run.
func (s *Stage) Record(r *result.Run) {
	s.clock = r.End()
	s.Runs = append(s.Runs, *r)
}

// Add gives a run a value.
func Add(r *result.Run, name string, v float64) {
	r.Values = append(r.Values, result.NewValue(metric.Named(name), v))
}

// Noise is a factor around 1, of which the logarithm has a standard deviation.
func (s *Stage) Noise(deviation float64) float64 { return math.Exp(s.Random.NormFloat64() * deviation) }

// Latencies gives a run the histogram of some samples, each counted several times, and its percentiles. The typical one
// is the least; one in a hundred takes several times as long.
func (s *Stage) Latencies(r *result.Run, typical, spread float64, samples, weight int) error {
	h := hdrhistogram.New(1, 60e9, 3)
	for range samples {
		ns := typical * 1e9 * math.Exp(math.Abs(s.Random.NormFloat64())*spread)
		if s.Random.Float64() < 0.01 {
			ns *= 2 + 6*s.Random.Float64()
		}
		if err := h.RecordValues(int64(ns), int64(weight)); err != nil {
			return fmt.Errorf("build a histogram: %w", err)
		}
	}
	for _, name := range []string{metric.P50, metric.P90, metric.P99} {
		Add(r, name, float64(h.ValueAtQuantile(100*metric.Quantile(name)))/1e9)
	}
	encoded, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		return fmt.Errorf("encode a histogram: %w", err)
	}
	r.Histograms = []result.Histogram{{Name: metric.Latency, Unit: "ns", Count: h.TotalCount(), Encoded: string(encoded)}}
	return nil
}

// Begin opens the sites of a block at the same time.
func (s *Stage) Begin(block int, targets ...string) {
	s.open = map[string]int{}
	ready := s.clock
	for i, target := range targets {
		site := result.Site{
			Schema: result.SiteSchema, Number: len(s.Sites) + 1, Target: target, Block: block, Start: s.clock,
			Setup: 0.5 + 0.05*float64((i+block)%4), Cleanup: 0.1 + 0.02*float64(block%3),
		}
		if strings.HasPrefix(target, "kube:") {
			site.Setup, site.Cleanup = 6*site.Setup, 10*site.Cleanup
			site.Values = []result.Value{
				result.NewValue(metric.Named(metric.Pods), 4), result.NewValue(metric.Named(metric.APICalls), 30),
			}
		}
		if end := site.End(); end.After(ready) {
			ready = end
		}
		s.open[target] = site.Number
		s.Sites = append(s.Sites, site)
	}
	s.clock = ready
}

// End closes them at the same time.
func (s *Stage) End() {
	began, gone := s.clock, s.clock
	for _, number := range s.open {
		site := &s.Sites[number-1]
		site.Used = began.Sub(site.Start).Seconds() - site.Setup
		if end := site.End(); end.After(gone) {
			gone = end
		}
	}
	s.clock = gone
}
