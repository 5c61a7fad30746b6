package fio

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
)

func read(t testing.TB, name string) printed {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	p, err := parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestRecording reads the output of fio 3.33 for a mixed job: six documents, with notes before them.
func TestRecording(t *testing.T) {
	p := read(t, "mixed.json")
	o, err := p.whole()
	if err != nil || len(p.documents) < 4 {
		t.Fatalf("%d documents, %v", len(p.documents), err)
	}
	g := o.Groups()[0]
	m := g.Measure()
	run := result.Run{Values: m.Values}
	sum := func(metric string) float64 {
		r, _ := run.Value("read-" + metric)
		w, _ := run.Value("write-" + metric)
		return r.Number + w.Number
	}
	for _, metric := range []string{"rate", "throughput", "operations"} {
		if v, ok := run.Value(metric); !ok || math.Abs(v.Number-sum(metric)) > 1e-9*v.Number {
			t.Errorf("%s is %g, its parts %g", metric, v.Number, sum(metric))
		}
	}
	// fio's own percentiles of one side equal those of its bins, to three digits.
	for _, p := range percentiles {
		got, _ := run.Value("read-" + p)
		want := newDistribution(o.Jobs[0].Read.Whole, nil).Quantile(metric.Quantile(p))
		if math.Abs(got.Number/want-1) > 0.02 {
			t.Errorf("read-%s is %g, fio says %g", p, got.Number, want)
		}
	}
	if cpu, _ := run.Value("cpu-agents"); math.Abs(cpu.Number-4*(o.Jobs[0].User+o.Jobs[0].System)/100) > 1e-9 {
		t.Errorf("four threads used %g CPUs", cpu.Number)
	}
	steps := &measurement{family.NewBuilder(nil)}
	steps.steps(p.documents)
	for _, s := range steps.Series {
		total, _ := run.Value(s.Name)
		mean := 0.0
		for _, v := range s.Values {
			mean += v / float64(len(s.Values))
		}
		if math.Abs(mean/total.Number-1) > 0.01 || len(s.Values) != 3 {
			t.Errorf("the series %s has %v, around %g where the run has %g", s.Name, s.Values, mean, total.Number)
		}
	}
}

func TestGates(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(*Output)
		notes string
		want  string
	}{
		{"good", func(*Output) {}, "", ""},
		{"error", func(o *Output) { o.Jobs[0].Error = 5 }, "", "failed with error 5"},
		{"short", func(o *Output) { o.Jobs[0].Read.Short = 2 }, "", "2 operations were short or dropped"},
		{"syncs counted as reads", func(o *Output) { o.Jobs[0].Trim.Short = 7 }, "", ""},
		{"depth", func(o *Output) { o.Jobs[0].Levels = map[string]float64{"1": 50, "8": 50} }, "", "the queue depth of 16 " +
			"was reached in 0 % of"},
		{"depth enough", func(o *Output) { o.Jobs[0].Levels = map[string]float64{"8": 9, "16": 91} }, "", ""},
		{"file", func(*Output) {}, "x: Laying out IO file (1 file / 64MiB)\n", "fio made it anew"},
		{"window", func(o *Output) { o.Jobs[0].Read.Runtime, o.Jobs[0].Write.Runtime = 2000, 2000 }, "",
			"fio measured 2 s of 3 s"},
		{"cpu", func(o *Output) { o.Jobs[0].User, o.Jobs[0].System = 60, 38 }, "", "the client's CPU was the limit"},
	} {
		o := read(t, "mixed.json").documents[len(read(t, "mixed.json").documents)-1]
		c.spoil(&o)
		g := o.Groups()[0]
		m := &measurement{family.NewBuilder(nil)}
		m.group(g)
		m.gates(job{depth: 16, engine: "libaio"}, 3*time.Second, g, c.notes)
		if got := m.Invalid; (len(got) == 0) != (c.want == "") || len(got) > 0 && !strings.Contains(got[0].Text, c.want) {
			t.Errorf("%s: %v", c.name, got)
		}
	}
	o := read(t, "mixed.json").documents[len(read(t, "mixed.json").documents)-1]
	o.Jobs[0].Read.Submission.Mean = 0.8 * o.Jobs[0].Read.Whole.Mean
	m := &measurement{family.NewBuilder(nil)}
	m.warnings(job{depth: 16, engine: "libaio", direct: true}, o.Groups()[0])
	if got := m.Warnings; len(got) != 1 || !strings.Contains(got[0].Text, "80.0 % of the latency of reads") {
		t.Errorf("%v", got)
	}
}

func TestLeftOutAtTheEnd(t *testing.T) {
	reads := func(total float64) Group { return Group{Jobs: []Job{{Read: Side{Total: total}}}} }
	for _, c := range []struct {
		depth, threads int
		counted        float64
		want           string
	}{
		{64, 1, 1000, "may be 6.40 %"}, {16, 4, 500, "may be 12.8 %"}, {64, 1, 6401, ""},
		{1, 1, 99, "may be 1.01 %"}, {1, 1, 0, ""}, {64, 1, 2, "may be 100 %"},
	} {
		m := &measurement{family.NewBuilder(nil)}
		m.warnings(job{depth: c.depth, threads: c.threads, direct: true}, reads(c.counted))
		got := result.Joined(m.Warnings)
		if !strings.Contains(got, c.want) || (c.want == "") != (got == "") {
			t.Errorf("%d x %d of %g: %q", c.depth, c.threads, c.counted, got)
		}
	}
}

