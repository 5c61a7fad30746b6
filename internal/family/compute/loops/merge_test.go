package loops

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/family/compute"
	"github.com/knotmeter/knotmeter/internal/load/computeload"
	"github.com/knotmeter/knotmeter/internal/load/netload"
	"github.com/knotmeter/knotmeter/internal/machine"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
)

// report returns a run of a workload on two CPUs, after one of them was measured alone.
func report(t *testing.T, name string) run {
	t.Helper()
	w, err := compute.Parse(name)
	if err != nil {
		t.Fatal(err)
	}
	thread := func(cpu int) computeload.Thread {
		return computeload.Thread{CPU: cpu, Operations: 1000, Counted: 1e6, Elapsed: 1, Wall: 1, CPUTime: 1}
	}
	alone := computeload.Thread{Operations: 300, Counted: 3e5, Elapsed: 0.24, Wall: 0.24}
	return run{Workload: w, Window: time.Second, Report: computeload.Report{
		Threads: []computeload.Thread{thread(0), thread(1)}, Alone: &alone, Huge: 1,
		Steps: []float64{2e5, 2e5, 2e5, 2e5, 2e5, 2e5, 2e5, 2e5, 2e5, 2e5, 1e3},
		CPUs: []computeload.UsedCPU{{CPU: machine.CPU{Number: 0, Siblings: []int{0, 2}, Node: 0}, Before: 2.6e9},
			{CPU: machine.CPU{Number: 1, Siblings: []int{1, 3}, Node: -1}}},
		Machine: machine.CPUTimes{machine.User: 1.98, machine.Steal: 0.02},
	}}
}

