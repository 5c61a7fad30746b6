package api

import (
	"os"
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/result"
)

// TestNames checks that every case can be read back from its name, and is in a suite once.
func TestNames(t *testing.T) {
	for _, s := range suites() {
		seen := map[string]bool{}
		for _, c := range s.Cases {
			again, err := family.List{Family()}.Parse(c.Name(), "")
			if err != nil || again.Workload != c.Workload {
				t.Errorf("%s: %s is read as %+v, %v", s.Name, c.Name(), again, err)
			}
			if seen[c.Name()] {
				t.Errorf("%s has %s twice", s.Name, c.Name())
			}
			seen[c.Name()] = true
		}
	}
}

// TestCases checks that the suite has every verb of every resource, and primary cases only on resources that no
// controller works on.
func TestCases(t *testing.T) {
	has, primary := map[string]bool{}, 0
	for _, c := range suites()[0].Cases {
		has[c.Name()] = true
		if c.Role == result.Primary {
			primary++
			if c.Workload.(Workload).Resource != "configmap" {
				t.Errorf("%s is primary", c.Name())
			}
		}
		if why := c.Workload.(Workload).Disturbs(family.Times{Warmup: standard / 8, Window: standard}); why != "" {
			t.Errorf("%s is beyond what needs no consent: %s", c.Name(), why)
		}
	}
	if primary != len(primaries) {
		t.Errorf("%d cases are primary", primary)
	}
	for _, r := range Resources() {
		for _, v := range Verbs(r) {
			if !has["api/"+r+"/"+v] {
				t.Errorf("there is no api/%s/%s", r, v)
			}
		}
	}
	for _, name := range []string{"api/floor", "api/pod-startup", "api/pod-deletion",
		"api/configmap/list:objects=1000,consistent=true", "api/configmap/list:consistent=true", "api/deployment/scale"} {
		if !has[name] {
			t.Errorf("there is no %s", name)
		}
	}
}

// TestKBenchStartsFewPods checks that no case of K-Bench's needs consent for the pods that it starts.
func TestKBenchStartsFewPods(t *testing.T) {
	for _, s := range suites() {
		for _, c := range s.Cases {
			w := c.Workload.(Workload)
			if why := w.Disturbs(family.Times{Warmup: s.Duration / 8, Window: s.Duration}); why != "" {
				t.Errorf("%s: %s: %s", s.Name, c.Name(), why)
			}
		}
	}
}

// TestKBenchNames checks that the cases of K-Bench are those of the published table, with which reports compare them.
func TestKBenchNames(t *testing.T) {
	table, err := os.ReadFile("../../published/tables/constellation-2.0-kbench.yaml")
	if err != nil {
		t.Fatal(err)
	}
	has := map[string]bool{}
	for _, c := range kbench() { // the others were not published
		has[c.Name()] = true
		if !strings.Contains(string(table), "case: "+c.Name()+",") {
			t.Errorf("the table has no %s", c.Name())
		}
	}
	for line := range strings.SplitSeq(string(table), "\n") {
		_, rest, is := strings.Cut(line, "case: api/")
		if name, _, _ := strings.Cut(rest, ","); is && !has["api/"+name] {
			t.Errorf("the suite has no api/%s", name)
		}
	}
}
