package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/store"
)

// syntheticWorkloads are the workloads on each path, and syntheticTargets is the number of targets.
var syntheticWorkloads = []string{"tcp-stream", "udp-stream", "tcp-rr", "udp-rr", "tcp-crr", "tcp-rr-loaded"}

const syntheticTargets = 6

// synthesise writes a results directory with at least this many runs: nine paths, six workloads and six targets in
// whole blocks. One run in a hundred is invalid, and its block is repeated.
func synthesise(ctx context.Context, dir string, runs int) error {
	for _, d := range []string{store.FactsDir, store.RawDir} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			return err
		}
	}
	e := syntheticExperiment(runs)
	for _, t := range e.Targets {
		facts := []result.Fact{{Name: "kernel", Value: "6.18.2"},
			{Name: "pod-mtu", Value: "1450"}, {Name: "name", Value: t.Name}}
		if err := writeJSON(filepath.Join(dir, store.FactsDir, store.SafeName(t.Name)+".json"), facts); err != nil {
			return err
		}
	}
	file, err := os.Create(filepath.Join(dir, store.RunsFile))
	if err != nil {
		return err
	}
	defer file.Close()
	s := &synthesis{
		dir: dir, out: bufio.NewWriterSize(file, 1<<20), random: rand.New(rand.NewPCG(1, 2)), clock: e.Created,
		histogram: hdrhistogram.New(1, 60e9, 3),
	}
	for block := 1; block <= e.Design.Blocks; block++ {
		for _, c := range e.Cases {
			if err := s.block(ctx, e, c, block); err != nil {
				return err
			}
		}
	}
	if err := s.out.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "%d runs in %s\n", s.runs, dir)
	return writeJSON(filepath.Join(dir, store.ExperimentFile), e)
}

func writeJSON(path string, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

func syntheticExperiment(runs int) result.Experiment {
	e := result.Experiment{
		Schema: result.ExperimentSchema, ID: "made-up",
		Created: time.Date(2026, 12, 1, 10, 0, 0, 0, time.UTC), Version: "bench", Seed: 1,
		Suite: "network", Tool: "native", NotMeasured: []result.NotMeasured{},
		Design: result.Design{Kind: "randomised complete blocks", Duration: 1, Warmup: 0.2, Alpha: 0.05, Delta: 0.02},
	}
	for i := range syntheticTargets {
		name := fmt.Sprintf("kube:cluster-%d", i+1)
		e.Targets = append(e.Targets, result.Target{Name: name, Spec: result.SpecOf(name)})
	}
	e.Baseline = e.Targets[0].Name
	for _, path := range result.Paths() {
		for _, w := range syntheticWorkloads {
			c := result.Case{Name: string(path) + "/" + w, Role: result.Exploratory, Metric: metric.P50}
			if strings.HasSuffix(w, "-stream") {
				c.Metric = metric.Throughput
			}
			if path == result.PodPodOther {
				c.Role = result.Primary
			}
			e.Cases = append(e.Cases, c)
		}
	}
	perBlock := len(e.Cases) * syntheticTargets
	e.Design.Blocks = (runs + perBlock - 1) / perBlock
	return e
}

// A synthesis adds synthetic runs to a results directory.
type synthesis struct {
	dir       string
	out       *bufio.Writer
	random    *rand.Rand
	clock     time.Time
	histogram *hdrhistogram.Histogram
	runs      int
}

// block adds the runs of a case in a block, and repeats them while one is invalid.
func (s *synthesis) block(ctx context.Context, e result.Experiment, c result.Case, block int) error {
	for attempt := 1; ; attempt++ {
		valid := true
		for slot, i := range s.random.Perm(len(e.Targets)) {
			if err := ctx.Err(); err != nil {
				return err
			}
			r := result.Run{Case: c.Name, Target: e.Targets[i].Name, Block: block, Attempt: attempt, Slot: slot + 1}
			if attempt == 1 && s.random.IntN(100) == 0 {
				valid = false
				r.Invalid = []result.Warning{{Code: result.GeneratorLate,
					Text: "the generator was late by more than 1 ms in 3 % of the window"}}
			}
			if err := s.run(r, 1+0.1*float64(i)); err != nil {
				return err
			}
		}
		if valid {
			return nil
		}
	}
}

// run appends a run with random values, slower than the fastest target by a factor.
func (s *synthesis) run(r result.Run, slower float64) error {
	s.runs++
	r.Schema, r.ID, r.Tool, r.Start = result.RunSchema, fmt.Sprintf("%06d", s.runs), "native", s.clock
	r.Setup, r.Window, r.Cleanup = 0.4+0.1*s.random.Float64(), 1, 0.05
	s.clock = s.clock.Add(1500 * time.Millisecond)
	workload := r.Case[strings.LastIndexByte(r.Case, '/')+1:]
	slower *= math.Exp(s.random.NormFloat64() * 0.02)
	main := result.Series{Name: metric.Rate, Unit: metric.Named(metric.Rate).Unit, Step: 0.1}
	for range 10 {
		main.Values = append(main.Values, math.Round(4e4/slower*(1+0.02*s.random.NormFloat64())))
	}
	r.Series, r.Facts = []result.Series{main}, s.facts(workload)
	if strings.HasSuffix(workload, "-stream") {
		s.value(&r, metric.Throughput, 9.3e9/slower)
		s.value(&r, metric.CPUPerGB, 0.8*slower)
	} else if err := s.requests(&r, slower); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(counterValues)) {
		s.value(&r, name, counterValues[name])
	}
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	_, err = s.out.Write(append(line, '\n'))
	return err
}