func TestDepths(t *testing.T) {
	levels := map[string]float64{"1": 1, "2": 1, "4": 1, "8": 1, "16": 1, "32": 25, ">=64": 70}
	for depth, want := range map[int]float64{1: 1, 2: .99, 3: .99, 4: .98, 16: .96, 33: .95, 64: .70, 128: .70} {
		if got, known := atDepth(levels, depth); !known || math.Abs(got-want) > 1e-9 {
			t.Errorf("%d: %g, %t", depth, got, known)
		}
	}
	if _, known := atDepth(map[string]float64{"1": 0}, 4); known {
		t.Error("nothing was told")
	}
}

// TestLeaveOut checks that a percentile without enough operations is left out, whichever part it is of.
func TestLeaveOut(t *testing.T) {
	m := &measurement{family.NewBuilder(metricsOf(nil, true))}
	known := map[string]float64{"50.000000": 1e6, "99.000000": 1e6, "99.900000": 1e6}
	m.latencies("", Latency{N: 400, Mean: 1e6, Percentiles: known}, nil)
	m.latencies(metric.Sync, Latency{N: 367, Mean: 1e6, Percentiles: known}, nil)
	r := result.Run{Values: m.Values}
	for name, want := range map[string]bool{
		"p50": true, "p99": true, "p99.9": false, "sync-p99": false, "sync-p50": true, "sync-mean": true,
	} {
		if _, has := r.Value(name); has != want {
			t.Errorf("%s: %t", name, has)
		}
	}
	about := func(name string) bool {
		return slices.ContainsFunc(m.Warnings, func(w result.Warning) bool {
			return w.Code == result.FewSamples && w.Metric == name && strings.HasPrefix(w.Text, name+" needs ")
		})
	}
	if !about("p99.9") || !about("sync-p99") || about("p99") || about("sync-p50") {
		t.Errorf("%+v", m.Warnings)
	}
}

func TestNoOutput(t *testing.T) {
	for _, text := range []string{"", "fio: pid=3, err=22/file",
		"{", `{"jobs":[]}`, `{"fio version":"fio-3.33","jobs":"x"}`} {
		if _, err := parse([]byte(text)); !errors.Is(err, ErrOutput) {
			t.Errorf("%q: %v", text, err)
		}
	}
	p, err := parse([]byte(`note {"fio version":"fio-3.33","jobs":[]} end`))
	if err != nil || p.notes != "note  end" || string(p.last) != `{"fio version":"fio-3.33","jobs":[]}` {
		t.Errorf("%+v, %v", p, err)
	}
	if _, err := p.whole(); !errors.Is(err, ErrOutput) {
		t.Errorf("%v", err)
	}
}

// FuzzParse checks that any output gives finite values that are not negative.
func FuzzParse(f *testing.F) {
	text, err := os.ReadFile("testdata/mixed.json")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text[len(text)/2:])
	f.Add([]byte(`{"fio version":"fio-3.33","jobs":[{"jobname":"a",
		"read":{"io_bytes":1,"total_ios":1,"iops":1e308,"bw_bytes":-3,"runtime":1e300,
		"clat_ns":{"N":1,"mean":1,"bins":{"5":1,"-1":2,"x":3}}},
		"iodepth_level":{">=64":1e9}}]}`))
	f.Add([]byte(`x {"fio version":"fio-3.33","jobs":[]}{"fio version":"y"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := parse(data)
		if err != nil {
			return
		}
		steps := &measurement{family.NewBuilder(nil)}
		steps.steps(p.documents)
		for _, s := range steps.Series {
			for _, v := range s.Values {
				if math.IsNaN(v) || math.IsInf(v, 0) {
					t.Fatalf("%s has %g", s.Name, v)
				}
			}
		}
		for i := range p.documents {
			for _, g := range p.documents[i].Groups() {
				m := &measurement{family.NewBuilder(metricsOf(allParts, true))}
				m.group(g)
				m.gates(job{depth: 64, engine: "libaio"}, time.Second, g, p.notes)
				m.warnings(job{depth: 64, engine: "libaio"}, g)
				for _, v := range append(g.Measure().Values, m.Values...) {
					if !(v.Number >= 0) || math.IsInf(v.Number, 0) {
						t.Fatalf("%s is %g", v.Metric, v.Number)
					}
				}
				if m.Window < 0 || math.IsNaN(m.Window) {
					t.Fatalf("the window is %g", m.Window)
				}
			}
		}
	})
}

// TestUnsteady checks that a rate that did not become steady in time causes a warning.
func TestUnsteady(t *testing.T) {
	m := &measurement{family.NewBuilder(nil)}
	m.steadiness(job{precondition: true, writes: true}, layout{}, precondition{seconds: 600})
	if len(m.Warnings) != 1 || m.Warnings[0].Code != result.Unsteady ||
		result.FactOf(m.Facts, "precondition.steady") != "no" || result.FactOf(m.Facts, "precondition.time") != "600 s" {
		t.Errorf("%+v, %v", m.Warnings, m.Facts)
	}
}
