//go:build linux

// Package web tests whole experiments on what is asked over HTTP, with the program as its users start it: the API
// server of a real cluster, from a pod and from this machine, and whether targets that are alike are found alike; a
// real Vault on this machine, three replicas of it, one deployed on a cluster; and a Service there.
package web

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/test/e2e"
)

const token = "token-of-the-tests-alone"

// An outcome is what became of an experiment.
type outcome struct {
	runs    []result.Run
	dir     string
	printed []byte // to standard output
	said    string // there, and to standard error
	err     error
}

// experiment runs the program, as its users start it.
func experiment(t *testing.T, env []string, args ...string) outcome {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "out")
	var said, printed bytes.Buffer
	c := exec.CommandContext(t.Context(), e2e.Program(t),
		append([]string{"run", "--share", "--out", dir, "--progress", "plain"}, args...)...)
	c.Env = append(os.Environ(), env...)
	c.Stdout, c.Stderr = &printed, &said
	err := c.Run()
	said.Write(printed.Bytes())
	runs := e2e.Runs(t, dir, said.String())
	return outcome{runs: runs, dir: dir, printed: printed.Bytes(), said: said.String(), err: err}
}

// measure carries out an experiment of one block, whose applications are the tests' own.
func measure(t *testing.T, env []string, args ...string) outcome {
	t.Helper()
	return experiment(t, env, append([]string{"--blocks", "1", "--duration", "3s", "--yes"}, args...)...)
}

// measured are the runs by their cases, in which what was asked was answered. That this machine was too busy for a
// generator that keeps to its plan is no fault of what is tested here, and tolerated.
func (o outcome) measured(t *testing.T, tolerated ...result.Code) map[string]result.Run {
	t.Helper()
	if o.err != nil {
		t.Logf("%v\n%s", o.err, o.said)
	}
	byCase := map[string]result.Run{}
	for _, r := range o.runs {
		if slices.ContainsFunc(r.Invalid, func(w result.Warning) bool { return !slices.Contains(tolerated, w.Code) }) {
			t.Errorf("%s: %v", r.Case, r.Invalid)
			continue
		}
		if before, is := byCase[r.Case]; !is || !before.Valid() {
			byCase[r.Case] = r
		}
	}
	return byCase
}

// has holds an experiment to its cases: each was measured, and nothing failed.
func (o outcome) has(t *testing.T, cases ...string) map[string]result.Run {
	t.Helper()
	byCase := o.measured(t, result.GeneratorLate, result.GeneratorLimit)
	for _, c := range cases {
		r, is := byCase[c]
		if !is {
			t.Errorf("%s was not measured:\n%s", c, o.said)
			continue
		}
		rate, _ := r.Value("rate")
		failed, known := r.Value("failed")
		if rate.Number <= 0 || !known || failed.Number != 0 {
			t.Errorf("%s: %v per second, %v failed; %v", c, rate.Number, failed.Number, r.Facts)
		}
	}
	return byCase
}

