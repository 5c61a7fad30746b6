package paths

import (
	"slices"
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/test/e2e"
)

// TestProfile checks that with profile=yes runs have the CPU time of the layers of the nodes' kernels, the tunnel's
// included, and the counters of the nodes; without it they have neither.
func TestProfile(t *testing.T) {
	c := cluster{e2e.OpenLocal(t)}
	n := c.network(t)
	const request, profiled, plain = "pod-pod/other/tcp-rr", "profiled", "plain"
	o := runExperiment(t, c, 1, []string{request}, testTarget{plain, c.target(), false},
		testTarget{profiled, c.target("profile=yes"), false})
	run := o.run(request, profiled)
	if run == nil || o.run(request, plain) == nil {
		t.Fatalf("no valid run: %+v", o.Runs)
	}
	layers := []string{"socket", "tcp", "ip", "user"}
	if n.tunnel {
		layers = append(layers, "vxlan")
	}
	for _, layer := range layers {
		if v, ok := run.Value(metric.OfLayer(metric.CPUPerOp, layer)); !ok || v.Number <= 0 {
			t.Errorf("no CPU time of the layer %s: %v", layer, v)
		}
	}
	for _, end := range []string{"client", "server"} {
		if text := run.Fact("counters." + end); text != "here and on the node" {
			t.Errorf("counters of the %s: %s", end, text)
		}
		if text := run.Fact("layers." + end); text != "" {
			t.Errorf("layers of the %s: %s", end, text)
		}
		if text := o.run(request, plain).Fact("counters." + end); text != "here" {
			t.Errorf("counters of the %s without privileges: %s", end, text)
		}
	}
	sampled := func(m string) bool { return strings.HasPrefix(m, metric.CPUPerOp+".") }
	if slices.ContainsFunc(metrics(o.run(request, plain)), sampled) {
		t.Error("pods without privileges sampled their nodes")
	}
}
