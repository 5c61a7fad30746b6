// Package reporttest builds an experiment that resembles a real one, for the tests of the report and for a look at its
// pages. Only tests use it. Its numbers come from a generator with a fixed seed; none was measured.
package reporttest

import (
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

var measured = []string{Native, VXLAN, WireGuard}

// Network returns an experiment of nine cases on three targets, and a fourth target that could not be measured: some
// comparisons are different, some equivalent, some undecided; two runs are invalid.
func Network() (result.Results, error) {
	e := network()
	s := NewBuilder(e, 11)
	for block := 1; block <= blocks; block++ {
		s.Begin(block, measured...)
		for _, c := range e.Cases {
			if err := s.measureBlock(c, block); err != nil {
				return result.Results{}, err
			}
		}
		s.End()
	}
	return result.Results{Experiment: e, Sites: s.Sites, Runs: s.Runs, Facts: map[string][]result.Fact{
		Native: Facts("1500", "veth, routes between nodes"), VXLAN: Facts("1450", "vxlan over veth"),
		WireGuard: Facts("1370", "wireguard-go over TUN, vxlan"),
	}}, nil
}

// network returns the experiment of Network, without runs.
func network() result.Experiment {
	e := Experiment("2026-11-21-k7qd", 7, Targets(Native, VXLAN, WireGuard, IPsec), result.Design{Blocks: blocks})
	e.NotMeasured = []result.NotMeasured{
		{Target: IPsec, Case: "*", Reason: "this kernel has no ESP (CONFIG_INET_ESP)"},
		{Target: WireGuard, Case: "pod-svc/other/tcp-crr",
			Reason: "the service's port range is exhausted within the window"},
	}
	for _, path := range []result.Path{result.PodPodOther, result.PodSvcOther, result.NodeNode} {
		for _, w := range []string{"tcp-stream", "tcp-rr", "tcp-crr"} {
			c := Case(path, w)
			c.Bound = "node-node/" + w
			switch path {
			case result.PodPodOther:
				c.Role = result.Primary
			case "node-node":
				c.Role, c.Bound = result.Bound, ""
			}
			e.Cases = append(e.Cases, c)
		}
	}
	return e
}

// An effect is the influence of a target on a case: factors on its speed and its CPU time, and the noise of a run.
type effect struct{ speed, cpu, noise float64 }

// effects holds the effects by target and workload, as one string.
var effects = map[string]effect{
	Native + "tcp-stream": {1, 1, 0.012}, Native + "tcp-rr": {1, 1, 0.006}, Native + "tcp-crr": {1, 1, 0.025},
	VXLAN + "tcp-stream": {0.703, 1.31, 0.03}, VXLAN + "tcp-rr": {1 / 1.004, 1.1, 0.008},
	VXLAN + "tcp-crr": {1 / 1.004, 1.03, 0.022}, WireGuard + "tcp-stream": {0.231, 3.9, 0.05},
	WireGuard + "tcp-rr": {1 / 2.02, 1.9, 0.03}, WireGuard + "tcp-crr": {1 / 1.62, 1.5, 0.03},
}

// measureBlock measures a case on every target that has it, in random order, and again if a run is invalid.
func (s *Builder) measureBlock(c result.Case, block int) error {
	targets := measured
	if c.Role == result.Bound {
		targets = targets[:1]
	}
	if c.Name == "pod-svc/other/tcp-crr" {
		targets = targets[:2]
	}
	spoiled := c.Name == "pod-pod/other/tcp-rr" && (block == 4 || block == 9)
	for attempt := 1; ; attempt++ {
		for slot, i := range s.Random.Perm(len(targets)) {
			r := result.Run{Block: block, Attempt: attempt, Slot: slot + 1, Target: targets[i]}
			if spoiled && targets[i] == WireGuard {
				text := "the generator was late by more than 1 ms in 3.1 % of the window"
				r.Invalid = []result.Warning{{Code: result.GeneratorLate, Text: text}}
			}
			if err := s.measure(c, r); err != nil {
				return err
			}
		}
		if !spoiled {
			return nil
		}
		spoiled = false
	}
}

func (s *Builder) measure(c result.Case, r result.Run) error {
	s.Next(c, &r)
	r.Setup, r.Cleanup = 0.22+0.05*s.Random.Float64(), 0.02+0.01*s.Random.Float64()
	e := effects[r.Target+c.Workload]
	speed := e.speed * s.Noise(e.noise) * (1 - 0.002*float64(r.Block))
	speed *= map[result.Path]float64{"pod-pod/other": 1, "pod-svc/other": 0.985, "node-node": 1.06}[c.Path]
	if err := s.addValues(&r, c.Workload, speed, e.cpu); err != nil {
		return err
	}
	s.Record(&r)
	return nil
}

func (s *Builder) addValues(r *result.Run, workload string, speed, cpu float64) error {
	jitter := s.Noise(0.02)
	if workload == "tcp-stream" {
		Add(r, metric.Throughput, 9.3e9*speed)
		Add(r, metric.Retransmits, float64(s.Random.IntN(9)))
		Add(r, metric.CPUPerGB, 0.82*cpu*jitter)
		return nil
	}
	typical := 22.4e-6
	if workload == "tcp-crr" {
		typical = 71e-6
	}
	if err := s.Latencies(r, typical/speed, 0.12, 4000, 1); err != nil {
		return err
	}
	Add(r, metric.Rate, speed/typical/1.11)
	Add(r, metric.CPUPerOp, typical*0.7*cpu*jitter)
	return nil
}

// Planned returns an experiment with a design, two primary cases, an exploratory case and a reference, on the targets
// a, b and c, without any run.
func Planned(d result.Design) result.Experiment {
	return result.Experiment{
		Schema: result.ExperimentSchema, ID: "now", Suite: "network:quick", Tool: "native", Baseline: "a", Design: d,
		Targets: []result.Target{{Name: "a", Spec: result.SpecOf("lab:a"), Underlay: "one"},
			{Name: "b", Spec: result.SpecOf("lab:b"), Underlay: "one"},
			{Name: "c", Spec: result.SpecOf("lab:c"), Underlay: "one"}},
		Cases: []result.Case{
			{Name: "pod-pod/other/tcp-rr", Role: result.Primary, Metric: metric.P50, Bound: "node-node/tcp-rr"},
			{Name: "pod-pod/other/tcp-crr", Role: result.Primary, Metric: metric.P50},
			{Name: "pod-pod/same/tcp-rr", Role: result.Exploratory, Metric: metric.P50},
			{Name: "node-node/tcp-rr", Role: result.Bound, Metric: metric.P50},
		},
		NotMeasured: []result.NotMeasured{},
	}
}
