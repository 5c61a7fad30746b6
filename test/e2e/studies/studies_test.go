//go:build linux

// Package studies runs the experiment files of examples/ on a real cluster, scaled down: one block, short runs, and one
// cluster under several names instead of the clusters in the files. The report must show every published row next to
// the values measured here. The reports are copied to the directory KNOTMETER_E2E_REPORTS.
package studies

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/test/e2e"
)

// A study is an experiment file, with the targets and durations that replace those in it.
type study struct {
	file     string   // in examples/
	table    string   // published table that it names
	targets  []target // the baseline first
	args     []string // additional arguments of run
	rows     int      // published rows, by metric, all of which are measured here
	duration string   // of a run; default 1 s
}

// A target is the cluster under one of its names.
type target struct {
	label, published string // its name, and the published target to compare it with
	network          string // to switch the cluster to; empty: the network that it has
	options          string
}

// match returns the value of --match: this target and the published one.
func (t target) match() string { return t.label + "=" + t.published }

// TestStudies runs each study of one cluster. Its targets differ in storage classes, or in the storage of Vault.
func TestStudies(t *testing.T) {
	c := e2e.Open(t)
	vault := os.Getenv("KNOTMETER_E2E_VAULT_IMAGE")
	const ext4, xfs = "&storage-class=loop-ext4&size=256Mi", "&storage-class=loop-xfs&size=512Mi"
	const clients = "app/vault/published:clients=20"
	deployed := "&vault=deploy&vault-image=" + vault
	for _, s := range []study{
		{file: "constellation-network-storage", table: "constellation-2.6", rows: 8, targets: []target{
			{label: "ext4", published: "AKS", options: ext4},
			{label: "xfs", published: "Constellation on Azure", options: xfs}}},
		{file: "constellation-kbench", table: "constellation-2.0-kbench", rows: 21, targets: []target{
			{label: "ext4", published: "AKS", options: ext4},
			{label: "xfs", published: "Constellation on Azure", options: xfs}},
			duration: "6s"}, // the shortest with a median of pods that start, of which there is one a second
		{file: "constellation-vault", table: "constellation-vault", rows: 4, targets: []target{
			{label: "node's disk", published: "AKS", options: deployed},
			{label: "volume", published: "Constellation", options: deployed + "&vault-storage-class=loop-ext4&size=256Mi"}},
			args: []string{"--case", clients, "--primary", clients}, duration: "3s"},
	} {
		t.Run(s.file, func(t *testing.T) {
			if s.file == "constellation-vault" && vault == "" {
				t.Skip("there is no image of Vault on the nodes: KNOTMETER_E2E_VAULT_IMAGE names none")
			}
			s.run(t, c)
			c.NothingLeft(t)
		})
	}
}

// TestInTurn runs the studies of CNIs on one cluster that switches between the networks: the four of Cilium, and real
// CNIs with macvlan and the plugin veth of spidernet in place of the pods' network.
func TestInTurn(t *testing.T) {
	e2e.NeedParts(t)
	c, here := e2e.Open(t), e2e.OpenLocal(t)
	if !here.Multus {
		t.Skip("the cluster has no Multus, by which pods would be in a macvlan network")
	}
	for _, s := range []study{
		{file: "cilium-aks", table: "cilium-aks-routing", rows: 11, duration: "500ms", targets: []target{
			{label: "native", published: "BYOCNI native routing", network: "cilium-native"},
			{label: "VXLAN", published: "BYOCNI VXLAN", network: "cilium-vxlan"},
			{label: "native + WireGuard", published: "BYOCNI native routing + WireGuard",
				network: "cilium-native-wireguard"},
			{label: "VXLAN + WireGuard", published: "BYOCNI VXLAN + WireGuard", network: "cilium-vxlan-wireguard"}}},
		{file: "daocloud-cni", table: "daocloud-cni", rows: 19, duration: "500ms", targets: []target{
			{label: "calico", published: "calico (underlay)", network: "calico-direct"},
			{label: "calico-vxlan", published: "calico (vxlan)", network: "calico-vxlan"},
			{label: "cilium-vxlan", published: "cilium (vxlan)", network: "cilium-vxlan"},
			{label: "macvlan", published: "macvlan-standalone", network: "flannel-host-gw",
				options: "&default-network=default/macvlan-veth"}}},
	} {
		t.Run(s.file, func(t *testing.T) {
			s.targets = slices.DeleteFunc(s.targets, func(one target) bool { return !canHave(t, one.network) })
			s.run(t, c)
			if now := e2e.OpenLocal(t).Network; now != here.Network {
				t.Errorf("the network is %s at the end, and was %s", now, here.Network)
			}
			c.NothingLeft(t)
		})
	}
}

// canHave reports whether this kernel can have a network, and logs why not. WireGuard is the only part that kernels of
// test machines lack.
func canHave(t *testing.T, network string) bool {
	t.Helper()
	if !strings.HasSuffix(network, "-wireguard") {
		return true
	}
	text, err := exec.Command("unshare", "--net", "ip", "link", "add", "probe", "type", "wireguard").CombinedOutput()
	if err != nil {
		t.Logf("%s is left out: this kernel makes no links of WireGuard: %s", network, bytes.TrimSpace(text))
	}
	return err == nil
}

