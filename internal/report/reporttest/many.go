package reporttest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
)

// A Plan is the shape of an experiment of any size.
type Plan struct {
	Targets   []result.Target // the first is the baseline
	Slowdown  []float64       // of each target: 1.02 takes 2 % longer, or has 2 % less throughput
	Paths     []string
	Workloads []string
	Primary   string // part of the names of the primary cases
	Blocks    int
	Samples   int // different latencies of a run; 0: no histogram
	Weight    int // how often each of them counts; 0: once
	Steps     int // of the series of a run; 0: no series
	Design    result.Design
	Gates     []string
}

// Paths are the nine paths of a cluster's network.
var Paths = []string{
	"node-node", "pod-node/same", "pod-node/other", "pod-pod/same", "pod-pod/other",
	"node-svc/same", "node-svc/other", "pod-svc/same", "pod-svc/other",
}

// Workloads are the six of the network suite.
var Workloads = []string{"tcp-stream", "udp-stream", "tcp-rr", "udp-rr", "tcp-crr", "tcp-rr-loaded"}

// Matrix is the plan of every workload on every path with six targets, in the shape of the tables
// that CNI reports publish.
func Matrix() Plan {
	return Plan{
		Targets:  Targets("lab:native", "lab:bridge", "lab:macvlan", "lab:vxlan", "lab:geneve", "lab:vxlan+wireguard"),
		Slowdown: []float64{1, 1.004, 1.06, 1.24, 1.26, 2.1},
		Paths:    Paths, Workloads: Workloads, Primary: "pod-pod/other", Blocks: 11, Samples: 200, Weight: 50, Steps: 10,
	}
}

// Targets are targets whose names are their specs.
func Targets(specs ...string) []result.Target {
	var list []result.Target
	for _, s := range specs {
		list = append(list, result.Target{Name: s, Spec: s})
	}
	return list
}

// Many is an experiment of the shape of a plan. Equal plans give equal experiments.
func Many(p Plan) (result.Results, error) {
	e := p.experiment()
	b := &manyBuilder{
		plan: p, random: rand.New(rand.NewPCG(3, 5)), stage: stage{clock: e.Created.Add(2 * time.Second)},
	}
	var names []string
	for _, t := range p.Targets {
		names = append(names, t.Name)
	}
	for block := 1; block <= p.Blocks; block++ {
		b.begin(block, names...)
		for _, c := range e.Cases {
			for slot, i := range b.random.Perm(len(p.Targets)) {
				if err := b.run(c, i, block, slot+1); err != nil {
					return result.Results{}, err
				}
			}
		}
		b.end()
	}
	facts := map[string][]result.Fact{}
	for i, t := range p.Targets {
		facts[t.Name] = []result.Fact{
			{Name: "kernel", Value: "6.18.2"}, {Name: "cpu.model", Value: "AMD EPYC 7B13"}, {Name: "cpu.count", Value: "2"},
			{Name: "mtu", Value: fmt.Sprint(1500 - 50*(i/3))},
			{Name: "datapath", Value: strings.TrimPrefix(t.Spec, "lab:") + " between namespaces"},
			{Name: "tcp.congestion", Value: "cubic"},
		}
	}
	return result.Results{Experiment: e, Sites: b.sites, Runs: b.runs, Facts: facts}, nil
}

func (p Plan) experiment() result.Experiment {
	d := p.Design
	d.Kind, d.Blocks, d.Duration, d.Warmup, d.Alpha, d.Delta = "randomised complete blocks", p.Blocks, 1, 0.2, 0.05, 0.02
	e := result.Experiment{
		Schema: result.ExperimentSchema, ID: "2026-11-21-many", Created: time.Date(2026, 11, 21, 14, 5, 0, 0, time.UTC),
		Version: "v0.1.0", Seed: 3, Suite: "network", Tool: "native",
		Baseline: p.Targets[0].Name, Targets: slices.Clone(p.Targets),
		Design: d, Gates: p.Gates, NotMeasured: []result.NotMeasured{},
	}
	for _, path := range p.Paths {
		for _, w := range p.Workloads {
			c := result.Case{Name: path + "/" + w, Path: path, Workload: w, Role: result.Exploratory, Metric: metric.P50}
			if strings.HasSuffix(w, "-stream") {
				c.Metric = metric.Throughput
			}
			if p.Primary != "" && strings.Contains(c.Name, p.Primary) {
				c.Role = result.Primary
			}
			e.Cases = append(e.Cases, c)
		}
	}
	return e
}

