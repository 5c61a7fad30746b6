package main

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/knotmeter/knotmeter/internal/audit"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// galleryResults returns an experiment with one case, in which target i is slower than the first by i tenths.
func galleryResults(allPairs bool, names ...string) result.Results {
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

// withReference adds the node-to-node reference, which takes half the time of the case on the first target, and 1 µs
// more on each further one.
func withReference(r result.Results) result.Results {
	c := result.Case{Name: "node-node/tcp-rr", Path: "node-node", Workload: "tcp-rr", Role: result.Exploratory,
		Metric: "p50"}
	r.Experiment.Cases[0].Bound = c.Name
	r.Experiment.Cases = append(r.Experiment.Cases, c)
	for _, run := range slices.Clone(r.Runs) {
		run.ID, run.Case, run.Start = run.ID+"-node", c.Name, run.Start.Add(3*time.Second)
		run.Values = []result.Value{{Metric: "p50", Unit: unit.Second, Better: metric.Lower,
			Number: (10 + float64(run.Slot-1)) * 1e-6 * (1 + 0.0001*float64(run.Block%3))}}
		r.Runs = append(r.Runs, run)
	}
	return r
}

func TestGalleryPages(t *testing.T) {
	cnis := galleryResults(false, "flannel-host-gw", "calico-direct", "macvlan")
	cnis.Experiment.NotMeasured = []result.NotMeasured{{Target: "macvlan", Case: "*", Reason: "it has no such path"}}
	cnis.Runs = cnis.Runs[:30]
	bare := withReference(
		galleryResults(true, bareNative, bareVXLAN, "flannel-host-gw", "cilium-native-kpr", "cilium-vxlan"))
	var text []byte
	services := galleryResults(false, "flannel-host-gw", "calico-direct", "macvlan")
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
		"| 15 | 30 | 2026-01-02 03:04 UTC | 4m0s |", "| 15 | 150 | 2026-01-02 03:04 UTC | 8m0s |", "Linux 6.18,",
		"| | pod-pod/other | pod-svc/other |\n",
		"| flannel-host-gw | 20.0 µs | 20.0 µs |\n| calico-direct | 22.0 µs (+10.0 %) | 22.0 µs (+10.0 %) |\n" +
			"| macvlan | – | 24.0 µs",
		"has Multus too",
		" 8 intervals of the two\ntables, at 99.3 % each, hold at once at 95 %; with those of the next section, all hold " +
			"at 90 %.",
		"all 10 pairs of targets and cases, at\n99.5 % each, hold at once at 95 %.",
		"which add up over the page: at most 5 % that any\nverdict about its primary cases is false",
		"| lab:native | +10.0 µs [", "| flannel-host-gw | +12.0 µs [",
		"| flannel-host-gw, less lab:native | +2.0 µs [",
		"| cilium-native-kpr, less lab:native | +3.0 µs [",
		"| cilium-vxlan, less lab:vxlan | +3.0 µs [",
		"| lab:vxlan, to lab:native | +10.0 % [",
		"| flannel-vxlan, to flannel-host-gw | – |",
		"| cilium-vxlan, to cilium-native-kpr | +7.7 % [",
		"| target | pod-pod/other tcp-rr, p50 | node-node tcp-rr, p50 |\n|---|---|---|\n| lab:native | 20.0 µs | 10.0 µs |",
		"| calico-direct | of calico-direct | unknown |",
	} {
		if !strings.Contains(strings.ReplaceAll(string(text), " ", " "), want) {
			t.Errorf("the page does not have %q:\n%s", want, text)
		}
	}
}

// TestGalleryExperiment checks that the experiment has the bare datapaths, every product with the number of its
// cluster, and the reference of each path between pods.
func TestGalleryExperiment(t *testing.T) {
	text, err := os.ReadFile("../docs/gallery/one-machine-bare.yaml")
	if err != nil {
		t.Fatal(err)
	}
	wanted := []string{bareNative, bareVXLAN}
	for id, network := range products {
		spec := fmt.Sprintf("kube:knotmeter-test-%d?label=%s", id, network[0])
		wanted = append(wanted, strings.Replace(spec, "test-0", "test", 1))
	}
	for _, workload := range []string{"tcp-stream", "tcp-rr", "tcp-crr", "udp-rr"} {
		wanted = append(wanted, "pod-pod/other/"+workload, "node-node/"+workload)
	}
	for _, w := range wanted {
		if !strings.Contains(string(text), "\n  - "+w+"\n") {
			t.Errorf("the experiment does not have %s", w)
		}
	}
	for _, p := range pairings {
		if !slices.ContainsFunc(products, func(network []string) bool { return network[0] == p.product }) {
			t.Errorf("%s is no product", p.product)
		}
	}
}

func TestGalleryPagesWanted(t *testing.T) {
	all, err := gallery{}.pages()
	if err != nil || len(all) != len(pages) {
		t.Errorf("%q, %v", all, err)
	}
	if one, err := (gallery{page: "one-machine-bare"}).pages(); err != nil || len(one) != 1 {
		t.Errorf("%q, %v", one, err)
	}
	if _, err := (gallery{page: "two-machines"}).pages(); err == nil {
		t.Error("a page that does not exist is taken")
	}
}

// TestBeyondReference checks that a block counts if both runs of its last attempt are valid and without errors.
func TestBeyondReference(t *testing.T) {
	r := withReference(galleryResults(true, "a"))
	again := r.Runs[0] // of block 1
	again.ID, again.Attempt = "again", 2
	again.Values = []result.Value{{Metric: "p50", Unit: unit.Second, Better: metric.Lower, Number: 25e-6}}
	r.Runs = append(r.Runs, again)
	r.Runs[1].Invalid = []result.Warning{{Code: "late"}} // of block 2
	x := galleryExperiment{Results: r}
	x.Findings = []audit.Finding{{Severity: audit.Error, Runs: []string{r.Runs[17].ID}}} // of the reference in block 3
	got := x.beyondReference(r.Experiment.Cases[0], "a")
	if len(got) != 13 || math.Abs(got[1]-15e-6) > 0.01e-6 || math.Abs(got[4]-10e-6) > 0.1e-6 {
		t.Errorf("%v", got)
	}
}

func TestAdded(t *testing.T) {
	of := func(n int, value func(i int) float64) perBlock {
		list := perBlock{}
		for i := range n {
			list[i] = value(i)
		}
		return list
	}
	near := func(i int) float64 { return 5e-6 + 1e-8*float64(i) }
	for _, test := range []struct {
		of   perBlock
		time bool
		want string
	}{
		{of(15, near), true, "+5.1 µs [+5.0, +5.1]"},
		{of(15, func(i int) float64 { return near(i) - 5.07e-6 }), true, "+0.0 µs [-0.0, +0.1] undecided"},
		{of(15, func(i int) float64 { return math.Log(0.9) + near(i) }), false, "-10.0 % [-10.0, -10.0]"},
		{of(5, near), true, "+5.0 µs, no interval: undecided"},
		{nil, true, "–"},
	} {
		if got := formatEstimate(test.of, test.time, 0.001); got != test.want {
			t.Errorf("%q, want %q", got, test.want)
		}
	}
}
