// Package reporttest builds an experiment that looks like a real one, for the tests of the report and
// for looking at its pages: it stands beside report and is used by tests alone. Its numbers come from
// a generator with a fixed seed; none was measured.
package reporttest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
)

// The targets of the experiment.
const (
	Native    = "lab:native"
	VXLAN     = "lab:vxlan"
	WireGuard = "lab:vxlan+wireguard"
	IPsec     = "lab:native+ipsec" // not measured
)

const blocks = 11

// Network is an experiment of nine cases on three targets, and a fourth that could not be measured:
// some comparisons are different, some equivalent, some undecided; two runs were invalid.
func Network() (result.Results, error) {
	e := experiment()
	b := &builder{random: rand.New(rand.NewPCG(7, 11)), stage: stage{clock: e.Created.Add(2 * time.Second)}}
	for block := 1; block <= blocks; block++ {
		b.begin(block, Native, VXLAN, WireGuard)
		for _, c := range e.Cases {
			if err := b.block(c, block); err != nil {
				return result.Results{}, err
			}
		}
		b.end()
	}
	return result.Results{Experiment: e, Sites: b.sites, Runs: b.runs, Facts: facts()}, nil
}

func experiment() result.Experiment {
	e := result.Experiment{
		Schema: result.ExperimentSchema, ID: "2026-11-21-k7qd", Created: time.Date(2026, 11, 21, 14, 5, 0, 0, time.UTC),
		Version: "v0.1.0", Seed: 7, Suite: "network", Tool: "native", Baseline: Native,
		Design: result.Design{Kind: "randomised complete blocks",
			Blocks: blocks, Duration: 1, Warmup: 0.2, Alpha: 0.05, Delta: 0.02},
		NotMeasured: []result.NotMeasured{
			{Target: IPsec, Case: "*", Reason: "this kernel has no ESP (CONFIG_INET_ESP)"},
			{Target: WireGuard, Case: "pod-svc/other/tcp-crr",
				Reason: "the service's port range is exhausted within the window"},
		},
	}
	for _, t := range []string{Native, VXLAN, WireGuard, IPsec} {
		e.Targets = append(e.Targets, result.Target{Name: t, Spec: t})
	}
	for _, path := range []string{"pod-pod/other", "pod-svc/other", "node-node"} {
		for _, w := range []string{"tcp-stream", "tcp-rr", "tcp-crr"} {
			c := result.Case{Name: path + "/" + w, Path: path, Workload: w, Role: result.Exploratory,
				Metric: metric.P50, Bound: "node-node/" + w}
			if w == "tcp-stream" {
				c.Metric = metric.Throughput
			}
			switch path {
			case "pod-pod/other":
				c.Role = result.Primary
			case "node-node":
				c.Role, c.Bound = result.Bound, ""
			}
			e.Cases = append(e.Cases, c)
		}
	}
	return e
}

// effect is what a target does to a case: factors on its speed and its CPU, and the noise of a run.
type effect struct{ speed, cpu, noise float64 }

var effects = map[string]effect{
	Native + "tcp-stream": {1, 1, 0.012}, Native + "tcp-rr": {1, 1, 0.006}, Native + "tcp-crr": {1, 1, 0.025},
	VXLAN + "tcp-stream": {0.703, 1.31, 0.03}, VXLAN + "tcp-rr": {1 / 1.004, 1.1, 0.008},
	VXLAN + "tcp-crr": {1 / 1.004, 1.03, 0.022}, WireGuard + "tcp-stream": {0.231, 3.9, 0.05},
	WireGuard + "tcp-rr": {1 / 2.02, 1.9, 0.03}, WireGuard + "tcp-crr": {1 / 1.62, 1.5, 0.03},
}

type builder struct {
	random *rand.Rand
	stage
	runs []result.Run
}

