package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/report/reporttest"
	"github.com/knotmeter/knotmeter/internal/result"
)

// A shape describes an experiment of any size.
type shape struct {
	Targets   []result.Target // the first one is the baseline
	Slowdown  []float64       // factor of each target: 1.02 takes 2 % longer, or has 2 % less throughput
	Paths     []result.Path
	Workloads []string
	Primary   string // substring of the names of the primary cases
	Blocks    int
	Samples   int // distinct latencies of a run; 0: no histogram
	Weight    int // count of each latency; 0: once
	Steps     int // length of the series of a run; 0: no series
	Design    result.Design
	Gates     []string
}

// sixWorkloads are six workloads of the network suite.
var sixWorkloads = []string{"tcp-stream", "udp-stream", "tcp-rr", "udp-rr", "tcp-crr", "tcp-rr-loaded"}

// matrixShape returns every workload on every path with six targets, like the tables in reports on CNI plugins.
func matrixShape() shape {
	return shape{
		Targets: reporttest.Targets("lab:native", "lab:bridge", "lab:macvlan", "lab:vxlan", "lab:geneve",
			"lab:vxlan+wireguard"),
		Slowdown: []float64{1, 1.004, 1.06, 1.24, 1.26, 2.1},
		Paths:    result.Paths(), Workloads: sixWorkloads, Primary: "pod-pod/other",
		Blocks: 11, Samples: 200, Weight: 50, Steps: 10,
	}
}

// manyRuns returns an experiment of a shape. Equal shapes give equal experiments.
func manyRuns(p shape) (result.Results, error) {
	e := p.experiment()
	b := &manyBuilder{p, reporttest.NewBuilder(e, 5)}
	for block := 1; block <= p.Blocks; block++ {
		b.Begin(block, e.TargetNames()...)
		for _, c := range e.Cases {
			for slot, i := range b.Random.Perm(len(p.Targets)) {
				if err := b.measure(c, i, block, slot+1); err != nil {
					return result.Results{}, err
				}
			}
		}
		b.End()
	}
	r := result.Results{Experiment: e, Sites: b.Sites, Runs: b.Runs, Facts: map[string][]result.Fact{}}
	for i, t := range p.Targets {
		datapath := t.Spec.Name + " between namespaces"
		r.Facts[t.Name] = reporttest.Facts(fmt.Sprint(1500-50*(i/3)), datapath)
	}
	return r, nil
}

func (p shape) experiment() result.Experiment {
	d := p.Design
	d.Blocks = p.Blocks
	e := reporttest.Experiment("2026-11-21-many", 3, slices.Clone(p.Targets), d)
	e.Gates = p.Gates
	for _, path := range p.Paths {
		for _, w := range p.Workloads {
			c := reporttest.Case(path, w)
			if p.Primary != "" && strings.Contains(c.Name, p.Primary) {
				c.Role = result.Primary
			}
			e.Cases = append(e.Cases, c)
		}
	}
	return e
}

type manyBuilder struct {
	shape
	*reporttest.Builder
}

func (b *manyBuilder) measure(c result.Case, target, block, slot int) error {
	r := result.Run{Target: b.shape.Targets[target].Name, Block: block, Attempt: 1, Slot: slot}
	b.Next(c, &r)
	r.Setup, r.Cleanup = 0.22+0.05*b.Random.Float64(), 0.02
	slow := math.Pow(b.shape.Slowdown[target%len(b.shape.Slowdown)], 1+0.5*float64(len(c.Workload)%3)) * b.Noise(0.012)
	slow *= 1 + 0.03*float64(slices.Index(result.Paths(), c.Path))
	var err error
	if c.Metric == metric.Throughput {
		b.stream(&r, slow)
	} else {
		err = b.requests(&r, slow)
	}
	b.common(&r)
	b.Record(&r)
	return err
}

func (b *manyBuilder) stream(r *result.Run, slow float64) {
	rate := 9.3e9 / slow
	reporttest.Add(r, metric.Throughput, rate)
	reporttest.Add(r, metric.Retransmits, float64(b.Random.IntN(9)))
	reporttest.Add(r, metric.CPUPerGB, 0.8*slow*b.Noise(0.02))
	b.series(r, metric.Throughput, rate)
}

func (b *manyBuilder) series(r *result.Run, name string, middle float64) {
	if b.shape.Steps == 0 {
		return
	}
	s := result.Series{Name: name, Unit: metric.Named(name).Unit, Step: 0.1}
	for range b.shape.Steps {
		s.Values = append(s.Values, math.Round(middle*b.Noise(0.04)))
	}
	r.Series = []result.Series{s}
}

func (b *manyBuilder) requests(r *result.Run, slow float64) error {
	typical := 25e-6 * slow
	if strings.HasSuffix(r.Case, "crr") {
		typical *= 3
	}
	if b.shape.Samples == 0 {
		for i, name := range []string{metric.P50, metric.P90, metric.P99} {
			reporttest.Add(r, name, typical*(1+0.2*float64(i)))
		}
	} else if err := b.Latencies(r, typical, 0.15, b.shape.Samples, max(b.shape.Weight, 1)); err != nil {
		return err
	}
	reporttest.Add(r, metric.Rate, 0.9/typical)
	reporttest.Add(r, metric.CPUPerOp, typical*0.7*b.Noise(0.02))
	b.series(r, metric.Rate, 0.9/typical)
	return nil
}

// neutral are metrics that every run of the native tool has, and of which neither way is better.
var neutral = []string{
	metric.CPUBusy, metric.CPUUser, metric.CPUSystem, metric.CPUIRQ, metric.CPUSoftIRQ, metric.CPUSteal,
	metric.CPUBusiest, metric.CPUAgents,
}

func (b *manyBuilder) common(r *result.Run) {
	for _, name := range neutral {
		reporttest.Add(r, name, b.Random.Float64())
	}
	reporttest.Add(r, metric.RTT, float64(20+b.Random.IntN(40))*1e-6)
	reporttest.Add(r, metric.MSS, 1448)
	reporttest.Add(r, metric.SwitchesVoluntary, 1e4*b.Random.Float64())
	reporttest.Add(r, metric.SwitchesInvoluntary, 1e3*b.Random.Float64())
}
