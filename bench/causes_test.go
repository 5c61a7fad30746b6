package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/explain"
	"github.com/knotmeter/knotmeter/internal/golden"
)

// TestCausesPage checks the page about right causes, a wrong one, a fault without effect, and a false one.
func TestCausesPage(t *testing.T) {
	harmed := func(name string, worse bool, causes ...string) faultExperiment {
		i := slices.IndexFunc(faults, func(f fault) bool { return f.name == name })
		held := slices.ContainsFunc(heldOutFaults, func(f fault) bool { return f.name == name })
		return faultExperiment{Fault: name, HeldOut: held, Wanted: faults[i].rules, Decoys: faults[i].decoys,
			Decided: true, Worse: worse, Causes: causes, Seconds: 10, Version: "v1", Rules: explain.Rules}
	}
	pair := func(name, worse string, causes ...string) clusterVerdict {
		p := clusterPairs[slices.IndexFunc(clusterPairs, func(p clusterPair) bool { return p.name == name })]
		v := clusterVerdict{Pair: name, Case: requestCase, Rules: explain.Rules, Version: "v1", HeldOut: p.heldOut,
			Verdict: "undecided", Worse: worse, Causes: causes, Same: !p.hasDifference(), Forbidden: p.forbidden}
		if worse != "" {
			v.Verdict, v.Wanted = "different", map[string][]string{"a": p.wantedA, "b": p.wantedB}[worse]
		}
		return v
	}
	old := harmed("VXLAN", true, "encapsulation")
	old.Rules = "older"
	page := string(causesPage([]faultExperiment{
		old,
		harmed("VXLAN", true, "encapsulation", "cpu-layers"),
		harmed("VXLAN", true, "cpu-layers", "encapsulation"),
		harmed("loss", true),
		harmed("loss", false, "retransmissions"),
		harmed("proxies, connections", true, "proxy"),
		harmed("rules next to a better congestion control", true, "congestion-control", "packet-filter"),
		harmed("offloads off, small requests", false, "offloads"),
		{Fault: "IPsec", Wanted: []string{"encryption"}, HeldOut: true, Missing: true, Reason: "no ESP",
			Rules: explain.Rules},
		{Fault: noFault, Version: "v1", Rules: explain.Rules},
		{Fault: noFault, Version: "v1", Rules: explain.Rules, Decided: true, Causes: []string{"steal"}},
	}, []clusterVerdict{
		pair("flannel, host-gw and VXLAN", "b", "encapsulation"),
		pair("flannel, host-gw and VXLAN", "b"),
		pair("flannel and eBPF of Cilium", "a", "encapsulation", "packet-filter"),
		pair("the same flannel twice", ""),
		pair("decoy: zones", "b", "steal"),
		pair("Cilium, native and VXLAN", "b", "cpu-layers", "encapsulation"),
		{Pair: "decoy: zones", Case: streamCase, Rules: explain.Rules, Version: "v1", Reason: "it has no comparison"},
	}))
	golden.Check(t, "testdata/causes.md", strings.ReplaceAll(page, explain.Rules, "RULES"))
	if page := string(causesPage(nil, nil)); !strings.Contains(page, "None has been measured by these rules yet.") {
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
		if seen[f.name] < 3 {
			t.Errorf("%s came up %d times", f.name, seen[f.name])
		}
	}
	if n := seen[noFault]; n != 140 {
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
	rules := `"rules":"` + explain.Rules + `",`
	err := x.readOutcome([]byte(`{` + rules + `"comparisons":[{"role":"primary","case":"` + requestCase + `",
		"verdict":"different","direction":"worse"}],
		"causes":[{"case":"` + requestCase + `",
		"causes":[{"rule":"a","state":"supported"},{"rule":"b","state":"contradicted"}]},
		{"case":"node-node/tcp-rr","causes":[{"rule":"c","state":"supported"}]}]}`))
	if err != nil || !x.Decided || !x.Worse || !slices.Equal(x.Causes, []string{"a"}) {
		t.Errorf("%+v, %v", x, err)
	}
	if err := x.readOutcome(nil); err == nil {
		t.Error("nothing is taken for a comparison")
	}
	if err := x.readOutcome([]byte(`{"rules":"older"}`)); err == nil {
		t.Error("a program with other rules is counted")
	}
	x = faultExperiment{}
	err = x.readOutcome([]byte(`{` + rules + `"comparisons":[{"role":"exploratory"}],
		"not_measured":[{"reason":"no ESP"}]}`))
	if err != nil || x.firstCause() != "not measured" || x.Reason != "no ESP" {
		t.Errorf("%+v, %v", x, err)
	}
}

// TestClusterPairs checks the verdicts that are read of a pair: which side is worse decides about the right cause, and
// on one node no tunnel is right.
func TestClusterPairs(t *testing.T) {
	p := clusterPairs[0]
	list, err := p.read([]byte(`{"rules":"` + explain.Rules + `","comparisons":[
		{"role":"primary","case":"` + requestCase + `","verdict":"different","direction":"worse"},
		{"role":"primary","case":"` + streamCase + `","verdict":"different","direction":"better"},
		{"role":"primary","case":"pod-pod/same/tcp-rr","verdict":"different","direction":"worse"}],
		"causes":[{"case":"` + requestCase + `","causes":[{"rule":"encapsulation","state":"supported"},
		{"rule":"offloads","state":"differs, effect not shown"}]},
		{"case":"pod-pod/same/tcp-rr","causes":[{"rule":"encapsulation","state":"supported"}]}]}`))
	if err != nil || len(list) != len(clusterCases) {
		t.Fatalf("%+v, %v", list, err)
	}
	for i, v := range list {
		right, forbidden := v.Case == requestCase, v.Case == "pod-pod/same/tcp-rr"
		if v.right() != right || haveOneOf(v.Causes, v.Forbidden) != forbidden || (v.Verdict == "") != (i == 2 || i == 3) {
			t.Errorf("%+v", v)
		}
	}
	if _, err := p.read([]byte(`{"rules":"older"}`)); err == nil {
		t.Error("a program with other rules is counted")
	}
	names := map[string]bool{}
	for _, p := range clusterPairs {
		if names[p.name] {
			t.Errorf("%s is there twice", p.name)
		}
		names[p.name] = true
	}
}
