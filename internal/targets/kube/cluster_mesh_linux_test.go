package kube

import (
	"context"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/knotmeter/knotmeter/internal/lab/netns"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
	"github.com/knotmeter/knotmeter/internal/targets/kube/cluster"
	"github.com/knotmeter/knotmeter/internal/targets/kube/inspection/meshtest"
	"github.com/knotmeter/knotmeter/internal/targets/kube/manifest"
)

// podNetwork returns the network namespace of a pod of a cluster on this machine; nil if it has no process here.
func podNetwork(t *testing.T, p corev1.Pod) (ns *netns.NS) {
	t.Helper()
	groups, err := filepath.Glob("/proc/[0-9]*/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range groups {
		text, _ := os.ReadFile(file) // empty if the process has ended
		uid := string(p.UID)
		if !strings.Contains(string(text), uid) && !strings.Contains(string(text), strings.ReplaceAll(uid, "-", "_")) {
			continue
		}
		f, err := os.Open(filepath.Join(filepath.Dir(file), "ns/net"))
		if err != nil {
			continue
		}
		defer f.Close()
		entered := make(chan error)
		go func() {
			runtime.LockOSThread() // never unlocked: the thread is in the pod's network, so it ends with the goroutine
			err := unix.Setns(int(f.Fd()), unix.CLONE_NEWNET)
			if err == nil {
				ns, err = netns.Current()
			}
			entered <- err
		}()
		if err := <-entered; err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { ns.Close() })
		return ns
	}
	return nil
}

// enrol redirects the connections from the client's pod to the server's as soon as both run, through proxies in both
// pods that scramble by a key what they exchange.
func enrol(t *testing.T, c *cluster.Cluster, namespace string, port uint16, key byte) {
	t.Helper()
	pods := map[string]corev1.Pod{}
	for range 600 {
		list, err := c.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{LabelSelector: manifest.LabelRole})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range list.Items {
			if p.Status.Phase == corev1.PodRunning && p.Status.PodIP != "" {
				pods[p.Labels[manifest.LabelRole]] = p
			}
		}
		if len(pods) == 2 {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	client, server := podNetwork(t, pods[string(manifest.Client)]), podNetwork(t, pods[string(manifest.Server)])
	if client == nil || server == nil {
		t.Skip("the networks of pods can be reached in a test cluster only")
	}
	at := netip.MustParseAddr(pods[string(manifest.Server)].Status.PodIP)
	meshtest.RedirectServer(t, server, netip.AddrPortFrom(at, port), key)
	meshtest.RedirectClient(t, client, netip.AddrPortFrom(at, meshtest.TunnelPort), key)
}

// TestMeshIntercepts opens a path between pods that are enrolled in ambient mode, and whose connections proxies in the
// pods take over. It checks that the path is refused if the tunnel between them is readable, and that privileged pods
// find that out.
func TestMeshIntercepts(t *testing.T) {
	c := admin(t)
	for name, test := range map[string]struct {
		options string
		key     byte
		fact    string   // its begin; empty: the site is refused
		says    []string // words of the fact or the error
	}{
		"scrambled": {"profile=yes", 0x55, "yes (", []string{"port 15008 is between them; nothing of it is readable in the",
			"TCP segments captured in the client's pod"}},
		"plain text": {"profile=yes", 0, "", []string{"a capture in the client's pod has the traffic in plain text"}},
		"not captured": {"profile=no", 0, "yes (", []string{"port 15008 is between them; nothing was captured, which takes " +
			"profile=yes"}},
	} {
		t.Run(name, func(t *testing.T) {
			n := namespaceFor(t, c, "privileged")
			k := newTestTarget(t, realCluster(t)+"&pod-labels=istio.io/dataplane-mode=ambient&port=25201&namespace="+n+"&"+
				test.options)
			var site targets.Single
			opened := make(chan error)
			go func() {
				var err error
				site, err = targets.OpenOne(t.Context(), k, targets.Placement{Path: result.PodPodOther})
				opened <- err
			}()
			enrol(t, c, n, 25201, test.key)
			err := <-opened
			got := ""
			if err != nil {
				got = err.Error()
			} else if got = interception(site.Facts); !strings.HasPrefix(got, test.fact) {
				t.Errorf("the fact is %s", got)
			}
			if (err != nil) != (test.fact == "") {
				t.Errorf("opened: %v", err)
			}
			for _, words := range test.says {
				if !strings.Contains(got, words) {
					t.Errorf("%q does not say %q", got, words)
				}
			}
			if err == nil {
				if err := site.Close(context.WithoutCancel(t.Context())); err != nil {
					t.Error(err)
				}
			}
			if err := k.Close(); err != nil {
				t.Error(err)
			}
			t.Log(got)
		})
	}
	if left := leftovers(t, c); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// interception returns the fact about the interception with its evidence.
func interception(facts []result.Fact) string {
	for _, f := range facts {
		if f.Name == result.MeshIntercepted {
			return f.String()
		}
	}
	return ""
}