// block measures a case on every target that has it, in random order, and again if a run is invalid.
func (b *builder) block(c result.Case, block int) error {
	targets := []string{Native, VXLAN, WireGuard}
	if c.Role == result.Bound {
		targets = targets[:1]
	}
	if c.Name == "pod-svc/other/tcp-crr" {
		targets = targets[:2]
	}
	spoiled := c.Name == "pod-pod/other/tcp-rr" && (block == 4 || block == 9)
	for attempt := 1; ; attempt++ {
		for slot, i := range b.random.Perm(len(targets)) {
			r := result.Run{Block: block, Attempt: attempt, Slot: slot + 1, Target: targets[i]}
			if err := b.run(c, r, spoiled && targets[i] == WireGuard); err != nil {
				return err
			}
		}
		if !spoiled {
			return nil
		}
		spoiled = false
	}
}

func (b *builder) run(c result.Case, r result.Run, invalid bool) error {
	r.Schema, r.Case, r.Tool, r.Start, r.Site = result.RunSchema, c.Name, "native", b.clock, b.open[r.Target]
	r.ID = fmt.Sprintf("r%04d", len(b.runs)+1)
	r.Setup, r.Window, r.Cleanup = 0.22+0.05*b.random.Float64(), 1, 0.02+0.01*b.random.Float64()
	e := effects[r.Target+c.Workload]
	speed := e.speed * math.Exp(b.random.NormFloat64()*e.noise) * (1 - 0.002*float64(r.Block))
	speed *= map[string]float64{"pod-pod/other": 1, "pod-svc/other": 0.985, "node-node": 1.06}[c.Path]
	if err := b.values(&r, c.Workload, speed, e.cpu); err != nil {
		return err
	}
	if invalid {
		text := "the generator was late by more than 1 ms in 3.1 % of the window"
		r.Invalid = []result.Warning{{Code: result.GeneratorLate, Text: text}}
	}
	b.clock = r.End()
	b.runs = append(b.runs, r)
	return nil
}

func (b *builder) values(r *result.Run, workload string, speed, cpu float64) error {
	add := func(name string, v float64) {
		r.Values = append(r.Values, result.NewValue(metric.Named(name), v))
	}
	jitter := math.Exp(b.random.NormFloat64() * 0.02)
	if workload == "tcp-stream" {
		add(metric.Throughput, 9.3e9*speed)
		add(metric.Retransmits, float64(b.random.IntN(9)))
		add(metric.CPUPerGB, 0.82*cpu*jitter)
		return nil
	}
	typical := 22.4e-6
	if workload == "tcp-crr" {
		typical = 71e-6
	}
	h := hdrhistogram.New(1, 60e9, 3)
	for range 4000 {
		ns := typical / speed * 1e9 * math.Exp(math.Abs(b.random.NormFloat64())*0.12)
		if b.random.Float64() < 0.01 {
			ns *= 2 + 6*b.random.Float64()
		}
		if err := h.RecordValue(int64(ns)); err != nil {
			return fmt.Errorf("build a histogram: %w", err)
		}
	}
	for _, p := range []struct {
		name     string
		quantile float64
	}{{metric.P50, 50}, {metric.P90, 90}, {metric.P99, 99}} {
		add(p.name, float64(h.ValueAtQuantile(p.quantile))/1e9)
	}
	add(metric.Rate, speed/typical/1.11)
	add(metric.CPUPerOp, typical*0.7*cpu*jitter)
	encoded, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		return fmt.Errorf("encode a histogram: %w", err)
	}
	r.Histograms = []result.Histogram{{Name: metric.Latency, Unit: "ns", Count: h.TotalCount(), Encoded: string(encoded)}}
	return nil
}

func facts() map[string][]result.Fact {
	all := map[string][]result.Fact{}
	for target, special := range map[string][2]string{
		Native: {"1500", "veth, routes between nodes"}, VXLAN: {"1450", "vxlan over veth"},
		WireGuard: {"1370", "wireguard-go over TUN, vxlan"},
	} {
		all[target] = []result.Fact{
			{Name: "kernel", Value: "6.18.2"}, {Name: "cpu.model", Value: "AMD EPYC 7B13"}, {Name: "cpu.count", Value: "2"},
			{Name: "cpu.governor", Value: result.Unknown},
			{Name: "mtu", Value: special[0]}, {Name: "datapath", Value: special[1]},
			{Name: "tcp.congestion", Value: "cubic"}, {Name: "virtualisation", Value: "kvm"},
		}
	}
	return all
}
