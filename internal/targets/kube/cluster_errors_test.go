package kube

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
	"github.com/knotmeter/knotmeter/internal/targets/kube/cluster"
	"github.com/knotmeter/knotmeter/internal/targets/kube/manifest"
	"github.com/knotmeter/knotmeter/test/e2e"
)

// nodeNetwork returns the network namespace of a node of a test cluster. The PID of the cluster's first process is in a
// file next to its kubeconfig.
func nodeNetwork(t *testing.T, node string) string {
	t.Helper()
	realCluster(t)
	pid, err := e2e.Holder(e2e.Kubeconfig(t))
	if errors.Is(err, os.ErrNotExist) {
		t.Skip("the networks of nodes can be reached in a test cluster only")
	}
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("/proc/%d/root/run/netns/%s", pid, node)
}

// openTime is the time in which an experiment opens a site; errors must be reported within it.
const openTime = time.Minute

// expectOpenError opens a site that cannot be opened, and checks that the error has the words, comes in time, and
// leaves nothing.
func expectOpenError(t *testing.T, c *cluster.Cluster, text string, path result.Path, says ...string) error {
	t.Helper()
	k := newTestTarget(t, text)
	ctx, cancel := context.WithTimeout(t.Context(), openTime)
	defer cancel()
	began := time.Now()
	_, err := targets.OpenOne(ctx, k, targets.Placement{Path: path})
	t.Logf("after %.1f s: %v", time.Since(began).Seconds(), err)
	for _, words := range says {
		if err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("it does not say %q", words)
		}
	}
	if ctx.Err() != nil {
		t.Error("it came when the time to open was over")
	}
	if err := k.Close(); err != nil {
		t.Error(err)
	}
	if left := leftovers(t, c); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	return err
}

// podConfig writes a file and returns config= with it.
func podConfig(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "pods.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return "&config=" + file
}

// taint adds a taint to a node until the test ends.
func taint(t *testing.T, c *cluster.Cluster, node string) {
	t.Helper()
	change := func(ctx context.Context, do func(*corev1.Node)) error {
		for {
			n, err := c.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
			if err != nil {
				return err
			}
			do(n)
			if _, err = c.CoreV1().Nodes().Update(ctx, n, metav1.UpdateOptions{}); err == nil ||
				!strings.Contains(err.Error(), "the object has been modified") {
				return err
			}
		}
	}
	const key = "test.example/keep-off"
	err := change(t.Context(), func(n *corev1.Node) {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Effect: corev1.TaintEffectNoSchedule})
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		err := change(context.Background(), func(n *corev1.Node) {
			n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == key })
		})
		if err != nil {
			t.Error(err)
		}
	})
}

func TestTaint(t *testing.T) {
	c := admin(t)
	taint(t, c, "node-1")
	named := realCluster(t) + "&client-node=node-1&server-node=node-2"
	expectOpenError(t, c, named, result.PodPodOther,
		"client-node: node node-1 has the taint test.example/keep-off:NoSchedule", "tolerate the taint in config=")
	k := newTestTarget(t, named+podConfig(t, "tolerations: [{key: test.example/keep-off, operator: Exists}]"))
	site, err := targets.OpenOne(t.Context(), k, targets.Placement{Path: result.PodPodOther})
	if err == nil {
		err = site.Close(t.Context())
	}
	if err := errors.Join(err, k.Close()); err != nil {
		t.Errorf("with the remedy: %v", err)
	}
}

// TestLateTaint checks the error about pods that stay pending because of a taint that was added after the nodes were
// chosen.
func TestLateTaint(t *testing.T) {
	c := admin(t)
	k := newTestTarget(t, realCluster(t)+"&client-node=node-1&server-node=node-2")
	if _, err := k.reach(t.Context()); err != nil {
		t.Fatal(err)
	}
	taint(t, c, "node-2")
	began := time.Now()
	_, err := targets.OpenOne(t.Context(), k, targets.Placement{Path: result.PodPodOther})
	t.Logf("after %.1f s: %v", time.Since(began).Seconds(), err)
	if err == nil || !strings.Contains(err.Error(), "cannot be scheduled") ||
		!strings.Contains(err.Error(), "tolerate the taint in config=") {
		t.Error("it does not say why the pod is not scheduled")
	}
	if err := k.Close(); err != nil {
		t.Error(err)
	}
}

func TestPodErrors(t *testing.T) {
	c := admin(t)
	real := realCluster(t)
	private := strings.Split(real, "&image=")[0] + "&image=127.0.0.1:1/private:1"
	given := namespaceFor(t, c, "restricted")
	for _, test := range []struct {
		name, text string
		path       result.Path
		says       []string
	}{
		{"no room", real + podConfig(t, "resources: {requests: {cpu: 1000}}"), result.PodPodOther,
			[]string{"cannot be scheduled", "Insufficient cpu", "ask for less in config="}},
		{"no pull secret", private + "&namespace=" + given + podConfig(t, "imagePullSecrets: [{name: there-is-none}]"),
			result.PodPodSame,
			[]string{"cannot get the image 127.0.0.1:1/private:1", "lacks an image pull secret", "there-is-none",
				"imagePullSecrets in config="}},
		{"no runtime class", real + "&runtime-class=there-is-none", result.PodPodOther,
			[]string{"has not the RuntimeClass", "there-is-none", "kubectl get runtimeclasses"}},
		{"no Multus", real + "&network=fast", result.PodPodOther,
			[]string{"was not attached to fast", "Multus", "leave network= out"}},
		{"no Multus for the default network", real + "&default-network=default/fast", result.PodPodOther,
			[]string{"was not attached to default/fast", "Multus", "leave default-network= out"}},
		{"not for nodes", real + "&namespace=" + given, result.PodNodeOther,
			[]string{"node paths need pods in the network of their node", given, "without namespace="}},
	} {
		t.Run(strings.ReplaceAll(test.name, " ", "-"), func(t *testing.T) {
			err := expectOpenError(t, c, test.text, test.path, test.says...)
			if unsupported := test.path == result.PodNodeOther; errors.Is(err, result.ErrNotSupported) != unsupported {
				t.Errorf("not supported: %v", !unsupported)
			}
		})
	}
}

