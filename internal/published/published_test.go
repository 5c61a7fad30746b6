package published

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/unit"
)

func TestTablesAreComplete(t *testing.T) {
	all := All()
	var names []string
	for _, table := range all {
		names = append(names, table.Name)
		for what, text := range map[string]string{"title": table.Title, "publisher": table.Publisher,
			"date": table.Date, "machines": table.Machines, "method": table.Method, "runs": table.Runs} {
			if strings.TrimSpace(text) == "" {
				t.Errorf("%s has no %s", table.Name, what)
			}
		}
		if !strings.HasPrefix(table.URL, "https://") {
			t.Errorf("%s: url %q", table.Name, table.URL)
		}
		seen := map[string]bool{}
		for _, r := range table.Rows {
			key := r.Case + " " + r.Metric
			if seen[key] || r.Label == "" || r.Statistic == "" || len(r.Figures) == 0 {
				t.Errorf("%s: row %+v", table.Name, r)
			}
			seen[key] = true
			of := strings.TrimPrefix(strings.TrimPrefix(r.Metric, "read-"), "write-") // mixed jobs
			of = strings.TrimSuffix(strings.TrimSuffix(of, "-tx"), "-rx")             // streams in both directions
			want := map[string]unit.Unit{"throughput": unit.BitPerSecond, "rate": unit.PerSecond, "loss": unit.Ratio}[of]
			if want == "" {
				want = unit.Second
			}
			if r.Unit != want {
				t.Errorf("%s: %s is in %s", table.Name, key, r.Unit)
			}
			if (r.Better == metric.Higher) != (of == "throughput" || of == "rate") {
				t.Errorf("%s: %s is better %s", table.Name, key, r.Better)
			}
			for _, f := range r.Figures {
				if !slices.Contains(table.Targets, f.Target) || !(f.Value > 0) {
					t.Errorf("%s: %s: %+v", table.Name, key, f)
				}
			}
		}
	}
	want := []string{"cilium-aks-routing", "constellation-2.0-kbench",
		"constellation-2.6", "constellation-vault", "daocloud-cni"}
	if !slices.Equal(names, want) {
		t.Errorf("tables %q", names)
	}
}

// TestFigures checks some figures of each publication, converted to base units by hand.
func TestFigures(t *testing.T) {
	for _, c := range []struct {
		table, name, metric, target string
		want                        float64
	}{
		{"daocloud-cni", "pod-pod/other/tcp-stream", "throughput", "cilium (vxlan)", 8.30e9},
		{"daocloud-cni", "pod-svc/other/tcp-stream", "throughput", "sriov-standalone", 16.3e9},
		{"daocloud-cni", "pod-pod/same/tcp-crr:request=1024,response=1024", "mean", "calico (vxlan)", 982.92e-6},
		{"cilium-aks-routing", "pod-pod/other/udp-rr", "rate", "Azure CNI Subnet (1.18.6)", 3540},
		{"cilium-aks-routing", "pod-svc/other/udp-stream-unpaced", "loss", "BYOCNI native routing (1.18.6)", 0.11},
		{"cilium-aks-routing", "pod-svc/other/tcp-stream:direction=both", "throughput", "BYOCNI native routing", 23e9},
		{"cilium-aks-routing", "pod-svc/other/tcp-stream:direction=both", "throughput-tx", "BYOCNI native routing", 12e9},
		{"cilium-aks-routing", "pod-svc/other/tcp-stream:direction=both", "throughput-rx", "BYOCNI native routing", 11e9},
		{"cilium-aks-routing", "pod-pod/other/tcp-stream:size=16384", "throughput", "BYOCNI VXLAN", 6.927e9},
		{"cilium-aks-routing", "pod-svc/other/tcp-stream:flows=4", "throughput", "BYOCNI Geneve + ztunnel", 9.6e9},
		{"cilium-aks-routing", "pod-pod/other/tcp-stream:size=16384", "throughput", "BYOCNI Geneve + ztunnel", 4.608e9},
		{"cilium-aks-routing", "pod-pod/other/tcp-rr", "mean", "BYOCNI native routing + ztunnel", 261e-6},
		{"constellation-2.6", "pod-pod/other/tcp-stream", "throughput", "GKE", 9.406e9},
		{"constellation-2.6", "storage/randwrite-1m-qd128", "throughput", "AKS", 143 * 8 << 20},
		{"constellation-2.0-kbench", "pod-pod/other/tcp-stream", "throughput", "AKS", 577e6},
		{"constellation-2.0-kbench", "api/deployment/scale", "p50", "AKS", 0.6},
		{"constellation-vault", "app/vault/published", "p99", "GKE", 6.030807},
	} {
		table, err := Find(c.table)
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, r := range table.Rows {
			for _, f := range r.Figures {
				if r.Case == c.name && r.Metric == c.metric && f.Target == c.target {
					found = true
					if math.Abs(f.Value/c.want-1) > 1e-9 {
						t.Errorf("%+v is %g", c, f.Value)
					}
				}
			}
		}
		if !found {
			t.Errorf("%+v is not there", c)
		}
	}
}

func TestFindSaysWhatThereIs(t *testing.T) {
	_, err := Find("itnext")
	if err == nil || !strings.Contains(err.Error(), "there are cilium-aks-routing, constellation-2.0-kbench") {
		t.Errorf("error %v", err)
	}
}

func TestBeside(t *testing.T) {
	for _, c := range []struct {
		published, ours string
		want            bool
	}{
		{"pod-pod/other/tcp-rr:request=1024,response=1024", "pod-pod/other/tcp-rr", true},
		{"pod-svc/other/tcp-stream:flows=4", "pod-svc/other/tcp-stream:size=16384", true},
		{"pod-svc/other/tcp-stream", "pod-svc/other/tcp-stream:direction=forward", true},
		{"pod-svc/other/tcp-stream:direction=both", "pod-svc/other/tcp-stream", false},
		{"pod-pod/other/udp-stream-unpaced", "pod-pod/other/udp-stream", false},
		{"pod-pod/other/tcp-rr", "pod-pod/same/tcp-rr", false},
	} {
		if got := SameCase(c.published, c.ours); got != c.want {
			t.Errorf("%s beside %s: %t", c.published, c.ours, got)
		}
	}
}

func TestBrokenTables(t *testing.T) {
	for text, want := range map[string]string{
		"colour: red": `unknown field "colour"`,
		"targets: [a, b]\nrows: [{case: x, metric: p50, unit: s, values: [1]}]":         "row 1 has 1 values for 2 targets",
		"targets: [a]\nrows: [{case: x, metric: p50, unit: furlong, values: [1]}]":      "unknown unit",
		"targets: [a]\nrows: [{case: x, metric: p50, unit: s, values: [not a number]}]": "published table t",
	} {
		if _, err := parse("t", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, wanted %q in it", text, err, want)
		}
	}
}
