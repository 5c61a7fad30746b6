//go:build linux

// Package studies runs the experiment files of examples/ on a real cluster, scaled down: one block, short runs, and
// the cluster itself under two names instead of the clusters that the files name. What has to come out is a report with
// every published row next to what was measured here.
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

// A study is an experiment file, and what its clusters and its times are replaced by.
type study struct {
	file     string // of examples/, and the published table that it names
	table    string
	matches  [2]string // our targets, and the published ones that they stand next to
	target   string    // options of both targets
	args     []string  // that are added
	rows     int       // published ones, all of which are measured here
	duration string    // of a run, by default a second
	image    string
}

// TestStudies: each study runs whole.
func TestStudies(t *testing.T) {
	c := e2e.Open(t)
	vault := os.Getenv("KNOTMETER_E2E_VAULT_IMAGE")
	const volume = "&storage-class=loop-ext4&size=256Mi"
	const clients = "app/vault/published:clients=20"
	for _, s := range []study{
		{file: "cilium-aks", table: "cilium-aks-routing", rows: 9,
			matches: [2]string{"native=BYOCNI native routing", "VXLAN=BYOCNI VXLAN"}, duration: "500ms"},
		{file: "daocloud-cni", table: "daocloud-cni", rows: 19,
			matches: [2]string{"underlay=calico (underlay)", "vxlan=calico (vxlan)"}, duration: "500ms"},
		{file: "constellation-network-storage", table: "constellation-2.6", rows: 8, target: volume,
			matches: [2]string{"AKS=AKS", "C11n=Constellation on Azure"}},
		{file: "constellation-kbench", table: "constellation-2.0-kbench", rows: 21, target: volume,
			matches: [2]string{"AKS=AKS", "C11n=Constellation on Azure"}},
		{file: "constellation-vault", table: "constellation-vault", rows: 4, image: vault,
			target: "&vault=deploy&vault-image=" + vault, matches: [2]string{"AKS=AKS", "C11n=Constellation"},
			args: []string{"--case", clients, "--primary", clients}, duration: "3s"},
	} {
		t.Run(s.file, func(t *testing.T) {
			if strings.Contains(s.target, "vault-image=") && s.image == "" {
				t.Skip("there is no image of Vault on the nodes: KNOTMETER_E2E_VAULT_IMAGE names none")
			}
			s.run(t, c)
			c.NothingLeft(t)
		})
	}
}

// run carries a study out and looks at what came of it.
func (s study) run(t *testing.T, c *e2e.Cluster) {
	dir := filepath.Join(t.TempDir(), "out")
	args := []string{"run", "-f", filepath.Join("../../../examples", s.file+".yaml"), "--out", dir, "--share",
		"--progress", "none", "--yes", "--blocks", "1", "--duration", cmp.Or(s.duration, "1s"), "--warmup", "100ms"}
	for _, match := range s.matches {
		label, _, _ := strings.Cut(match, "=")
		args = append(args, "--match", match, "--target", "kube:?kubeconfig="+c.Kubeconfig+"&label="+label+s.target)
	}
	var said bytes.Buffer
	command := exec.CommandContext(t.Context(), e2e.Program(t), append(args, s.args...)...)
	command.Stdout, command.Stderr = &said, &said
	err := command.Run()
	var status *exec.ExitError
	if errors.As(err, &status) && status.ExitCode() == 2 {
		t.Logf("some runs failed:\n%s", &said) // of which measured says why
	} else if err != nil {
		t.Fatalf("%v\n%s", err, &said)
	}
	s.measured(t, e2e.Runs(t, dir, said.String()))
	s.published(t, dir)
}

// busy is why runs do not count where this machine has too much to do, which is no fault of what is tested here.
var busy = []result.Code{result.GeneratorLate, result.GeneratorLimit, result.ShortWindow, result.NothingDone,
	result.MetricMissing}

// measured holds every run to being valid, or to an excuse.
func (s study) measured(t *testing.T, runs []result.Run) {
	t.Helper()
	for _, r := range runs {
		if slices.ContainsFunc(r.Invalid, func(w result.Warning) bool { return !slices.Contains(busy, w.Code) }) {
			t.Errorf("%s on %s: %v", r.Case, r.Target, r.Invalid)
		}
	}
}

// published holds the report to the published figures next to ours.
func (s study) published(t *testing.T, dir string) {
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
	late := map[string]bool{} // cases for which this machine was too busy
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
		nothing := r.Metric != "loss" && len(r.Pairs) == 2 && r.Pairs[0].Here.Value == 0
		if len(r.Pairs) != 2 || nothing || !(r.Pairs[0].Published.Value > 0) {
			t.Errorf("%s %s: %+v", r.Case, r.Metric, r.Pairs)
		}
	}
}

// compare reads the comparison again, as its users do later.
func (s study) compare(t *testing.T, dir string, into any) {
	t.Helper()
	args := []string{"compare", dir, "-o", "json", "--reference", s.table}
	for _, match := range s.matches {
		args = append(args, "--match", match)
	}
	text, err := exec.CommandContext(t.Context(), e2e.Program(t), args...).Output()
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}