func merged(t *testing.T, r run) result.Measurement {
	t.Helper()
	m, err := merge(r)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// value returns a value of a measurement; NaN if it has none.
func value(m result.Measurement, name string) float64 {
	v, has := (result.Run{Values: m.Values}).Value(name)
	if !has {
		return math.NaN()
	}
	return v.Number
}

func TestMerge(t *testing.T) {
	m := merged(t, report(t, "sha-256:cpus=2"))
	for name, want := range map[string]float64{
		metric.Bandwidth: 2e6, metric.Scaling: 0.8, metric.CPUAgents: 2, metric.CPUSteal: 0.01,
		metric.CPUOthers: 0,
	} {
		if got := value(m, name); math.Abs(got-want) > 1e-9*want {
			t.Errorf("%s is %g, want %g", name, got, want)
		}
	}
	if len(m.Invalid) > 0 || len(m.Warnings) > 0 || m.Window != 1 {
		t.Errorf("%+v", m)
	}
	if s := m.Series[0]; s.Name != metric.Bandwidth || len(s.Values) != 10 || s.Values[3] != 2e6 {
		t.Errorf("%+v", s)
	}
	for name, want := range map[string]string{
		"cpu.client": "0,1", "cpu.siblings": "0,2; 1,3", "cpu.numa-nodes": "0,unknown", "memory.huge-pages": "100 %",
		"cpu.frequency.before": "2600 MHz, unknown", "workload": "sha-256:cpus=2",
	} {
		if got := result.FactOf(m.Facts, name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	// A thread was kept from its CPU for a fifth of the window, in which the hypervisor had a hundredth of both.
	kept := report(t, "sort:cpus=2")
	kept.Report.Threads[1].CPUTime, kept.Report.Threads[1].Involuntary = 0.8, 20
	if got := value(merged(t, kept), metric.CPUOthers); math.Abs(got-0.09) > 1e-9 {
		t.Errorf("others had the CPUs for %g of the window", got)
	}
	kept.Report.Throttled = 1
	if got := value(merged(t, kept), metric.CPUOthers); !math.IsNaN(got) {
		t.Errorf("a throttled run was kept from its CPUs for %g of the window by others", got)
	}
	// The time of an access is that of each thread.
	if got := value(merged(t, report(t, "memory-latency:set=4MiB,cpus=2")), metric.Mean); math.Abs(got-1e-6) > 1e-12 {
		t.Errorf("a load takes %g s", got)
	}
}

func TestMergeLatencies(t *testing.T) {
	r := report(t, "timer:cpus=2")
	h := netload.NewHistogram()
	for i := range int64(1000) {
		h.Record(50_000 + i)
	}
	r.Report.Latency = h.Encode()
	m := merged(t, r)
	if p50, p99 := value(m, metric.P50), value(m, metric.P99); p50 < 50e-6 || p50 > 51e-6 || p99 < p50 {
		t.Errorf("%g, %g", p50, p99)
	}
	if !math.IsNaN(value(m, metric.P999)) || value(m, metric.Rate) != 2e6 || len(m.Histograms) != 1 {
		t.Errorf("%+v", m.Values)
	}
	r.Report.Latency = "damaged"
	if _, err := merge(r); err == nil {
		t.Error("a damaged histogram is no error")
	}
}

// TestGates checks that each defect makes a run invalid or adds a warning.
func TestGates(t *testing.T) {
	for _, test := range []struct {
		name    string
		change  func(*run)
		invalid result.Code
		warning result.Code
	}{
		{"a wrong result", func(r *run) { r.Report.Wrong = "2 + 2 = 5" }, result.WrongResult, ""},
		{"throttled", func(r *run) { r.Report.Throttled = 3 }, result.Throttled, ""},
		{"throttled as wanted", func(r *run) { r.Report.Throttled, r.CPULimit = 3, "950m" }, "", result.Throttled},
		{"nothing done", func(r *run) { r.Report.Threads[1] = computeload.Thread{} }, result.NothingDone, ""},
		{"a short window", func(r *run) { r.Report.Threads[0].Wall = 0.8 }, result.ShortWindow, ""},
		{"a long window", func(r *run) { r.Report.Threads[0].Wall, r.Report.Threads[0].CPUTime = 1.2, 1.2 },
			result.ShortWindow, ""},
		{"some stolen", func(r *run) { r.Report.Machine[machine.Steal] = 0.1 }, "", result.CPUStolen},
		{"much stolen", func(r *run) { r.Report.Machine[machine.Steal] = 0.4 }, result.CPUStolen, ""},
		{"a tick of a short window", func(r *run) {
			r.Window, r.Report.Machine = 100*time.Millisecond, machine.CPUTimes{machine.User: 0.18, machine.Steal: 0.02}
			for i := range r.Report.Threads {
				r.Report.Threads[i].Wall, r.Report.Threads[i].CPUTime = 0.1, 0.1
			}
		}, "", ""},
		{"other programs", func(r *run) { r.Report.Threads[0].CPUTime, r.Report.Threads[0].Involuntary = 0.9, 12 }, "",
			result.CPUShared},
	} {
		r := report(t, "sort:cpus=2")
		test.change(&r)
		m := merged(t, r)
		codes := func(list []result.Warning) (codes []result.Code) {
			for _, w := range list {
				codes = append(codes, w.Code)
			}
			return slices.DeleteFunc(codes, func(c result.Code) bool { return c == result.MetricMissing })
		}
		if got := codes(m.Invalid); test.invalid == "" && len(got) > 0 ||
			test.invalid != "" && !slices.Equal(got, []result.Code{test.invalid}) {
			t.Errorf("%s: invalid for %v", test.name, m.Invalid)
		}
		if got := codes(m.Warnings); test.warning == "" && len(got) > 0 ||
			test.warning != "" && !slices.Equal(got, []result.Code{test.warning}) {
			t.Errorf("%s: warnings %v", test.name, m.Warnings)
		}
	}
	// A thread that sleeps is not kept from its CPU by others.
	r := report(t, "timer:cpus=2")
	r.Report.Threads[0].CPUTime, r.Report.Threads[0].Involuntary = 0.1, 12
	if m := merged(t, r); len(m.Warnings) > 0 {
		t.Errorf("%v", m.Warnings)
	}
}

func TestConfig(t *testing.T) {
	r := report(t, "memory-walk:pages=huge,cpus=core")
	times := family.Times{Window: time.Second}
	c := config(r.Workload, times)
	if c.Loop != "memory-walk" || !c.Core || c.CPUs != 0 || c.Pages != computeload.HugePages || c.Set != 256<<20 ||
		c.Alone != 250*time.Millisecond {
		t.Errorf("%+v", c)
	}
	if c := config(report(t, "sort").Workload, times); c.CPUs != 1 || c.Core || c.Alone != 0 {
		t.Errorf("%+v", c)
	}
	err := New().Supports(report(t, "stress-ng-vm").Workload)
	if err == nil || !strings.Contains(err.Error(), "another program") {
		t.Error(err)
	}
}
