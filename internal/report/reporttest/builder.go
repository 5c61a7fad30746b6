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

// Experiment returns an experiment of the network suite with the native tool, without cases.
func Experiment(id string, seed uint64, targets []result.Target, d result.Design) result.Experiment {
	d.Kind, d.Duration, d.Warmup, d.Alpha, d.Delta = "randomised complete blocks", 1, 0.2, 0.05, 0.02
	return result.Experiment{
		Schema: result.ExperimentSchema, ID: id, Created: time.Date(2026, 11, 21, 14, 5, 0, 0, time.UTC),
		Version: "v0.1.0", Seed: seed, Suite: "network", Tool: "native",
		Baseline: targets[0].Name, Targets: targets, Design: d, NotMeasured: []result.NotMeasured{},
	}
}

// Targets returns targets whose names are their specs.
func Targets(specs ...string) []result.Target {
	var list []result.Target
	for _, s := range specs {
		list = append(list, result.Target{Name: s, Spec: result.SpecOf(s), Underlay: "one"})
	}
	return list
}

// Case returns a workload on a path, measured by its throughput or its median latency.
func Case(path result.Path, workload string) result.Case {
	c := result.Case{Name: string(path) + "/" + workload, Path: path, Workload: workload,
		Role: result.Exploratory, Metric: metric.P50}
	if strings.HasSuffix(workload, "-stream") {
		c.Metric = metric.Throughput
	}
	return c
}

// Facts returns the facts of a target.
func Facts(mtu, datapath string) []result.Fact {
	return []result.Fact{
		{Name: "kernel", Value: "6.18.2"}, {Name: "cpu.model", Value: "AMD EPYC 7B13"}, {Name: "cpu.count", Value: "2"},
		{Name: "cpu.governor", Value: result.Unknown}, {Name: "mtu", Value: mtu}, {Name: "datapath", Value: datapath},
		{Name: "tcp.congestion", Value: "cubic"}, {Name: "virtualisation", Value: "kvm"},
	}
}

// A Builder adds the runs of one block after another. It holds the runs and sites so far, and the clock.
type Builder struct {
	Random *rand.Rand
	Runs   []result.Run
	Sites  []result.Site
	clock  time.Time
	open   map[string]int // numbers of the open sites, by target
}

// NewBuilder returns a builder without runs. The experiment's seed and seed determine its random numbers.
func NewBuilder(e result.Experiment, seed uint64) *Builder {
	return &Builder{Random: rand.New(rand.NewPCG(e.Seed, seed)), clock: e.Created.Add(2 * time.Second)}
}

// Next fills in the fields of the next run of a case that are known before it measures.
func (s *Builder) Next(c result.Case, r *result.Run) {
	r.Schema, r.ID, r.Case = result.RunSchema, fmt.Sprintf("r%05d", len(s.Runs)+1), c.Name
	r.Tool, r.Start, r.Site, r.Window = "native", s.clock, s.open[r.Target], 1
}

// Record ends a run and keeps it.
func (s *Builder) Record(r *result.Run) {
	s.clock = r.End()
	s.Runs = append(s.Runs, *r)
}

// Add adds a value to a run.
func Add(r *result.Run, name string, v float64) {
	r.Values = append(r.Values, result.NewValue(metric.Named(name), v))
}

// Noise returns a random factor around 1, whose logarithm has a standard deviation of deviation.
func (s *Builder) Noise(deviation float64) float64 {
	return math.Exp(s.Random.NormFloat64() * deviation)
}

// Latencies adds to a run a histogram of random samples, each counted weight times, and its percentiles. The smallest
// latency is typical seconds; one in a hundred is several times as long.
func (s *Builder) Latencies(r *result.Run, typical, spread float64, samples, weight int) error {
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
func (s *Builder) Begin(block int, targets ...string) {
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

// End closes the sites of the block at the same time.
func (s *Builder) End() {
	began, ended := s.clock, s.clock
	for _, number := range s.open {
		site := &s.Sites[number-1]
		site.Used = began.Sub(site.Start).Seconds() - site.Setup
		if end := site.End(); end.After(ended) {
			ended = end
		}
	}
	s.clock = ended
}
