//go:build linux

// Package web tests whole experiments over HTTP, with the program as its users start it, on three servers: the API
// server of a real cluster, from a pod and from this machine; a real Vault on this machine, with three replicas, and
// deployed on a cluster; and a Service there.
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

// An outcome is the outcome of an experiment: its results and the output of the program.
type outcome struct {
	runs    []result.Run
	dir     string
	printed []byte // standard output
	output  string // standard error, then standard output
	err     error
}

// experiment runs `knotmeter run` as its users start it.
func experiment(t *testing.T, env []string, args ...string) outcome {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "out")
	var output, printed bytes.Buffer
	c := exec.CommandContext(t.Context(), e2e.Program(t),
		append([]string{"run", "--share", "--out", dir, "--progress", "plain"}, args...)...)
	c.Env = append(os.Environ(), env...)
	c.Stdout, c.Stderr = &printed, &output
	err := c.Run()
	output.Write(printed.Bytes())
	runs := e2e.Runs(t, dir, output.String())
	return outcome{runs: runs, dir: dir, printed: printed.Bytes(), output: output.String(), err: err}
}

// measure runs an experiment of one block with runs of 3 s.
func measure(t *testing.T, env []string, args ...string) outcome {
	t.Helper()
	return experiment(t, env, append([]string{"--blocks", "1", "--duration", "3s", "--yes"}, args...)...)
}

// validRuns returns a run of each case, and fails the test for invalid runs, except for those with tolerated codes:
// that this machine is too busy for a generator to keep its schedule is no fault of the program.
func (o outcome) validRuns(t *testing.T, tolerated ...result.Code) map[string]result.Run {
	t.Helper()
	if o.err != nil {
		t.Logf("%v\n%s", o.err, o.output)
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

// expectCases checks that each case was measured and no request failed, and returns a run of each case.
func (o outcome) expectCases(t *testing.T, cases ...string) map[string]result.Run {
	t.Helper()
	byCase := o.validRuns(t, result.GeneratorLate, result.GeneratorLimit)
	for _, c := range cases {
		r, is := byCase[c]
		if !is {
			t.Errorf("%s was not measured:\n%s", c, o.output)
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

// checkNoSecret fails the test if the output or a file of the results contains the secret.
func (o outcome) checkNoSecret(t *testing.T, secret string) {
	t.Helper()
	if strings.Contains(o.output, secret) {
		t.Error("the output contains the token")
	}
	err := filepath.WalkDir(o.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if bytes.Contains(text, []byte(secret)) {
			t.Errorf("%s contains the token", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// freeAddress returns an address of this machine with a port that nothing listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// vaultImage returns the image of a real Vault on the nodes of the cluster, and skips the test if there is none.
func vaultImage(t *testing.T) string {
	t.Helper()
	image := os.Getenv("KNOTMETER_E2E_VAULT_IMAGE")
	if image == "" {
		t.Skip("there is no image of Vault on the nodes: KNOTMETER_E2E_VAULT_IMAGE names none ('cluster vault' makes one)")
	}
	return image
}

// startVault starts a Vault that is killed at the end of the test, and returns its process and its log.
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

// A server is a Vault, with its root token.
type server struct{ url, token string }

func newServer(t *testing.T) *server {
	t.Helper()
	address := freeAddress(t)
	_, log := startVault(t, "-dev", "-dev-no-store-token", "-dev-root-token-id="+token, "-dev-listen-address="+address)
	s := &server{"http://" + address, token}
	for range 300 {
		if s.request("GET", "sys/mounts", nil) == nil {
			return s
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatalf("Vault does not come up:\n%s", log.String())
	return nil
}

func (s *server) request(method, path string, into any) error {
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

// mounts returns the mounts that Knotmeter made.
func (s *server) mounts(t *testing.T) []string {
	t.Helper()
	var mounts struct{ Data map[string]any }
	if err := s.request("GET", "sys/mounts", &mounts); err != nil {
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

// TestVaultOnThisMachine checks that all operations of a real Vault on this machine are measured, and nothing is left
// or leaked afterwards.
func TestVaultOnThisMachine(t *testing.T) {
	s := newServer(t)
	cases := []string{"app/vault/encrypt:rate=50", "app/vault/decrypt:rate=50", "app/vault/sign:rate=50",
		"app/vault/verify:rate=50", "app/vault/mix:rate=50", "app/vault/mix:clients=8"}
	args := []string{"--target", "local:", "--suite", "app:vault"}
	for _, c := range cases {
		args = append(args, "--case", c)
	}
	o := measure(t, []string{"VAULT_ADDR=" + s.url, "VAULT_TOKEN=" + token}, args...)
	got := o.expectCases(t, cases...)
	o.checkNoSecret(t, token)
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

// TestSealed checks that a Vault that is sealed during a run leaves no valid run, and the reason says so.
func TestSealed(t *testing.T) {
	s := newServer(t)
	time.AfterFunc(4*time.Second, func() { _ = s.request("PUT", "sys/seal", nil) })
	o := measure(t, []string{"VAULT_TOKEN=" + token}, "--target", "local:?vault="+s.url, "--suite", "app:vault", "--case",
		"app/vault/mix:rate=50", "--duration", "8s")
	if len(o.runs) == 0 || slices.ContainsFunc(o.runs, func(r result.Run) bool { return r.Valid() }) {
		t.Fatalf("%+v", o.runs)
	}
	if all := strings.Join(result.Texts(o.runs[0].Invalid), "; "); !strings.Contains(all, "sealed") {
		t.Errorf("%s", all)
	}
	o.checkNoSecret(t, token)
}

// TestVaultInCluster checks that three replicas are deployed for each block, unsealed, measured in turn or by the
// leader alone, and removed.
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
			r := o.expectCases(t, name)[name]
			for fact, value := range map[string]string{"vault.replicas": "3", "vault.tls": "yes", "vault.ha": "yes",
				"vault.version": "1.21.0", "vault.forwarding": want, "vault.deployment": "fresh for the block"} {
				if r.Fact(fact) != value {
					t.Errorf("%s is %q, not %q", fact, r.Fact(fact), value)
				}
			}
			o.checkNoSecret(t, "hvs.")
		})
	}
}

// TestService checks that a Service in the cluster is measured from a pod. It is that of the API server, which returns
// its version without credentials.
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
	o.expectCases(t, "app/http/api:rate=50", "app/http/api:clients=2")
}