type manyBuilder struct {
	plan   Plan
	random *rand.Rand
	stage
	runs []result.Run
}

func (b *manyBuilder) run(c result.Case, target, block, slot int) error {
	r := result.Run{
		Schema: result.RunSchema, ID: fmt.Sprintf("r%05d", len(b.runs)+1), Case: c.Name, Target: b.plan.Targets[target].Name,
		Block: block, Attempt: 1, Slot: slot, Start: b.clock, Setup: 0.22 + 0.05*b.random.Float64(), Window: 1,
		Cleanup: 0.02, Tool: "native",
	}
	r.Site = b.open[r.Target]
	slow := math.Pow(b.plan.Slowdown[target%len(b.plan.Slowdown)],
		1+0.5*float64(len(c.Workload)%3)) * math.Exp(b.random.NormFloat64()*0.012)
	slow *= 1 + 0.03*float64(slices.Index(Paths, c.Path))
	var err error
	if c.Metric == metric.Throughput {
		b.stream(&r, slow)
	} else {
		err = b.requests(&r, slow)
	}
	b.common(&r)
	b.clock = r.End()
	b.runs = append(b.runs, r)
	return err
}

func add(r *result.Run, name string, v float64) {
	r.Values = append(r.Values, result.NewValue(metric.Named(name), v))
}

func (b *manyBuilder) stream(r *result.Run, slow float64) {
	rate := 9.3e9 / slow
	add(r, metric.Throughput, rate)
	add(r, metric.Retransmits, float64(b.random.IntN(9)))
	add(r, metric.CPUPerGB, 0.8*slow*math.Exp(b.random.NormFloat64()*0.02))
	b.series(r, metric.Throughput, rate)
}

func (b *manyBuilder) series(r *result.Run, name string, middle float64) {
	if b.plan.Steps == 0 {
		return
	}
	s := result.Series{Name: name, Unit: metric.Named(name).Unit, Step: 0.1}
	for range b.plan.Steps {
		s.Values = append(s.Values, math.Round(middle*math.Exp(b.random.NormFloat64()*0.04)))
	}
	r.Series = []result.Series{s}
}

func (b *manyBuilder) requests(r *result.Run, slow float64) error {
	typical := 25e-6 * slow
	if strings.HasSuffix(r.Case, "crr") {
		typical *= 3
	}
	if b.plan.Samples == 0 {
		for i, name := range []string{metric.P50, metric.P90, metric.P99} {
			add(r, name, typical*(1+0.2*float64(i)))
		}
	} else if err := b.histogram(r, typical); err != nil {
		return err
	}
	add(r, metric.Rate, 0.9/typical)
	add(r, metric.CPUPerOp, typical*0.7*math.Exp(b.random.NormFloat64()*0.02))
	b.series(r, metric.Rate, 0.9/typical)
	return nil
}

func (b *manyBuilder) histogram(r *result.Run, typical float64) error {
	h := hdrhistogram.New(1, 10e9, 3)
	for range b.plan.Samples {
		ns := typical * 1e9 * math.Exp(math.Abs(b.random.NormFloat64())*0.15)
		if b.random.Float64() < 0.01 {
			ns *= 2 + 6*b.random.Float64()
		}
		if err := h.RecordValues(int64(ns), int64(max(b.plan.Weight, 1))); err != nil {
			return fmt.Errorf("build a histogram: %w", err)
		}
	}
	for i, q := range []float64{50, 90, 99} {
		add(r, []string{metric.P50, metric.P90, metric.P99}[i], float64(h.ValueAtQuantile(q))/1e9)
	}
	encoded, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		return fmt.Errorf("encode a histogram: %w", err)
	}
	r.Histograms = []result.Histogram{{Name: metric.Latency, Unit: "ns", Count: h.TotalCount(), Encoded: string(encoded)}}
	return nil
}

// common are values that every run of the native tool has, of which neither way is better.
func (b *manyBuilder) common(r *result.Run) {
	for _, name := range []string{
		metric.CPUBusy, metric.CPUUser, metric.CPUSystem, metric.CPUIRQ, metric.CPUSoftIRQ, metric.CPUSteal,
		metric.CPUBusiest, metric.CPUAgents,
	} {
		add(r, name, b.random.Float64())
	}
	add(r, metric.RTT, float64(20+b.random.IntN(40))*1e-6)
	add(r, metric.MSS, 1448)
	add(r, metric.SwitchesVoluntary, 1e4*b.random.Float64())
	add(r, metric.SwitchesInvoluntary, 1e3*b.random.Float64())
}