// TestSandboxError checks the error about a runtime class without a runtime on the nodes. Only events show that the
// sandbox cannot be created.
func TestSandboxError(t *testing.T) {
	c := admin(t)
	class, err := c.NodeV1().RuntimeClasses().Create(t.Context(),
		&nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}, Handler: "there-is-none"},
		metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.NodeV1().RuntimeClasses().Delete(context.Background(), class.Name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	expectOpenError(t, c, realCluster(t)+"&runtime-class="+class.Name, result.PodPodOther, "FailedCreatePodSandBox",
		"there-is-none", "another runtime-class=")
}

// TestNamespaceErrors checks that errors explain the quotas and limits of a namespace.
func TestNamespaceErrors(t *testing.T) {
	c := admin(t)
	quota := func(name corev1.ResourceName, value string) func(*testing.T, string) {
		return func(t *testing.T, namespace string) {
			_, err := c.CoreV1().ResourceQuotas(namespace).Create(t.Context(), &corev1.ResourceQuota{
				ObjectMeta: metav1.ObjectMeta{Name: "small"},
				Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{name: resource.MustParse(value)}},
			}, metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	limit := func(item corev1.LimitRangeItem) func(*testing.T, string) {
		return func(t *testing.T, namespace string) {
			_, err := c.CoreV1().LimitRanges(namespace).Create(t.Context(),
				&corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Name: "range"},
					Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{item}}}, metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, test := range []struct {
		name    string
		prepare func(*testing.T, string)
		path    result.Path
		says    []string
	}{
		{"cpu quota", quota(corev1.ResourceRequestsCPU, "150m"), result.PodPodOther,
			[]string{"a quota of the namespace", "is used up", "requests.cpu", "raise it, or give another namespace="}},
		{"quota of limits", quota(corev1.ResourceLimitsCPU, "1"), result.PodPodOther,
			[]string{"wants more said about resources", "limits.cpu", "config="}},
		{"quota of services", quota(corev1.ResourceServices, "0"), result.PodSvcOther,
			[]string{"a quota of the namespace", "services"}},
		{"least cpu", limit(corev1.LimitRangeItem{Type: corev1.LimitTypeContainer,
			Min: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}}), result.PodPodOther,
			[]string{"a LimitRange of the namespace", "minimum cpu", "config="}},
		{"most of a pod", limit(corev1.LimitRangeItem{Type: corev1.LimitTypePod,
			Max: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")}}), result.PodPodOther,
			[]string{"a LimitRange of the namespace", "memory", "config="}},
	} {
		t.Run(strings.ReplaceAll(test.name, " ", "-"), func(t *testing.T) {
			namespace := namespaceFor(t, c, "restricted")
			test.prepare(t, namespace)
			expectOpenError(t, c, realCluster(t)+"&namespace="+namespace, test.path, test.says...)
		})
	}
}

// TestNamespaceTerminating checks the error about a namespace that accepts no new objects because it is being removed.
func TestNamespaceTerminating(t *testing.T) {
	c := admin(t)
	namespace := namespaceFor(t, c, "restricted")
	const finalizer = "test.example/stay"
	maps := c.CoreV1().ConfigMaps(namespace)
	if _, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "stays",
		Finalizers: []string{finalizer}}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // runs before the namespace's cleanup
		if _, err := maps.Update(context.Background(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "stays"}},
			metav1.UpdateOptions{}); err != nil {
			t.Error(err)
		}
	})
	if err := c.CoreV1().Namespaces().Delete(t.Context(), namespace, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	expectOpenError(t, c, realCluster(t)+"&namespace="+namespace, result.PodPodOther,
		"the namespace "+namespace+" is being removed", "wait until it is gone")
}

// TestNoTraffic checks that, if traffic does not pass, the error names the policies that forbid it, or says that there
// are none. The test cluster does not enforce policies, so the node drops the traffic instead.
func TestNoTraffic(t *testing.T) {
	c := admin(t)
	network := nodeNetwork(t, "node-2")
	rule := []string{"-p", "tcp", "--dport", fmt.Sprint(defaultPort), "-j", "DROP"}
	tables := func(ctx context.Context, action string) error {
		args := append([]string{"--net=" + network, "iptables", action, "FORWARD"}, rule...)
		if out, err := exec.CommandContext(ctx, "nsenter", args...).CombinedOutput(); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	}
	if err := tables(t.Context(), "-I"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tables(context.Background(), "-D"); err != nil {
			t.Error(err)
		}
	})
	namespace := namespaceFor(t, c, "restricted")
	text := realCluster(t) + "&client-node=node-1&server-node=node-2&namespace=" + namespace
	expectOpenError(t, c, text, result.PodPodOther, "node-1/client does not reach node-2/server",
		"policies of the whole cluster", "firewalls")
	deny := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Name: "deny-all"},
		Spec: networkingv1.NetworkPolicySpec{
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress},
		}}
	if _, err := c.NetworkingV1().NetworkPolicies(namespace).Create(t.Context(), deny,
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	expectOpenError(t, c, text, result.PodPodOther,
		"the NetworkPolicies deny-all of the namespace "+namespace+" select the server's pod",
		"no ingress with the client on TCP and UDP port 5201", manifest.LabelManaged)
}
