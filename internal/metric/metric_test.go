package metric

import (
	"testing"

	"github.com/knotmeter/knotmeter/internal/unit"
)

// TestTable checks that every metric and every part is defined once, with a meaning.
func TestTable(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range All() {
		if seen[m.Name] || m.Unit == "" || m.Meaning == "" || m.Meaning[len(m.Meaning)-1] == '.' {
			t.Errorf("%+v is there twice, or has no unit or no meaning", m)
		}
		seen[m.Name] = true
	}
	for _, p := range Parts() {
		if seen[p.Name] || p.Meaning == "" {
			t.Errorf("%+v is there twice, or has no meaning", p)
		}
		seen[p.Name] = true
	}
}

func TestFind(t *testing.T) {
	for _, test := range []struct {
		name   string
		unit   unit.Unit // empty: there is none
		better Better
	}{
		{Throughput, unit.BitPerSecond, Higher},
		{Sync + P99, unit.Second, Lower},
		{Reads + Rate, unit.PerSecond, Higher},
		{Send + P50, unit.Second, Neutral},
		{CPUBusy + OfServer, unit.Ratio, Neutral},
		{"p75", unit.Second, Lower},
		{OfLayer(CPUPerOp, "vxlan"), unit.SecondPerOp, Neutral},
		{OfLayer(CPUPerGB, "tcp"), unit.SecondPerGB, Neutral},
		{"cpu-per-op.wire", "", ""},
		{OfCounter(ListenOverflows) + OfServer, unit.Count, Neutral},
		{OfCounter(OfNode + ConntrackUsed), unit.Ratio, Neutral},
		{"kernel.", "", ""},
		{"kernel.rate", "", ""},
		{"rate.tcp", "", ""},
		{"read-p99.999", unit.Second, Lower},
		{Status(2), unit.Ratio, Neutral},
		{"p0", "", ""},
		{"p100", "", ""},
		{"pods-p50", "", ""},
		{"read-write-rate", "", ""},
		{"-server", "", ""},
		{"encrypt-p50", "", ""},
		{"", "", ""},
	} {
		m, ok := Find(test.name)
		wrong := ok && (m.Name != test.name || m.Meaning == "")
		if wrong || ok != (test.unit != "") || m.Unit != test.unit || m.Better != test.better {
			t.Errorf("%q: %+v, %v", test.name, m, ok)
		}
	}
}

func TestOf(t *testing.T) {
	list := Of("encrypt-", P50, Failed)
	if len(list) != 2 || list[0].Name != "encrypt-p50" || list[0].Unit != unit.Second || list[1].Better != Lower {
		t.Errorf("%+v", list)
	}
	defer func() {
		if recover() == nil {
			t.Error("a metric that there is not was found")
		}
	}()
	Of("", "encrypt-p50")
}

func TestQuantile(t *testing.T) {
	for name, want := range map[string]float64{
		P50: 0.5, "p99.9": 0.999, Pods: 0, "p": 0, "p0": 0, "p100": 0, "pNaN": 0, Rate: 0,
	} {
		if got := Quantile(name); got != want {
			t.Errorf("%s: %g, wanted %g", name, got, want)
		}
	}
}

func TestStatusClass(t *testing.T) {
	for name, want := range map[string]string{Status(5): "5xx", "status-404": "404", Rate: ""} {
		if got := StatusClass(name); got != want {
			t.Errorf("%s: %q, wanted %q", name, got, want)
		}
	}
}
