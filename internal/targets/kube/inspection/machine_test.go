package inspection

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// TestMachineFacts checks that the limits of a machine size are facts of a cluster whose nodes all have that size.
func TestMachineFacts(t *testing.T) {
	for name, c := range map[string]struct {
		nodes             []corev1.Node
		link, iops, disks float64 // 0: unknown
	}{
		"AKS":          {[]corev1.Node{node("a z Standard_D4as_v5"), node("b z Standard_D4as_v5")}, 12.5e9, 6400, 8 * 144e6},
		"confidential": {[]corev1.Node{node("a z Standard_DC4as_v5")}, 5e9, 6400, 8 * 96e6},
		"GKE":          {[]corev1.Node{node("a z n2d-standard-4")}, 10e9, 15000, 8 * 240e6},
		"two sizes":    {[]corev1.Node{node("a z Standard_D4as_v5"), node("b z Standard_DC4as_v5")}, 0, 0, 0},
		"one unnamed":  {[]corev1.Node{node("a z Standard_D4as_v5"), node("b z")}, 0, 0, 0},
		"another":      {[]corev1.Node{node("a z k3s")}, 0, 0, 0},
		"none":         {},
	} {
		facts := Evidence{Nodes: c.nodes}.Facts()
		for fact, want := range map[string]struct {
			unit unit.Unit
			most float64
		}{
			"vm-link-rate": {unit.BitPerSecond, c.link}, "vm-limit-iops": {unit.PerSecond, c.iops},
			"vm-limit-throughput": {unit.BitPerSecond, c.disks},
		} {
			text := result.FactOf(facts, fact)
			if got, err := unit.ParseAs(text, want.unit); (text == "") != (want.most == 0) ||
				text != "" && (err != nil || got != want.most) {
				t.Errorf("%s: %s is %q, %v; want %g", name, fact, text, err, want.most)
			}
		}
	}
}

// TestMachinesHaveSources checks that every size has figures with sources and occurs once.
func TestMachinesHaveSources(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range machines() {
		if seen[m.name] || m.link <= 0 || m.iops <= 0 || m.disks <= 0 ||
			!strings.ContainsAny(m.series.link, "0123456789") || !strings.ContainsAny(m.series.disks, "0123456789") {
			t.Errorf("%+v", m)
		}
		seen[m.name] = true
	}
}
