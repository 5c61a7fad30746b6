package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/golden"
)

// TestCausesPage checks the page about right causes, a wrong one, a fault without effect, and a false one.
func TestCausesPage(t *testing.T) {
	harmed := func(name string, worse bool, causes ...string) faultExperiment {
		i := slices.IndexFunc(faults, func(f fault) bool { return f.name == name })
		return faultExperiment{Fault: name, HeldOut: faults[i].heldOut, Wanted: faults[i].rules, Decided: true, Worse: worse,
			Causes: causes, Seconds: 10, Version: "v1"}
	}
	golden.Check(t, "testdata/causes.md", string(causesPage([]faultExperiment{
		harmed("VXLAN", true, "encapsulation", "cpu-layers"),
		harmed("VXLAN", true, "cpu-layers", "encapsulation"),
		harmed("loss", true),
		harmed("loss", false, "retransmissions"),
		harmed("IP-in-IP", true, "encapsulation"),
		{Fault: noFault, Version: "v1"},
		{Fault: noFault, Version: "v1", Decided: true, Causes: []string{"steal"}},
	})))
	if page := string(causesPage(nil)); !strings.Contains(page, "–") {
		t.Error(page)
	}
}

// TestTrials checks that a seed always gives the same experiment, that every fault occurs, and how options are added.
func TestTrials(t *testing.T) {
	seen := map[string]int{}
	for seed := range uint64(700) {
		a, args := planExperiment(seed)
		b, again := planExperiment(seed)
		if a.Fault != b.Fault || !slices.Equal(args, again) {
			t.Errorf("seed %d: %v, then %v", seed, args, again)
		}
		seen[a.Fault]++
	}
	for _, f := range faults {
		if seen[f.name] < 5 {
			t.Errorf("%s came up %d times", f.name, seen[f.name])
		}
	}
	if n := seen[noFault]; n != 200 {
		t.Errorf("%d A/A experiments of 700", n)
	}
	for _, test := range [][]string{
		{"lab:vxlan", "", "lab:vxlan"},
		{"lab:native?rate=1Mbit/s", "rate=2Mbit/s&mtu=9000", "lab:native?rate=1Mbit/s&mtu=9000"},
	} {
		if got := withOptions(test[0], test[1]); got != test[2] {
			t.Errorf("%s, not %s", got, test[2])
		}
	}
}

func TestTrialRead(t *testing.T) {
	x := faultExperiment{Args: []string{"--case", requestCase}}
	err := x.readOutcome([]byte(`{"comparisons":[{"role":"primary","verdict":"different","direction":"worse"}],
		"causes":[{"case":"` + requestCase + `",
		"causes":[{"rule":"a","state":"supported"},{"rule":"b","state":"contradicted"}]},
		{"case":"node-node/tcp-rr","causes":[{"rule":"c","state":"supported"}]}]}`))
	if err != nil || !x.Decided || !x.Worse || !slices.Equal(x.Causes, []string{"a"}) {
		t.Errorf("%+v, %v", x, err)
	}
	if err := x.readOutcome(nil); err == nil {
		t.Error("nothing is taken for a comparison")
	}
	x = faultExperiment{}
	err = x.readOutcome([]byte(`{"comparisons":[{"role":"exploratory"}]}`))
	if err != nil || x.firstCause() != "not measured" {
		t.Errorf("%+v, %v", x, err)
	}
}
