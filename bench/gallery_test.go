package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// exhibits is an experiment with one case, in which each target is slower than the first by its number in tenths.
func exhibits(allPairs bool, names ...string) result.Results {
	c := result.Case{Name: "pod-pod/other/tcp-rr", Path: "pod-pod/other", Workload: "tcp-rr", Role: result.Primary,
		Metric: "p50"}
	r := result.Results{
		Experiment: result.Experiment{Schema: result.ExperimentSchema, ID: "x", Version: "v", Seed: 1, Tool: "native",
			Primaries: []string{c.Name}, Baseline: names[0], Cases: []result.Case{c},
			Design: result.Design{Blocks: 15, AllPairs: allPairs, Duration: 1, Alpha: 0.05, Delta: 0.02}},
		Facts: map[string][]result.Fact{},
	}
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for i, name := range names {
		r.Experiment.Targets = append(r.Experiment.Targets, result.Target{Name: name})
		r.Facts[name] = []result.Fact{{Name: "kernel", Value: "6.18"}, {Name: "cni", Value: "of " + name}}
		for block := range r.Experiment.Design.Blocks {
			value := 20e-6 * (1 + 0.1*float64(i)) * (1 + 0.0001*float64((7*block+3*i)%11))
			r.Runs = append(r.Runs, result.Run{ID: fmt.Sprint(name, block), Case: c.Name, Target: name, Block: block + 1,
				Attempt: 1, Slot: i + 1, Start: start.Add(time.Duration(block*len(names)+i) * 6 * time.Second), Window: 6,
				Values: []result.Value{{Metric: "p50", Unit: unit.Second, Better: metric.Lower, Number: value}}})
		}
	}
	return r
}

func TestGalleryPages(t *testing.T) {
	cnis := exhibits(false, "flannel-host-gw", "calico-direct", "macvlan")
	cnis.Experiment.NotMeasured = []result.NotMeasured{{Target: "macvlan", Case: "*", Reason: "it has no such path"}}
	cnis.Runs = cnis.Runs[:30]
	bare := exhibits(true, bareNative, bareVXLAN, "flannel-host-gw", "flannel-vxlan")
	var text []byte
	services := exhibits(false, "flannel-host-gw", "calico-direct", "macvlan")
	services.Experiment.Cases[0].Name, services.Experiment.Cases[0].Path = "pod-svc/other/tcp-rr", "pod-svc/other"
	for i := range services.Runs {
		services.Runs[i].Case = "pod-svc/other/tcp-rr"
	}
	for name, list := range map[string][]result.Results{"one-machine-cnis": {cnis, services}, "one-machine-bare": {bare}} {
		page, err := pages[name].text(list)
		if err != nil {
			t.Fatal(err)
		}
		text = append(text, page...)
	}
	for _, want := range []string{
		"| 15 | 30 | 2026-01-02 03:04 UTC | 4m0s |", "| 15 | 60 | 2026-01-02 03:04 UTC | 6m0s |", "Linux 6.18,",
		"| | pod-pod/other | pod-svc/other |\n",
		"| flannel-host-gw | 20.0 µs | 20.0 µs |\n| calico-direct | 22.0 µs (+10.0 %) | 22.0 µs (+10.0 %) |\n" +
			"| macvlan | – | 24.0 µs",
		"| flannel-host-gw, to lab:native | +20.0 % [",
		"| flannel-vxlan, to lab:vxlan | +18.2 % [",
		"| calico-vxlan, to lab:vxlan | – |",
		"| the lab | +10.0 % [",
		"| flannel | +8.4 % [",
		"| calico-direct | of calico-direct | unknown |",
	} {
		if !strings.Contains(strings.ReplaceAll(string(text), " ", " "), want) {
			t.Errorf("the page does not have %q:\n%s", want, text)
		}
	}
}