// run runs a study and checks its runs and its report.
func (s study) run(t *testing.T, c *e2e.Cluster) {
	work := t.TempDir()
	dir := filepath.Join(work, "out")
	examples, err := filepath.Abs("../../../examples")
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"run", "-f", filepath.Join(examples, s.file+".yaml"), "--out", dir, "--share",
		"--progress", "none", "--yes", "--blocks", "1", "--duration", cmp.Or(s.duration, "1s"), "--warmup", "100ms"}
	var restore []string
	for _, one := range s.targets {
		args = append(args, "--match", one.match(),
			"--target", "kube:?label="+one.label+one.options)
		if one.network != "" {
			args = append(args, "--switch", one.label+"=./network "+one.network)
			restore = []string{"--restore", "./network " + e2e.OpenLocal(t).Network}
		}
	}
	// The report names these commands: a script keeps the paths of this machine out of it.
	script := "#!/bin/sh\nexec " + e2e.NetworkSwitch(c.Kubeconfig, `"$1"`) + "\n"
	if err := os.WriteFile(filepath.Join(work, "network"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	var output bytes.Buffer
	command := exec.CommandContext(t.Context(), e2e.Program(t), slices.Concat(args, restore, s.args)...)
	command.Dir, command.Env = work, append(os.Environ(), "KUBECONFIG="+c.Kubeconfig)
	command.Stdout, command.Stderr = &output, &output
	err = command.Run()
	var status *exec.ExitError
	if errors.As(err, &status) && status.ExitCode() == 2 {
		t.Logf("some runs failed:\n%s", &output) // checkRuns decides on the reasons
	} else if err != nil {
		t.Fatalf("%v\n%s", err, &output)
	}
	s.checkRuns(t, e2e.Runs(t, dir, output.String()))
	s.checkPublished(t, dir)
	if reports := os.Getenv("KNOTMETER_E2E_REPORTS"); reports != "" && !t.Failed() {
		s.copyReport(t, dir, reports)
	}
}

// copyReport copies the report to a directory.
func (s study) copyReport(t *testing.T, dir, to string) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(dir, "report.html"))
	if err == nil {
		err = os.WriteFile(filepath.Join(to, s.file+".html"), page, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// tolerated holds the reasons for which runs are invalid on a busy machine, which is no fault of the program.
var tolerated = []result.Code{result.GeneratorLate, result.GeneratorLimit, result.ShortWindow, result.NothingDone,
	result.MetricMissing}

// checkRuns checks that every run is valid, or invalid for a tolerated reason.
func (s study) checkRuns(t *testing.T, runs []result.Run) {
	t.Helper()
	for _, r := range runs {
		if slices.ContainsFunc(r.Invalid, func(w result.Warning) bool { return !slices.Contains(tolerated, w.Code) }) {
			t.Errorf("%s on %s: %v", r.Case, r.Target, r.Invalid)
		}
	}
}

// checkPublished checks that the report shows the published figures next to those measured here.
func (s study) checkPublished(t *testing.T, dir string) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(dir, "report.html"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`id="reference"`, "change published"} {
		if !bytes.Contains(page, []byte(want)) {
			t.Errorf("the report has no %s", want)
		}
	}
	var got struct {
		Reference []struct {
			Rows []struct {
				Case, Metric string
				Pairs        []struct{ Here, Published struct{ Value float64 } }
			}
		}
		NotMeasured []result.NotMeasured `json:"not_measured"`
	}
	s.compare(t, dir, &got)
	late := map[string]bool{} // cases without a run because this machine was too busy
	for _, n := range got.NotMeasured {
		if strings.Contains(n.Reason, "the generator was late") {
			late[n.Case] = true
			continue
		}
		t.Errorf("not measured on %s: %s: %s", n.Target, n.Case, n.Reason)
	}
	if len(got.Reference) != 1 {
		t.Fatalf("%d published tables", len(got.Reference))
	}
	rows := got.Reference[0].Rows
	if len(rows) > s.rows || len(rows) < s.rows-len(late) || 2*len(late) > s.rows {
		t.Errorf("%d published rows have a counterpart here, not %d (%d cases were late): %+v", len(rows), s.rows,
			len(late), rows)
	}
	for _, r := range rows {
		if late[r.Case] {
			continue
		}
		nothing := r.Metric != "loss" && len(r.Pairs) > 0 && r.Pairs[0].Here.Value == 0
		if len(r.Pairs) != len(s.targets) || nothing || !(r.Pairs[0].Published.Value > 0) {
			t.Errorf("%s %s: %+v", r.Case, r.Metric, r.Pairs)
		}
	}
}

// compare decodes the JSON of `knotmeter compare` with the published table.
func (s study) compare(t *testing.T, dir string, into any) {
	t.Helper()
	args := []string{"compare", dir, "-o", "json", "--reference", s.table}
	for _, one := range s.targets {
		args = append(args, "--match", one.match())
	}
	text, err := exec.CommandContext(t.Context(), e2e.Program(t), args...).Output()
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}
