//go:build linux

package web

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/knotmeter/knotmeter/test/e2e"
)

// killDuringRun starts an experiment, and kills the program once it has mounted an engine in Vault.
func (s *server) killDuringRun(t *testing.T, env []string, target string) {
	t.Helper()
	var output bytes.Buffer
	c := exec.CommandContext(t.Context(), e2e.Program(t), "run", "--share",
		"--out", filepath.Join(t.TempDir(), "out"), "--progress", "plain", "--blocks", "1", "--duration", "2m",
		"--target", target, "--suite", "app:vault", "--case", "app/vault/mix:rate=20", "--yes")
	c.Env = append(os.Environ(), env...)
	c.Stdout, c.Stderr = &output, &output
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	for range 600 {
		if len(s.mounts(t)) > 0 {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	_ = c.Process.Kill()
	_ = c.Wait()
	if len(s.mounts(t)) != 1 {
		t.Fatalf("a program that was killed left %v:\n%s", s.mounts(t), output.String())
	}
}

// checkClean runs clean for a target with Vault at url, and checks its output and that nothing is left.
func (s *server) checkClean(t *testing.T, env []string, target, url string) {
	t.Helper()
	left := strings.TrimSuffix(s.mounts(t)[0], "/")
	// The kill is recent, so without --all the run may still be active, as far as Vault shows.
	gentle := exec.CommandContext(t.Context(), e2e.Program(t), "clean", "--yes", "--target", target)
	gentle.Env = append(os.Environ(), env...)
	if text, err := gentle.CombinedOutput(); err != nil || len(s.mounts(t)) != 1 ||
		!strings.Contains(string(text), "kept: mount "+left+" of Vault at "+url+": its run may last until ") {
		t.Errorf("%v\n%s", err, text)
	}
	c := exec.CommandContext(t.Context(), e2e.Program(t), "clean", "--all", "--yes", "--target", target)
	c.Env = append(os.Environ(), env...)
	text, err := c.CombinedOutput()
	if want := "removed mount " + left + " of Vault at " + url + "\n"; err != nil ||
		!strings.Contains(string(text), want) || strings.Contains(string(text), s.token) {
		t.Errorf("no %q: %v\n%s", want, err, text)
	}
	s.nothingLeft(t)
	c = exec.CommandContext(t.Context(), e2e.Program(t), "clean", "--all", "--yes", "--target", target)
	c.Env = append(os.Environ(), env...)
	if text, err := c.CombinedOutput(); err != nil || !strings.HasSuffix(string(text), "no leftovers\n") {
		t.Errorf("a second time: %v\n%s", err, text)
	}
}

// TestCleanAfterKill checks that clean removes what a killed program left in a Vault, whether an option or the
// environment names the Vault.
func TestCleanAfterKill(t *testing.T) {
	s := newServer(t)
	for name, test := range map[string]struct {
		env    []string
		target string
	}{
		"option":      {[]string{"VAULT_TOKEN=" + token}, "local:?vault=" + s.url},
		"environment": {[]string{"VAULT_TOKEN=" + token, "VAULT_ADDR=" + s.url}, "local:"},
	} {
		t.Run(name, func(t *testing.T) {
			s.killDuringRun(t, test.env, test.target)
			s.checkClean(t, test.env, test.target, s.url)
		})
	}
}

// TestCleanAfterKillOnCluster checks clean as TestCleanAfterKill does, for a Vault that is measured from a pod, which
// is removed too, and for one that only pods reach, by a Service, so that clean needs a pod.
func TestCleanAfterKillOnCluster(t *testing.T) {
	c := e2e.Open(t)
	t.Cleanup(func() { c.NothingLeft(t) })
	s, service := newServerOn(t, c)
	target, known := "kube:?kubeconfig="+c.Kubeconfig, []string{"VAULT_TOKEN=" + token}
	for name, test := range map[string]struct {
		env         []string
		target, url string
	}{
		"option":      {known, target + "&vault=" + s.url, s.url},
		"environment": {append(known, "VAULT_ADDR="+s.url), target, s.url},
		"service":     {known, target + "&vault=" + service, service},
	} {
		t.Run(name, func(t *testing.T) {
			s.killDuringRun(t, test.env, test.target)
			s.checkClean(t, test.env, test.target, test.url)
		})
	}
}

// TestCleanUnreached checks that an unreachable Vault is reported with the attempts, and nothing is left on the
// cluster.
func TestCleanUnreached(t *testing.T) {
	c := e2e.Open(t)
	t.Cleanup(func() { c.NothingLeft(t) })
	const nowhere = "http://127.0.0.1:1"
	clean := exec.CommandContext(t.Context(), e2e.Program(t), "clean", "--target",
		"kube:?kubeconfig="+c.Kubeconfig+"&vault="+nowhere)
	clean.Env = append(os.Environ(), "VAULT_TOKEN="+token)
	text, err := clean.CombinedOutput()
	if err == nil || strings.Count(string(text), "connection refused") != 2 ||
		!strings.Contains(string(text), "from a pod") || strings.Contains(string(text), token) {
		t.Errorf("%v\n%s", err, text)
	}
}

// newServerOn starts a Vault in development mode on a node, at an address that pods and this machine reach, and returns
// it with the URL of a Service for it, which only works on nodes and in pods.
func newServerOn(t *testing.T, cluster *e2e.Cluster) (s *server, service string) {
	t.Helper()
	image := vaultImage(t)
	const port = 18200
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "vault-of-a-test", Namespace: "default",
			Labels: map[string]string{"app": "vault-of-a-test"}},
		Spec: corev1.PodSpec{HostNetwork: true, TerminationGracePeriodSeconds: new(int64(0)), Containers: []corev1.Container{{
			Name: "vault", Image: image, ImagePullPolicy: corev1.PullNever, Env: []corev1.EnvVar{{Name: "HOME", Value: "/"}},
			Command: []string{"vault", "server", "-dev", "-dev-no-store-token", "-dev-root-token-id=" + token,
				fmt.Sprintf("-dev-listen-address=0.0.0.0:%d", port)},
		}}},
	}
	pods := cluster.CoreV1().Pods(pod.Namespace)
	if _, err := pods.Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := pods.Delete(context.WithoutCancel(t.Context()), pod.Name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	services := cluster.CoreV1().Services(pod.Namespace)
	made, err := services.Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: pod.Name}, Spec: corev1.ServiceSpec{Selector: pod.Labels,
			Ports: []corev1.ServicePort{{Port: port}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := services.Delete(context.WithoutCancel(t.Context()), pod.Name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	for range 600 {
		is, err := pods.Get(t.Context(), pod.Name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		v := &server{fmt.Sprintf("http://%s:%d", is.Status.HostIP, port), token}
		if is.Status.Phase == corev1.PodRunning && v.request("GET", "sys/mounts", nil) == nil {
			return v, fmt.Sprintf("http://%s:%d", made.Spec.ClusterIP, port)
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatal("Vault does not come up")
	return nil, ""
}
