//go:build linux

package web

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/vault"
	"github.com/knotmeter/knotmeter/test/e2e"
)

// replicas is a Vault of three replicas with Raft on this machine.
type replicas struct {
	*server   // the first one
	addresses []string
	processes []*os.Process
}

func newReplicas(t *testing.T) *replicas {
	t.Helper()
	var all replicas
	for i := range 3 {
		at, peers, dir := freeAddress(t), freeAddress(t), t.TempDir()
		text := fmt.Sprintf(`disable_mlock = true
api_addr = "http://%s"
cluster_addr = "https://%s"
storage "raft" {
  path = %q
  node_id = "n%d"
}
listener "tcp" {
  address = %q
  cluster_address = %q
  tls_disable = true
}
`, at, peers, dir, i, at, peers)
		file := filepath.Join(t.TempDir(), "vault.hcl")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		process, _ := startVault(t, "-config="+file)
		all.addresses, all.processes = append(all.addresses, at), append(all.processes, process)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	root, err := vault.Initialize(ctx, host.Endpoint{URL: "http://" + all.addresses[0], Addresses: all.addresses})
	if err != nil {
		t.Fatal(err)
	}
	all.server = &server{"http://" + all.addresses[0], root}
	return &all
}

// leader returns the address of the leader.
func (s *server) leader(t *testing.T) string {
	t.Helper()
	var is struct {
		Address string `json:"leader_address"`
	}
	if err := s.request("GET", "sys/leader", &is); err != nil {
		t.Fatal(err)
	}
	return strings.TrimPrefix(is.Address, "http://")
}

// awaitLeader waits at most a minute until all replicas agree on a leader, as after an election.
func (r *replicas) awaitLeader(t *testing.T) {
	t.Helper()
	for range 600 {
		leads := map[string]bool{}
		for _, a := range r.addresses {
			var is struct {
				Address string `json:"leader_address"`
			}
			_ = (&server{"http://" + a, r.token}).request("GET", "sys/leader", &is)
			leads[is.Address] = true
		}
		if len(leads) == 1 && !leads[""] {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatal("no replica leads within a minute")
}

// TestReplicas checks that with three real replicas requests go to all or to the leader alone, as the option says, and
// that an election, the end of a standby, or a seal makes the run invalid.
func TestReplicas(t *testing.T) {
	s := newReplicas(t)
	const name = "app/vault/mix:rate=40"
	where := "local:?vault=" + s.url + "&vault-addresses=" + strings.Join(s.addresses, ",")
	run := func(t *testing.T, target string, args ...string) outcome {
		t.Helper()
		stop := watchCommandLines(t, s.token)
		defer stop()
		o := measure(t, []string{"VAULT_TOKEN=" + s.token}, append([]string{"--target", target, "--suite", "app:vault",
			"--case", name}, args...)...)
		o.checkNoSecret(t, s.token)
		return o
	}
	for asked, want := range map[string][2]string{
		"all":    {"every address in turn", "2 of 3 addresses are standbys, which pass requests on to the leader"},
		"leader": {"the leader alone", "none: who is asked answers"},
	} {
		t.Run(asked, func(t *testing.T) {
			r := run(t, where+"&vault-ask="+asked).expectCases(t, name)[name]
			if r.Fact("vault.asked") != want[0] || r.Fact("vault.forwarding") != want[1] || r.Fact("vault.ha") != "yes" ||
				r.Fact("vault.leader") != "http://"+s.leader(t) {
				t.Errorf("%v", r.Facts)
			}
			s.nothingLeft(t)
		})
	}
	t.Run("election", func(t *testing.T) {
		leader := &server{"http://" + s.leader(t), s.token}
		time.AfterFunc(4*time.Second, func() { _ = leader.request("PUT", "sys/step-down", nil) })
		expectInvalid(t, run(t, where, "--duration", "8s"), "leader")
		s.nothingLeft(t)
	})
	t.Run("end of a standby", func(t *testing.T) {
		s.awaitLeader(t)
		leads := s.leader(t)
		i := 1 + slices.IndexFunc(s.addresses[1:], func(a string) bool { return a != leads })
		time.AfterFunc(4*time.Second, func() { _ = s.processes[i].Kill() })
		expectInvalid(t, run(t, where, "--duration", "8s"), s.addresses[i]+" does not say how it is after the run")
		s.nothingLeft(t)
		s.addresses = slices.Delete(s.addresses, i, i+1)
	})
	t.Run("seal of the leader", func(t *testing.T) {
		s.awaitLeader(t)
		leader := &server{"http://" + s.leader(t), s.token}
		time.AfterFunc(4*time.Second, func() { _ = leader.request("PUT", "sys/seal", nil) })
		expectInvalid(t, run(t, "local:?vault="+s.url+"&vault-addresses="+strings.Join(s.addresses, ","), "--duration", "8s"),
			"was sealed during the run")
	})
}

// expectInvalid checks that the first run of an experiment is invalid for a reason that contains why.
func expectInvalid(t *testing.T, o outcome, why string) {
	t.Helper()
	if len(o.runs) == 0 || o.runs[0].Valid() || !strings.Contains(result.Joined(o.runs[0].Invalid), why) {
		var all [][]string
		for _, r := range o.runs {
			all = append(all, result.Texts(r.Invalid))
		}
		t.Errorf("nothing about %q made the first run invalid: %v\n%s", why, all, o.output)
	}
}

// watchCommandLines fails the test if the command line of any process contains the secret until stop is called, or if
// it never sees the program.
func watchCommandLines(t *testing.T, secret string) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan int)
	go func() {
		seen := 0
		for ctx.Err() == nil {
			files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
			for _, f := range files {
				text, err := os.ReadFile(f)
				if err != nil {
					continue // it has ended
				}
				if bytes.Contains(text, []byte(secret)) {
					t.Errorf("the token is on a command line: %s", bytes.ReplaceAll(text, []byte{0}, []byte{' '}))
				}
				if bytes.Contains(text, []byte("\x00run\x00--share\x00")) {
					seen++
				}
			}
			time.Sleep(50 * time.Millisecond)
		}
		ended <- seen
	}()
	return func() {
		cancel()
		if <-ended == 0 {
			t.Error("the program was not seen to run")
		}
	}
}

// TestReplicaEndsInCluster checks that the end of a deployed replica's pod during a run makes the run invalid,
// whichever replica leads then, and nothing is left.
func TestReplicaEndsInCluster(t *testing.T) {
	cluster := e2e.Open(t)
	t.Cleanup(func() { cluster.NothingLeft(t) })
	image := vaultImage(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		endReplica(ctx, cluster)
	}()
	const name = "app/vault/mix:rate=30"
	deployed := "kube:?kubeconfig=" + cluster.Kubeconfig + "&vault=deploy&vault-replicas=3&vault-image=" + image
	o := measure(t, nil, "--target", deployed, "--suite", "app:vault", "--case", name, "--duration", "12s")
	cancel()
	<-ended
	expectInvalid(t, o, "vault-0")
	o.checkNoSecret(t, "hvs.")
}

// endReplica deletes the pod of the first replica once, 6 s after all replicas are ready, which is in the middle of the
// window.
func endReplica(ctx context.Context, cluster *e2e.Cluster) {
	const middle = 6 * time.Second
	for ctx.Err() == nil {
		time.Sleep(100 * time.Millisecond)
		pods, err := cluster.CoreV1().Pods("").List(ctx, metav1.ListOptions{LabelSelector: "knotmeter.dev/role=vault"})
		if err != nil || len(pods.Items) < 3 || slices.ContainsFunc(pods.Items, func(p corev1.Pod) bool {
			return !slices.ContainsFunc(p.Status.Conditions,
				func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue })
		}) {
			continue
		}
		select {
		case <-ctx.Done():
		case <-time.After(middle):
			first := slices.MinFunc(pods.Items, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
			_ = cluster.CoreV1().Pods(first.Namespace).Delete(ctx, first.Name,
				metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))})
		}
		return
	}
}
