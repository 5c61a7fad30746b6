package compare

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// A world is a hand-made experiment: what each target's values are, block by block.
type world struct {
	e    result.Experiment
	runs []result.Run
}

const (
	rr     = "pod-pod/other/tcp-rr"
	stream = "pod-pod/other/tcp-stream"
	bound  = "node-node/tcp-rr"
)

// newWorld is a plan of the named targets, the first the baseline, without cases and runs.
func newWorld(blocks int, targets ...string) *world {
	w := &world{e: result.Experiment{
		Schema: result.ExperimentSchema, ID: "2026-12-01-a1b2", Seed: 7, Version: "test", Suite: "network:quick", Tool: "native",
		Design: result.Design{Kind: "randomised complete blocks", Blocks: blocks, Duration: 1, Alpha: 0.05, Delta: 0.02}, Baseline: targets[0],
	}}
	for _, t := range targets {
		w.e.Targets = append(w.e.Targets, result.Target{Name: t, Spec: t})
	}
	return w
}

func (w *world) addCase(name string, role result.Role, metric string) {
	w.e.Cases = append(w.e.Cases, result.Case{Name: name, Role: role, Metric: metric})
}

// add appends a valid run with one value; the slot is the target's place in the plan, turned by one
// with each block.
func (w *world) add(block int, caseName, target string, v result.Value) *result.Run {
	slot := slices.IndexFunc(w.e.Targets, func(t result.Target) bool { return t.Name == target })
	w.runs = append(w.runs, result.Run{
		Schema: result.RunSchema, ID: fmt.Sprintf("%s-%s-%d-%d", target, strings.ReplaceAll(caseName, "/", "-"), block, len(w.runs)),
		Case: caseName, Target: target, Block: block, Attempt: 1, Slot: (slot+block)%len(w.e.Targets) + 1,
		Start: time.Date(2026, 12, 1, 10, 0, len(w.runs), 0, time.UTC), Window: 1, Tool: "native", Values: []result.Value{v},
	})
	return &w.runs[len(w.runs)-1]
}

func p50(seconds float64) result.Value {
	return result.Value{Metric: "p50", Unit: unit.Second, Better: result.Lower, Number: seconds}
}

func throughput(rate float64) result.Value {
	return result.Value{Metric: "throughput", Unit: unit.BitPerSecond, Better: result.Higher, Number: rate}
}

// noise is reproducible: about a tenth of a percent to one percent, different for each i.
func noise(i int) float64 { return 0.005 * math.Sin(float64(i)*2.3+0.7) }

// typical is 11 blocks of two cases with an upper bound on three targets: one slower, one alike.
func typical() *world {
	w := newWorld(11, "lab:native", "lab:vxlan", "lab:again")
	w.addCase(rr, result.Primary, "p50")
	w.addCase(stream, result.Primary, "throughput")
	w.addCase(bound, result.Bound, "p50")
	w.e.Cases[0].Bound = bound
	w.e.NotMeasured = []result.NotMeasured{{Target: "lab:ipsec", Case: "*", Reason: "this kernel has no ESP (CONFIG_INET_ESP)"}}
	for b := 1; b <= 11; b++ {
		drift := 1 + 0.01*float64(b)
		for i, t := range w.e.Targets {
			factor := []float64{1, 1.074, 1.001}[i] * (1 + noise(3*b+i))
			r := w.add(b, rr, t.Name, p50(40e-6*drift*factor))
			r.Values = append(r.Values,
				result.Value{Metric: "p99", Unit: unit.Second, Better: result.Lower, Number: 90e-6 * drift * factor * (1 + 5*noise(7*b+i))},
				result.Value{Metric: "retransmits", Unit: unit.Count, Better: result.Lower, Number: float64(b * i % 3)},
				result.Value{Metric: "transactions", Unit: unit.Count, Number: 1000})
			r.Warnings = []string{"closed loop: a stalled server hides its delay", "both sides run on one machine"}
			s := w.add(b, stream, t.Name, throughput(9.1e9/drift/factor))
			s.Warnings = []string{"both sides run on one machine"}
		}
		n := w.add(b, bound, "lab:native", p50(30e-6*drift*(1+noise(b))))
		n.Warnings = []string{"both sides run on one machine"}
	}
	return w
}

func labFacts() map[string][]result.Fact {
	return map[string][]result.Fact{
		"lab:native": {{Name: "kernel", Value: "6.12.9"}, {Name: "mtu", Value: "1500"}, {Name: "cpu.governor", Value: result.Unknown}, {Name: "datapath", Value: "native"}},
		"lab:vxlan":  {{Name: "kernel", Value: "6.12.9"}, {Name: "mtu", Value: "1450"}, {Name: "cpu.governor", Value: result.Unknown}, {Name: "datapath", Value: "vxlan"}, {Name: "vxlan.port", Value: "4789"}},
		"lab:again":  {{Name: "kernel", Value: "6.12.9"}, {Name: "mtu", Value: "1500"}, {Name: "cpu.governor", Value: "performance"}, {Name: "datapath", Value: "native"}},
	}
}

func compare(t *testing.T, w *world, facts map[string][]result.Fact) Comparison {
	t.Helper()
	c, err := Compare(w.e, w.runs, facts)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// golden compares v, as indented JSON, with a file.
func golden(t *testing.T, name string, v any) {
	t.Helper()
	got, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	got = append(got, '\n')
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got; -update rewrites it):\n%s", name, diff)
	}
}

func TestCompareGolden(t *testing.T) {
	golden(t, "typical.json", compare(t, typical(), labFacts()))
}

var _ = []any{bytes.Equal, errors.Is, rand.IntN}
