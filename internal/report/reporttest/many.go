package reporttest

import (
	"fmt"
	"math"
	"slices"
	"strings"

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
	b := &manyBuilder{p, newStage(e, 5)}
	for block := 1; block <= p.Blocks; block++ {
		b.begin(block, e.TargetNames()...)
		for _, c := range e.Cases {
			for slot, i := range b.random.Perm(len(p.Targets)) {
				if err := b.measure(c, i, block, slot+1); err != nil {
					return result.Results{}, err
				}
			}
		}
		b.end()
	}
	r := result.Results{Experiment: e, Sites: b.sites, Runs: b.runs, Facts: map[string][]result.Fact{}}
	for i, t := range p.Targets {
		datapath := strings.TrimPrefix(t.Spec, "lab:") + " between namespaces"
		r.Facts[t.Name] = facts(fmt.Sprint(1500-50*(i/3)), datapath)
	}
	return r, nil
}

func (p Plan) experiment() result.Experiment {
	d := p.Design
	d.Blocks = p.Blocks
	e := experiment("2026-11-21-many", 3, slices.Clone(p.Targets), d)
	e.Gates = p.Gates
	for _, path := range p.Paths {
		for _, w := range p.Workloads {
			c := newCase(path, w)
			if p.Primary != "" && strings.Contains(c.Name, p.Primary) {
				c.Role = result.Primary
			}
			e.Cases = append(e.Cases, c)
		}
	}
	return e
}

// newCase is a workload on a path, measured for its throughput or its median latency.
func newCase(path, workload string) result.Case {
	c := result.Case{Name: path + "/" + workload, Path: path, Workload: workload,
		Role: result.Exploratory, Metric: metric.P50}
	if strings.HasSuffix(workload, "-stream") {
		c.Metric = metric.Throughput
	}
	return c
}

type manyBuilder struct {
	plan Plan
	*stage
}

func (b *manyBuilder) measure(c result.Case, target, block, slot int) error {
	r := result.Run{Target: b.plan.Targets[target].Name, Block: block, Attempt: 1, Slot: slot}
	b.run(c, &r)
	r.Setup, r.Cleanup = 0.22+0.05*b.random.Float64(), 0.02
	slow := math.Pow(b.plan.Slowdown[target%len(b.plan.Slowdown)], 1+0.5*float64(len(c.Workload)%3)) * b.noise(0.012)
	slow *= 1 + 0.03*float64(slices.Index(Paths, c.Path))
	var err error
	if c.Metric == metric.Throughput {
		b.stream(&r, slow)
	} else {
		err = b.requests(&r, slow)
	}
	b.common(&r)
	b.record(&r)
	return err
}

func (b *manyBuilder) stream(r *result.Run, slow float64) {
	rate := 9.3e9 / slow
	add(r, metric.Throughput, rate)
	add(r, metric.Retransmits, float64(b.random.IntN(9)))
	add(r, metric.CPUPerGB, 0.8*slow*b.noise(0.02))
	b.series(r, metric.Throughput, rate)
}

func (b *manyBuilder) series(r *result.Run, name string, middle float64) {
	if b.plan.Steps == 0 {
		return
	}
	s := result.Series{Name: name, Unit: metric.Named(name).Unit, Step: 0.1}
	for range b.plan.Steps {
		s.Values = append(s.Values, math.Round(middle*b.noise(0.04)))
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
	} else if err := b.latencies(r, typical, 0.15, b.plan.Samples, max(b.plan.Weight, 1)); err != nil {
		return err
	}
	add(r, metric.Rate, 0.9/typical)
	add(r, metric.CPUPerOp, typical*0.7*b.noise(0.02))
	b.series(r, metric.Rate, 0.9/typical)
	return nil
}

// neutral are values that every run of the native tool has, of which neither way is better.
var neutral = []string{
	metric.CPUBusy, metric.CPUUser, metric.CPUSystem, metric.CPUIRQ, metric.CPUSoftIRQ, metric.CPUSteal,
	metric.CPUBusiest, metric.CPUAgents,
}

func (b *manyBuilder) common(r *result.Run) {
	for _, name := range neutral {
		add(r, name, b.random.Float64())
	}
	add(r, metric.RTT, float64(20+b.random.IntN(40))*1e-6)
	add(r, metric.MSS, 1448)
	add(r, metric.SwitchesVoluntary, 1e4*b.random.Float64())
	add(r, metric.SwitchesInvoluntary, 1e3*b.random.Float64())
}