// value adds a value with 3 % of noise.
func (s *synthesis) value(r *result.Run, name string, about float64) {
	r.Values = append(r.Values, result.NewValue(metric.Named(name), about*(1+0.03*s.random.NormFloat64())))
}

// counterValues has typical values of metrics in every run of the native tool.
var counterValues = map[string]float64{
	metric.Retransmits: 5, metric.RTT: 3e-5, metric.RTTVar: 3e-5, metric.Cwnd: 350, metric.MSS: 1448, metric.PMTU: 1448,
	metric.CPUBusy: 0.5, metric.CPUUser: 0.1, metric.CPUSystem: 0.25, metric.CPUIOWait: 0, metric.CPUIRQ: 0,
	metric.CPUSoftIRQ: 0.15, metric.CPUSteal: 0, metric.CPUIdle: 0.5, metric.CPUBusiest: 0.6, metric.CPUAgents: 0.4,
	metric.SwitchesVoluntary: 1e4, metric.SwitchesInvoluntary: 1e4,
}

// latencyFactors has latencies relative to the inverse of the rate.
var latencyFactors = map[string]float64{
	metric.P50: 0.92, metric.P90: 1.1, metric.P99: 1.6, metric.P999: 2.8, metric.Max: 8, metric.Mean: 0.97,
}

// requests adds the values of a closed loop with one outstanding request, whose rate and mean latency must be
// consistent (Little's law), and writes a histogram of latencies as raw file.
func (s *synthesis) requests(r *result.Run, slower float64) error {
	s.value(r, metric.Rate, 4e4/slower)
	rate := r.Values[0].Number
	for _, name := range slices.Sorted(maps.Keys(latencyFactors)) {
		r.Values = append(r.Values, result.NewValue(metric.Named(name), latencyFactors[name]/rate))
	}
	s.value(r, metric.CPUPerOp, 2e-5*slower)
	s.histogram.Reset()
	for range 1000 {
		ns := 2e4 * slower * math.Exp(math.Abs(s.random.NormFloat64())*0.15)
		if s.random.IntN(100) == 0 {
			ns *= 2 + 6*s.random.Float64()
		}
		if err := s.histogram.RecordValues(int64(ns), 20); err != nil {
			return err
		}
	}
	code, err := s.histogram.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		return err
	}
	dir := filepath.Join(s.dir, store.RawDir, r.ID)
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	r.Histograms = []result.Histogram{{Name: metric.Latency, Unit: "ns", Count: s.histogram.TotalCount()}}
	return os.WriteFile(filepath.Join(dir, metric.Latency+".hdr"), append(code, '\n'), 0o644)
}

func (s *synthesis) facts(workload string) []result.Fact {
	const offloads = "rx-checksum tx-checksum tso gso"
	return []result.Fact{
		{Name: "client", Value: "node1/pod1"}, {Name: "server", Value: "node2/pod1"},
		{Name: "dial", Value: "10.244.2.11:5201"}, {Name: "mtu", Value: "1450"},
		{Name: "path-mtu", Value: "1450"}, {Name: "congestion-control", Value: "bbr"},
		{Name: "client-offloads", Value: offloads}, {Name: "server-offloads", Value: offloads},
		{Name: "tool.version", Value: "v0.1.0 go1.26.8"}, {Name: "workload", Value: workload},
		{Name: "cpu.client", Value: "0"}, {Name: "cpu.server", Value: "1"},
		{Name: "cpu.shared", Value: "true"}, {Name: "cpu.idle-level.client", Value: fmt.Sprintf("%.3f", s.random.Float64())},
		{Name: "warmup.left-out", Value: fmt.Sprint(s.random.IntN(1e7))}, {Name: "generator.limited", Value: "no"},
	}
}