// secretless looks into every file of the results for the token, and into what was said.
func (o outcome) secretless(t *testing.T, secret string) {
	t.Helper()
	if strings.Contains(o.said, secret) {
		t.Error("the token was said")
	}
	err := filepath.WalkDir(o.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if bytes.Contains(text, []byte(secret)) {
			t.Errorf("%s has the token", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// free is an address of this machine that is not listened at.
func free(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// vaultImage is that of a real Vault on the nodes of the cluster.
func vaultImage(t *testing.T) string {
	t.Helper()
	image := os.Getenv("KNOTMETER_E2E_VAULT_IMAGE")
	if image == "" {
		t.Skip("there is no image of Vault on the nodes: KNOTMETER_E2E_VAULT_IMAGE names none ('cluster vault' makes one)")
	}
	return image
}

// startVault starts a Vault that lasts as long as the test, and returns its process and its log.
func startVault(t *testing.T, args ...string) (*os.Process, *bytes.Buffer) {
	t.Helper()
	vault := os.Getenv("KNOTMETER_E2E_VAULT")
	if vault == "" {
		t.Skip("there is no Vault: KNOTMETER_E2E_VAULT names no program ('cluster vault' makes one)")
	}
	var log bytes.Buffer
	c := exec.Command(vault, append([]string{"server"}, args...)...)
	c.Env = append(os.Environ(), "HOME="+t.TempDir())
	c.Stdout, c.Stderr = &log, &log
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	return c.Process, &log
}

// A server is a Vault on this machine, and the token of its root.
type server struct{ url, token string }

func newServer(t *testing.T) *server {
	t.Helper()
	address := free(t)
	_, log := startVault(t, "-dev", "-dev-no-store-token", "-dev-root-token-id="+token, "-dev-listen-address="+address)
	s := &server{"http://" + address, token}
	for range 300 {
		if s.ask("GET", "sys/mounts", nil) == nil {
			return s
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatalf("Vault does not come up:\n%s", log.String())
	return nil
}

func (s *server) ask(method, path string, into any) error {
	r, err := http.NewRequest(method, s.url+"/v1/"+path, nil)
	if err != nil {
		return err
	}
	r.Header.Set("X-Vault-Token", s.token)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode >= 300 {
		return errors.New(answer.Status)
	}
	if into == nil {
		return nil
	}
	return json.NewDecoder(answer.Body).Decode(into)
}

// mounts are those of ours.
func (s *server) mounts(t *testing.T) []string {
	t.Helper()
	var mounts struct{ Data map[string]any }
	if err := s.ask("GET", "sys/mounts", &mounts); err != nil {
		t.Fatal(err)
	}
	var names []string
	for name := range mounts.Data {
		if strings.HasPrefix(name, "knotmeter") {
			names = append(names, name)
		}
	}
	return names
}

func (s *server) nothingLeft(t *testing.T) {
	t.Helper()
	if left := s.mounts(t); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// All operations of a real Vault on this machine, and nothing of it is left or leaked afterwards.
func TestVaultOnThisMachine(t *testing.T) {
	s := newServer(t)
	cases := []string{"app/vault/encrypt:rate=50", "app/vault/decrypt:rate=50", "app/vault/sign:rate=50",
		"app/vault/verify:rate=50", "app/vault/mix:rate=50", "app/vault/mix:clients=8"}
	args := []string{"--target", "local:", "--suite", "app:vault"}
	for _, c := range cases {
		args = append(args, "--case", c)
	}
	o := measure(t, []string{"VAULT_ADDR=" + s.url, "VAULT_TOKEN=" + token}, args...)
	got := o.has(t, cases...)
	o.secretless(t, token)
	s.nothingLeft(t)
	mix := got["app/vault/mix:rate=50"]
	if mix.Fact("vault.version") != "1.21.0" || mix.Fact("vault.tls") != "no" || mix.Fact("vault.ha") != "no" {
		t.Errorf("%v", mix.Facts)
	}
	for _, kind := range []string{"encrypt", "decrypt", "sign", "verify"} {
		if v, is := mix.Value(kind + "-rate"); !is || v.Number < 5 || v.Number > 20 {
			t.Errorf("of 50 requests per second %v were to %s", v.Number, kind)
		}
	}
}

// A Vault that is sealed while it is asked leaves no run that counts; what it had of ours goes with clean.
func TestSealed(t *testing.T) {
	s := newServer(t)
	time.AfterFunc(4*time.Second, func() { _ = s.ask("PUT", "sys/seal", nil) })
	o := measure(t, []string{"VAULT_TOKEN=" + token}, "--target", "local:?vault="+s.url, "--suite", "app:vault", "--case",
		"app/vault/mix:rate=50", "--duration", "8s")
	if len(o.runs) == 0 || slices.ContainsFunc(o.runs, func(r result.Run) bool { return r.Valid() }) {
		t.Fatalf("%+v", o.runs)
	}
	if all := strings.Join(result.Texts(o.runs[0].Invalid), "; "); !strings.Contains(all, "sealed") {
		t.Errorf("%s", all)
	}
	o.secretless(t, token)
}

// Three replicas are deployed for each block, unsealed, asked in turn or by the leader alone, and removed.
func TestVaultInCluster(t *testing.T) {
	cluster := e2e.Open(t)
	t.Cleanup(func() { cluster.NothingLeft(t) })
	image := vaultImage(t)
	for asked, want := range map[string]string{
		"all":    "2 of 3 addresses are standbys, which pass requests on to the leader",
		"leader": "none: who is asked answers",
	} {
		t.Run(asked, func(t *testing.T) {
			where := "kube:?kubeconfig=" + cluster.Kubeconfig + "&vault=deploy&vault-replicas=3&vault-ask=" + asked +
				"&vault-image=" + image
			const name = "app/vault/mix:rate=30"
			o := measure(t, nil, "--target", where, "--suite", "app:vault", "--case", name)
			r := o.has(t, name)[name]
			for fact, value := range map[string]string{"vault.replicas": "3", "vault.tls": "yes", "vault.ha": "yes",
				"vault.version": "1.21.0", "vault.forwarding": want, "vault.deployment": "fresh for the block"} {
				if r.Fact(fact) != value {
					t.Errorf("%s is %q, not %q", fact, r.Fact(fact), value)
				}
			}
			o.secretless(t, "hvs.")
		})
	}
}

// A Service in the cluster is asked from a pod: that of the API server, which answers with its version to all.
func TestService(t *testing.T) {
	cluster := e2e.Open(t)
	t.Cleanup(func() { cluster.NothingLeft(t) })
	service, err := cluster.CoreV1().Services("default").Get(t.Context(), "kubernetes", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := rest.LoadTLSFiles(cluster.Config); err != nil {
		t.Fatal(err)
	}
	if block, _ := pem.Decode(cluster.Config.CAData); block == nil {
		t.Fatal("the kubeconfig has no certificate of an authority")
	}
	dir := t.TempDir()
	ca := filepath.Join(dir, "ca.pem")
	if err := os.WriteFile(ca, cluster.Config.CAData, 0o600); err != nil {
		t.Fatal(err)
	}
	text := "url: https://" + service.Spec.ClusterIP + ":443\nca: " + ca +
		"\nloads: [rate=50, clients=2]\nrequests:\n- {name: version, path: /version, contains: gitVersion}\n"
	file := filepath.Join(dir, "api.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	o := measure(t, nil, "--target", "kube:?kubeconfig="+cluster.Kubeconfig, "--suite", "app:"+file)
	o.has(t, "app/http/api:rate=50", "app/http/api:clients=2")
}
