//go:build linux

package faults

import (
	"slices"
	"testing"

	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
)

// TestCompute checks that computations are measured in pods on each node in turn, all targets of a block on the same
// one; that half of a CPU is measured as half; and that other programs are taken from the image.
func TestCompute(t *testing.T) {
	testbed := newTestbed(t)
	s := newExperiment(t, testbed)
	s.alone, s.options = true, "rotate-nodes=yes&label=whole"
	const blocks = 4
	limited := "kube:?rotate-nodes=yes&label=limited&config={resources: {limits: {cpu: 500m}}}"
	if r := s.measure("--target", limited, "--case", "compute/sort", "--blocks", "4"); s.end(r) != 0 {
		t.Fatal(r)
	}
	s.checkComplete(nil, blocks)
	s.nothingLeft()
	runs := s.runs()
	nodes, inBlock := map[string]int{}, map[int]string{}
	rates := map[string]float64{} // the highest, since others who use the CPU only make a run slower
	reached := 0                  // runs that reached their limit, as not all do where others use the CPU
	for _, r := range runs {
		node := r.Fact("client")
		if before, known := inBlock[r.Block]; known && before != node {
			t.Errorf("block %d was measured on %s and on %s", r.Block, before, node)
		}
		inBlock[r.Block] = node
		nodes[node]++
		rate, _ := r.Value(metric.Rate)
		rates[r.Target] = max(rates[r.Target], rate.Number)
		warns := func(of result.Code) bool {
			return slices.ContainsFunc(r.Warnings, func(w result.Warning) bool { return w.Code == of })
		}
		throttled := warns(result.Throttled)
		if throttled {
			reached++
		}
		limited := r.Target == "limited"
		if throttled && !limited || limited && !throttled && !warns(result.CPUShared) || r.Fact("cpu.client") == "" {
			t.Errorf("run %s on %s: warnings %v, facts %v", r.ID, r.Target, r.Warnings, r.Facts)
		}
	}
	if len(runs) != 2*blocks || len(nodes) != 2 || reached == 0 {
		t.Errorf("%d runs, of which %d reached their limit, on the nodes %v", len(runs), reached, nodes)
	}
	if ratio := rates["limited"] / rates["whole"]; ratio < 0.4 || ratio > 0.6 {
		t.Errorf("half of a CPU is measured as %.2f of one: %v", ratio, rates)
	}

	s = newExperiment(t, testbed)
	s.alone = true
	r := s.measure("--tool", "openssl", "--case", "compute/aes-256-gcm", "--blocks", "1")
	if s.end(r) != 0 {
		t.Fatal(r)
	}
	s.nothingLeft()
	for _, run := range s.runs() {
		if v, _ := run.Value(metric.Bandwidth); !run.Valid() || run.Tool != "openssl" || v.Number < 1e8 {
			t.Errorf("%+v", run)
		}
	}
}
