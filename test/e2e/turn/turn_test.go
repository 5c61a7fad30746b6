//go:build linux

// Package turn measures real CNIs in turn on one cluster, with a new installation for each visit.
package turn

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/store"
	"github.com/knotmeter/knotmeter/test/e2e"
)

// installations is the number of installations of each CNI: the fewest blocks that allow a verdict on two comparisons.
const installations = 8

// The networks to compare, the baseline first, each with its name in the facts of a cluster.
var networks = [][2]string{{"flannel-vxlan", "flannel"}, {"calico-vxlan", "calico"}, {"cilium-vxlan", "cilium"}}

// TestInTurn checks that each block installs each CNI once, as the facts of the visit show, and measures it; the
// verdicts rest on all installations, and the original network is restored at the end.
func TestInTurn(t *testing.T) {
	e2e.NeedParts(t)
	c, before := e2e.Open(t), e2e.OpenLocal(t).Network
	dir := t.TempDir()
	out, experiment := filepath.Join(dir, "out"), filepath.Join(dir, "experiment.json") // JSON is YAML
	var targets []map[string]string
	for _, n := range networks {
		targets = append(targets, map[string]string{
			"target": "kube:?kubeconfig=" + c.Kubeconfig + "&label=" + n[0],
			"switch": e2e.NetworkSwitch(c.Kubeconfig, n[0]),
		})
	}
	text, err := json.Marshal(map[string]any{
		"apiVersion": "knotmeter/v1", "kind": "Experiment", "targets": targets,
		"restore": e2e.NetworkSwitch(c.Kubeconfig, before), "suite": "network:quick",
		"cases": []string{"pod-pod/other/tcp-rr"}, "blocks": installations, "duration": "2s", "warmup": "500ms",
	})
	if err == nil {
		err = os.WriteFile(experiment, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	var output bytes.Buffer
	command := exec.CommandContext(t.Context(), e2e.Program(t), "run", "-f", experiment, "--out", out, "--yes",
		"--progress", "plain")
	command.Stdout, command.Stderr = &output, &output
	if err := command.Run(); err != nil {
		t.Fatalf("%v\n%s", err, &output)
	}
	t.Log(output.String())
	r, err := store.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	checkVisits(t, r)
	checkVerdicts(t, out)
	if now := e2e.OpenLocal(t).Network; now != before {
		t.Errorf("the network is %s at the end, and was %s", now, before)
	}
	c.NothingLeft(t)
}

// checkVisits checks that each block has one successful visit of each network, with the facts of that network.
func checkVisits(t *testing.T, r *store.Results) {
	t.Helper()
	complete := map[string]int{}
	for _, s := range r.Switches {
		if s.Failed != "" {
			t.Logf("visit %d of %s failed: %s\n%s", s.Number, s.Target, s.Failed, s.Output)
			continue
		}
		for _, n := range networks {
			cni := result.FactOf(s.Facts, "cni")
			if s.Target == n[0] && !strings.Contains(strings.ToLower(cni), n[1]) {
				t.Errorf("visit %d of %s found the CNI %q", s.Number, s.Target, cni)
			}
		}
		complete[fmt.Sprint(s.Target, " in block ", s.Block)]++
	}
	for block := 1; block <= installations; block++ {
		for _, n := range networks {
			if at := fmt.Sprint(n[0], " in block ", block); complete[at] != 1 {
				t.Errorf("%d visits of %s", complete[at], at)
			}
		}
	}
	if last := r.Switches[len(r.Switches)-1]; last.Target != "" || last.Failed != "" {
		t.Errorf("the testbed was not restored: %+v", last)
	}
}

// checkVerdicts checks that the primary comparisons rest on all installations.
func checkVerdicts(t *testing.T, dir string) {
	t.Helper()
	text, err := exec.CommandContext(t.Context(), e2e.Program(t), "compare", dir, "-o", "json").Output()
	var got struct {
		Comparisons []struct {
			Role, Target, Verdict, Sentence string
			Blocks                          int
		}
	}
	if err == nil {
		err = json.Unmarshal(text, &got)
	}
	if err != nil {
		t.Fatal(err)
	}
	primary := 0
	for _, c := range got.Comparisons {
		if c.Role != string(result.Primary) {
			continue
		}
		primary++
		t.Log(c.Sentence)
		if c.Blocks != installations || c.Verdict == "" {
			t.Errorf("%+v", c)
		}
	}
	if primary != len(networks)-1 {
		t.Errorf("%d primary comparisons", primary)
	}
}
