//go:build linux

package app

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// abandon begins to measure, and kills the program once Vault has something of ours that it must remove.
func (s *server) abandon(t *testing.T, env []string, target string) {
	t.Helper()
	var said bytes.Buffer
	c := exec.CommandContext(t.Context(), program(t), "run", "--out", filepath.Join(t.TempDir(), "out"), "--progress", "plain", "--blocks", "1", "--duration", "2m",
		"--target", target, "--suite", "app:vault", "--case", "app/vault/mix:rate=20")
	c.Env = append(os.Environ(), env...)
	c.Stdout, c.Stderr = &said, &said
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
		t.Fatalf("a program that was killed left %v:\n%s", s.mounts(t), said.String())
	}
}

// cleaned runs clean and holds it to what it must say and leave.
func (s *server) cleaned(t *testing.T, env []string, target string) {
	t.Helper()
	left := strings.TrimSuffix(s.mounts(t)[0], "/")
	c := exec.CommandContext(t.Context(), program(t), "clean", "--target", target)
	c.Env = append(os.Environ(), env...)
	text, err := c.CombinedOutput()
	if want := "removed mount " + left + " of Vault at " + s.url + "\n"; err != nil || !strings.Contains(string(text), want) || strings.Contains(string(text), s.token) {
		t.Errorf("no %q: %v\n%s", want, err, text)
	}
	s.nothingLeft(t)
	c = exec.CommandContext(t.Context(), program(t), "clean", "--target", target)
	c.Env = append(os.Environ(), env...)
	if text, err := c.CombinedOutput(); err != nil || string(text) != "nothing was left behind\n" {
		t.Errorf("a second time: %v\n%s", err, text)
	}
}

// What a program left in a Vault when it was killed goes with clean, wherever the Vault was named.
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
			s.abandon(t, test.env, test.target)
			s.cleaned(t, test.env, test.target)
		})
	}
}

// The same where the Vault is asked from a pod, which goes too.
func TestCleanAfterKillOnCluster(t *testing.T) {
	c := newStage(t)
	s := newServerAt(t, c.reachable(t))
	env := []string{"VAULT_TOKEN=" + token}
	for name, target := range map[string]string{"option": "kube:?kubeconfig=" + c.kubeconfig + "&vault=" + s.url, "environment": "kube:?kubeconfig=" + c.kubeconfig} {
		t.Run(name, func(t *testing.T) {
			if name == "environment" {
				env = append(env, "VAULT_ADDR="+s.url)
			}
			s.abandon(t, env, target)
			s.cleaned(t, env, target)
		})
	}
}

// reachable is an address of this machine that the nodes of a cluster reach: that from which it reaches their API server.
func (s *stage) reachable(t *testing.T) string {
	t.Helper()
	c, err := net.Dial("udp", strings.TrimPrefix(s.config.Host, "https://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ip, _, err := net.SplitHostPort(c.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	return ip
}
