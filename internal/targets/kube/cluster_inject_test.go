package kube

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
	"github.com/knotmeter/knotmeter/internal/targets/kube/cluster"
	"github.com/knotmeter/knotmeter/internal/targets/kube/manifest"
	"github.com/knotmeter/knotmeter/internal/targets/targettest"
	"github.com/knotmeter/knotmeter/test/e2e"
)

// ownImages names the variable with the prefix of the names of images without an agent, as .ci/images builds them.
const ownImages = "KNOTMETER_E2E_OWN_IMAGES"

// builtAgent builds the agent from this source.
func builtAgent(arch string) ([]byte, error) {
	dir, err := os.MkdirTemp("", "knotmeter-agent")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "agent")
	c := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", file,
		"github.com/knotmeter/knotmeter/cmd/knotmeter-agent")
	c.Env = append(os.Environ(), "GOOS=linux", "GOARCH="+arch, "CGO_ENABLED=0")
	c.Stderr = os.Stderr
	if err := c.Run(); err != nil {
		return nil, err
	}
	return os.ReadFile(file)
}

// injectTarget returns the text of a target whose pods have an image without an agent.
func injectTarget(t *testing.T, image string) string {
	t.Helper()
	realCluster(t)
	prefix := os.Getenv(ownImages)
	if prefix == "" {
		t.Skip("there are no images without an agent: " + ownImages + " names none")
	}
	return "kube:?kubeconfig=" + e2e.Kubeconfig(t) + "&inject=yes&image=" + prefix + image + ":1"
}

// TestInjectedConformance checks that places whose agent was copied fulfil the contract of all targets.
func TestInjectedConformance(t *testing.T) {
	c := admin(t)
	text := injectTarget(t, "debian") + "&rotate-nodes=yes"
	targettest.Suite(t, targettest.Config{
		New:     func(t *testing.T) targets.Target { return newTestTarget(t, text) },
		Offers:  targettest.On(result.PodPodOther, result.NodeSvcSame),
		Left:    func(t *testing.T) []string { return leftovers(t, c) },
		Place:   hostname,
		Moments: []time.Duration{0, 50 * time.Millisecond, 300 * time.Millisecond, time.Second, 1500 * time.Millisecond},
	})
}

// TestInjectedNinePaths checks that all nine paths open, and that the agent answers at both ends of each.
func TestInjectedNinePaths(t *testing.T) {
	c := admin(t)
	k := newTestTarget(t, injectTarget(t, "debian"))
	for _, p := range result.Paths() {
		s, err := targets.OpenOne(t.Context(), k, targets.Placement{Path: p})
		if err != nil {
			t.Errorf("%s: %v", p, err)
			continue
		}
		for _, h := range []host.Host{s.Client, s.Server} {
			var out bytes.Buffer
			err := h.Run(t.Context(), host.Cmd{Args: []string{host.Agent}, Stdin: strings.NewReader("{}\n"), Stdout: &out})
			if err == nil || !strings.Contains(out.String(), "invalid request for the agent") {
				t.Errorf("%s: the agent on %s: %q, %v", p, h.Name(), out.String(), err)
			}
		}
		if err := s.Close(t.Context()); err != nil {
			t.Errorf("%s: %v", p, err)
		}
	}
	if err := k.Close(); err != nil {
		t.Error(err)
	}
	if left := leftovers(t, c); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// factOf returns a fact of a site.
func factOf(s targets.Single, name string) string { return result.FactOf(s.Facts, name) }

// openTimed opens a site and logs how long that took, with the copies.
func openTimed(t *testing.T, k *kubeTarget) targets.Single {
	t.Helper()
	began := time.Now()
	s, err := targets.OpenOne(t.Context(), k, targets.Placement{Path: result.PodPodOther})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("opened in %.2f s: %s %s", time.Since(began).Seconds(), factOf(s, "agent"), factOf(s, "agent-copy"))
	return s
}

// TestInjectedWays checks that the copy is the agent, whichever programs an image has, also in a restricted namespace.
// It logs how long images with and without the agent take.
func TestInjectedWays(t *testing.T) {
	c := admin(t)
	namespace := namespaceFor(t, c, "restricted")
	program, err := builtAgent("amd64")
	if err != nil {
		t.Fatal(err)
	}
	with := newTestTarget(t, realCluster(t)+"&namespace="+namespace)
	for range 3 {
		if err := openTimed(t, with).Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if err := with.Close(); err != nil {
		t.Error(err)
	}
	for image, way := range map[string]string{"debian": "gzip", "busybox": "gzip", "raw": "cat", "tar": "tar"} {
		t.Run(image, func(t *testing.T) {
			k := newTestTarget(t, injectTarget(t, image)+"&namespace="+namespace)
			k.injector.Agents = func(string) ([]byte, error) { return program, nil }
			for range 3 { // only the first probes the image
				s := openTimed(t, k)
				if copied := factOf(s, "agent-copy"); factOf(s, "agent") != "injected" || !strings.HasSuffix(copied, " by "+way) ||
					!strings.HasPrefix(factOf(s, "agent-digest"), "sha256:") {
					t.Errorf("%v", s.Facts)
				}
				if err := s.Close(t.Context()); err != nil {
					t.Error(err)
				}
			}
			if err := k.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestInjectedErrors checks that the error names an image into which the agent cannot be copied, and what the image
// lacks.
func TestInjectedErrors(t *testing.T) {
	c := admin(t)
	for image, says := range map[string][]string{
		injectTarget(t, "bare"): {"cannot be put into the image", "it has neither chmod nor tar", "cat and chmod, or tar"},
		"kube:?kubeconfig=" + e2e.Kubeconfig(t) + "&inject=yes&image=" +
			manifest.DefaultImage: {"has no sh", "inject=yes needs a shell"},
	} {
		k := newTestTarget(t, image)
		began := time.Now()
		_, err := targets.OpenOne(t.Context(), k, targets.Placement{Path: result.PodPodSame})
		t.Logf("after %.1f s: %v", time.Since(began).Seconds(), err)
		for _, words := range says {
			if err == nil || !strings.Contains(err.Error(), words) {
				t.Errorf("%s: it does not say %q", image, words)
			}
		}
		if err := k.Close(); err != nil {
			t.Error(err)
		}
		if left := leftovers(t, c); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
	}
}

// TestInjectedRBAC checks that the printed rights suffice to copy the agent into pods.
func TestInjectedRBAC(t *testing.T) {
	c := admin(t)
	given := namespaceFor(t, c, "restricted")
	const user = "knotmeter-test-inject"
	file := e2e.Kubeconfig(t)
	for _, options := range []string{"", "&client-node=node-1&server-node=node-2"} { // the latter may not list nodes
		text := strings.Replace(injectTarget(t, "debian")+"&namespace="+given+options, file, kubeconfigAs(t, user), 1)
		undo := grant(t, c, user, cluster.Roles(parseOptions(t, text).need(allNeeds())))
		k := newTestTarget(t, text)
		site, err := targets.OpenOne(t.Context(), k, targets.Placement{Path: result.PodSvcOther})
		if err == nil {
			err = site.Close(t.Context())
		}
		if err != nil {
			t.Errorf("%q: %v", options, err)
		}
		if err := k.Close(); err != nil {
			t.Error(err)
		}
		undo()
	}
}

// kubeconfigAs returns a kubeconfig that impersonates a user.
func kubeconfigAs(t *testing.T, user string) string {
	t.Helper()
	text := asUser(t, user)
	_, rest, _ := strings.Cut(text, "kubeconfig=")
	file, _, _ := strings.Cut(rest, "&")
	return file
}
