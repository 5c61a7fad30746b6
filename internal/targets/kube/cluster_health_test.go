package kube

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/host/remote"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
	"github.com/knotmeter/knotmeter/internal/targets/kube/cluster"
	"github.com/knotmeter/knotmeter/internal/targets/kube/manifest"
)

// openSingle returns a site and its target, which are closed when the test ends.
func openSingle(t *testing.T, text string) (targets.Single, *kubeTarget) {
	t.Helper()
	c, k := admin(t), newTestTarget(t, text)
	s, err := targets.OpenOne(t.Context(), k, targets.Placement{Path: result.PodPodOther})
	if err != nil {
		t.Fatal(errors.Join(err, k.Close()))
	}
	t.Cleanup(func() {
		if err := errors.Join(s.Close(context.WithoutCancel(t.Context())), k.Close()); err != nil {
			t.Error(err)
		}
		if left := leftovers(t, c); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
	})
	return s, k
}

// awaitHealthReport waits until the site reports a problem, because events of watches arrive a moment later.
func awaitHealthReport(t *testing.T, s targets.Single) string {
	t.Helper()
	for range 100 {
		if said := s.Health(t.Context()); len(said) > 0 {
			t.Log(said)
			return strings.Join(said, "; ")
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatal("the site says nothing")
	return ""
}

// TestGoodHealth checks that a run without incidents is healthy, and that checking this costs no request.
func TestGoodHealth(t *testing.T) {
	s, k := openSingle(t, realCluster(t))
	if err := s.Client.Run(t.Context(), host.Cmd{Args: []string{"echo", "x"}}); err != nil {
		t.Error(err)
	}
	before := k.reached.cluster.Calls()
	if said := s.Health(t.Context()); len(said) != 0 {
		t.Errorf("%q", said)
	}
	if n := k.reached.cluster.Calls() - before; n != 0 {
		t.Errorf("%d requests", n)
	}
	if !k.reached.nodeWatches.Watched() {
		t.Error("the nodes are not watched")
	}
}

// TestNodePressure checks that pressure on a node counts even if it is short: the kubelet itself resets the condition
// within seconds.
func TestNodePressure(t *testing.T) {
	c := admin(t)
	s, k := openSingle(t, realCluster(t))
	node := k.reached.nodes.Pairs[0][1].Name
	set := func(status corev1.ConditionStatus) {
		patch, err := json.Marshal(object{"status": object{"conditions": []object{{
			"type": "MemoryPressure", "status": status, "reason": "ForATest", "message": "a test says so.",
			"lastTransitionTime": metav1.Now(),
		}}}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.CoreV1().Nodes().Patch(context.WithoutCancel(t.Context()), node, types.StrategicMergePatchType, patch,
			metav1.PatchOptions{}, "status"); err != nil {
			t.Fatal(err)
		}
	}
	set(corev1.ConditionTrue)
	set(corev1.ConditionFalse)
	if said := awaitHealthReport(t, s); said != "node "+node+" was under MemoryPressure: ForATest a test says so" {
		t.Error(said)
	}
	// The next run is not affected. The taint of the condition is removed a moment after the condition.
	for range 100 {
		n, err := c.CoreV1().Nodes().Get(t.Context(), node, metav1.GetOptions{})
		if err == nil && len(n.Spec.Taints) == 0 {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	next, err := targets.OpenOne(t.Context(), k, targets.Placement{Path: result.PodPodSame})
	if err != nil {
		t.Fatal(err)
	}
	if said := next.Health(t.Context()); len(said) != 0 {
		t.Errorf("the next run: %q", said)
	}
	if err := next.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestEvicted checks that the command of an evicted pod ends with that reason, which invalidates the run.
func TestEvicted(t *testing.T) {
	c := admin(t)
	s, k := openSingle(t, realCluster(t))
	ended := make(chan error, 1)
	go func() { ended <- s.Server.Run(t.Context(), host.Cmd{Args: []string{"sleep", "600"}}) }()
	awaitProgram(t, s.Server, "sleep", true)
	evict(t, c, k, manifest.Server)
	err := <-ended
	if !errors.Is(err, remote.ErrLost) || !strings.Contains(err.Error(), "was evicted through the API server") {
		t.Error(err)
	}
	if said := awaitHealthReport(t, s); !strings.Contains(said, "was evicted through the API server") {
		t.Error(said)
	}
}

func evict(t *testing.T, c *cluster.Cluster, k *kubeTarget, r manifest.Role) {
	t.Helper()
	pods, err := c.CoreV1().Pods(k.claimed.namespace).List(t.Context(),
		metav1.ListOptions{LabelSelector: manifest.LabelRole + "=" + string(r)})
	if err != nil || len(pods.Items) != 1 {
		t.Fatal(pods, err)
	}
	e := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: pods.Items[0].Name, Namespace: k.claimed.namespace},
		DeleteOptions: &metav1.DeleteOptions{GracePeriodSeconds: new(int64(1))}}
	if err := c.PolicyV1().Evictions(k.claimed.namespace).Evict(t.Context(), e); err != nil {
		t.Fatal(err)
	}
}

// TestContainerKilled checks that the container and the run end if the first process of the container is killed.
func TestContainerKilled(t *testing.T) {
	c := admin(t)
	s, k := openSingle(t, realCluster(t))
	pods, err := c.CoreV1().Pods(k.claimed.namespace).List(t.Context(),
		metav1.ListOptions{LabelSelector: manifest.LabelRole + "=client"})
	if err != nil || len(pods.Items) != 1 {
		t.Fatal(pods, err)
	}
	pid := firstProcess(pods.Items[0].UID)
	if pid == 0 {
		t.Skip("the nodes are not of this machine, or their processes cannot be seen from here")
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if said := awaitHealthReport(t, s); !strings.Contains(said, "the container agent of pod "+pods.Items[0].Name) ||
		!strings.Contains(said, "ended with status 137") {
		t.Error(said)
	}
}

// firstProcess returns the PID on this machine of the first process of a pod's container; 0 if it is not here.
func firstProcess(pod types.UID) int {
	groups, _ := filepath.Glob("/proc/[0-9]*/cgroup")
	for _, file := range groups {
		group, _ := os.ReadFile(file)
		command, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline"))
		uid := strings.ReplaceAll(string(group), "_", "-")
		if !strings.Contains(uid, string(pod)) || !bytes.HasSuffix(bytes.TrimRight(command, "\x00"),
			[]byte("\x00"+remote.WaitCommand)) {
			continue
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		return pid
	}
	return 0
}

// TestThrottled checks that throttling is reported if a limit of the namespace causes it, for which the user did not
// ask.
func TestThrottled(t *testing.T) {
	c := admin(t)
	given := namespaceFor(t, c, "restricted")
	_, err := c.CoreV1().LimitRanges(given).Create(t.Context(), &corev1.LimitRange{
		ObjectMeta: metav1.ObjectMeta{Name: "little"},
		Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
			Type: corev1.LimitTypeContainer, Default: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")},
		}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s, _ := openSingle(t, realCluster(t)+"&namespace="+given)
	// The agent alone uses more than the 10 ms of CPU time in a period.
	for range 5 {
		if err := s.Server.Run(t.Context(),
			host.Cmd{Args: []string{host.Agent}, Stdin: strings.NewReader("{}\n")}); err == nil {
			t.Error("an empty request was carried out")
		}
	}
	if said := awaitHealthReport(t, s); !strings.Contains(said, "was throttled") ||
		!strings.Contains(said, "by its limit of 100m") {
		t.Error(said)
	}
	for range 100 { // only new throttling counts
		if len(s.Health(t.Context())) == 0 {
			return
		}
	}
	t.Error("what throttled one run is counted for all that follow")
}

// definition returns a CustomResourceDefinition like those of network plugins, but without their schemas.
func definition(group, plural, kind, scope, version string) object {
	return object{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": object{"name": plural + "." + group},
		"spec": object{
			"group": group, "scope": scope, "names": object{"plural": plural, "singular": strings.ToLower(kind), "kind": kind,
				"listKind": kind + "List"},
			"versions": []object{{"name": version, "served": true, "storage": true,
				"schema": object{"openAPIV3Schema": object{"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}},
		},
	}
}

// createObject creates an object of a kind without a typed client, and removes it when the test ends.
func createObject(t *testing.T, c *cluster.Cluster, path string, what object) {
	t.Helper()
	text, err := json.Marshal(what)
	if err != nil {
		t.Fatal(err)
	}
	for range 100 { // a new kind is served a moment after its definition
		if err = c.CoreV1().RESTClient().Post().AbsPath(path).Body(text).SetHeader("Content-Type",
			"application/json").Do(t.Context()).Error(); err == nil {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	name := what["metadata"].(object)["name"].(string)
	t.Cleanup(func() {
		if err := c.CoreV1().RESTClient().Delete().AbsPath(path,
			name).Do(context.WithoutCancel(t.Context())).Error(); err != nil {
			t.Error(err)
		}
	})
}

// pluginResources creates resources as Calico and Cilium have them, and a policy in the namespace.
func pluginResources(t *testing.T, c *cluster.Cluster, namespace string) {
	t.Helper()
	const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	createObject(t, c, definitions, definition("crd.projectcalico.org", "ippools", "IPPool", "Cluster", "v1"))
	createObject(t, c, definitions,
		definition("crd.projectcalico.org", "felixconfigurations", "FelixConfiguration", "Cluster", "v1"))
	createObject(t, c, definitions, definition("cilium.io", "ciliumnodeconfigs", "CiliumNodeConfig", "Namespaced", "v2"))
	createObject(t, c, definitions,
		definition("cilium.io", "ciliumnetworkpolicies", "CiliumNetworkPolicy", "Namespaced", "v2"))
	createObject(t, c, definitions,
		definition("cilium.io", "ciliumclusterwidenetworkpolicies", "CiliumClusterwideNetworkPolicy", "Cluster", "v2"))
	make := func(api, kind, name string, path string, spec object) {
		createObject(t, c, path, object{"apiVersion": api, "kind": kind, "metadata": object{"name": name}, "spec": spec})
	}
	make("crd.projectcalico.org/v1", "IPPool", "test-pool", "/apis/crd.projectcalico.org/v1/ippools",
		object{"vxlanMode": "CrossSubnet", "ipipMode": "Never", "natOutgoing": true})
	make("crd.projectcalico.org/v1", "FelixConfiguration", "default", "/apis/crd.projectcalico.org/v1/felixconfigurations",
		object{"wireguardEnabled": true})
	make("cilium.io/v2", "CiliumNodeConfig", "test", "/apis/cilium.io/v2/namespaces/kube-system/ciliumnodeconfigs",
		object{"nodeSelector": object{}, "defaults": object{"bpf-lb-mode": "dsr"}})
	make("cilium.io/v2", "CiliumNetworkPolicy", "of-one",
		"/apis/cilium.io/v2/namespaces/"+namespace+"/ciliumnetworkpolicies", object{})
	make("cilium.io/v2", "CiliumClusterwideNetworkPolicy", "of-all",
		"/apis/cilium.io/v2/ciliumclusterwidenetworkpolicies", object{})
	createObject(t, c, "/api/v1/namespaces/kube-system/configmaps", object{"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": object{"name": "cilium-config"}, "data": object{"ipam": "test"}})
	set := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: "test-plugin", Namespace: namespace},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"test": "plugin"}},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"test": "plugin"}},
				Spec: corev1.PodSpec{
					NodeSelector: map[string]string{"there-is": "none"},
					Containers:   []corev1.Container{{Name: "a", Image: "calico/node:v0"}, {Name: "b", Image: "cilium/cilium:v0"}},
				}},
		}}
	if _, err := c.AppsV1().DaemonSets(namespace).Create(t.Context(), set, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// TestFactRules checks that the custom resources of network plugins are read, and that each right is needed: without it
// a known fact is unknown.
func TestFactRules(t *testing.T) {
	c := admin(t)
	given := namespaceFor(t, c, "restricted")
	pluginResources(t, c, given)
	const user = "knotmeter-test-facts"
	text := asUser(t, user) + "&namespace=" + given + "&client-node=node-1&server-node=node-2"
	gather := func(rules []rbacv1.PolicyRule) map[string]bool {
		undo := grant(t, c, user, []any{rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "facts"}, Rules: rules}})
		defer undo()
		k := newTestTarget(t, text)
		if _, err := k.reach(t.Context()); err != nil {
			t.Fatal(err)
		}
		nodes := cluster.NewNodes(k.reached.cluster.CoreV1().Nodes())
		defer nodes.End()
		nodes.StartPeriod(t.Context(), "node-1", "node-2")
		e := cluster.Gather(t.Context(), k.reached.cluster)
		return map[string]bool{
			"configmaps": e.Config["kube-system/cilium-config"] != nil, "daemonsets": len(e.DaemonSets) > 0,
			"ippools": len(e.Custom["ippools"]) > 0, "felixconfigurations": len(e.Custom["felixconfigurations"]) > 0,
			"ciliumnodeconfigs": len(e.Custom["ciliumnodeconfigs"]) > 0,
			"policies of Cilium": result.FactOf(cluster.PolicyFacts(t.Context(), k.reached.cluster, given),
				"cilium-network-policies") == "2: of-all, of-one",
			"nodes": len(k.reached.listed) == 2 && nodes.Watched(),
		}
	}
	all := cluster.Roles(parseOptions(t, text).need(allNeeds()))
	rules := all[len(all)-1].(rbacv1.ClusterRole).Rules
	for name, is := range gather(rules) {
		if !is {
			t.Errorf("with all rules nothing is known of %s", name)
		}
	}
	for i, r := range rules {
		name := r.Resources[0]
		if strings.HasSuffix(name, "policies") {
			name = "policies of Cilium"
		}
		got := gather(slices.Delete(slices.Clone(rules), i, i+1))
		for what, is := range got {
			if is == (what == name) {
				t.Errorf("without the rule on %s: %s is known: %v", r.Resources[0], what, is)
			}
		}
	}
}

// TestClusterFacts checks that no fact of a real cluster is empty, and that those which all our test clusters have are
// known.
func TestClusterFacts(t *testing.T) {
	k := newTestTarget(t, realCluster(t))
	facts, err := k.Facts(t.Context())
	if err := errors.Join(err, k.Close()); err != nil {
		t.Fatal(err)
	}
	values := map[string]string{}
	for _, f := range facts {
		if f.Value == "" || values[f.Name] != "" {
			t.Errorf("fact %s is %q, or there twice", f.Name, f.Value)
		}
		values[f.Name] = f.Value
	}
	t.Log(fmt.Sprint(facts))
	for _, name := range []string{
		"kubernetes", "kubelet", "container-runtime", "kernel", "os", "cpu-model", "kube-proxy", "pod-mtu", "node-mtu",
		"pod-device", "pod-driver", "pod-qdisc", "pod-offloads",
		"node-device", "node-qdisc", "node-pressure", "network-policies", "cilium-network-policies",
		"sysctl.net.ipv4.tcp-rmem", "sysctl.net.core.somaxconn", "node.sysctl.net.core.somaxconn",
	} {
		if v := values[name]; v == "" || v == result.Unknown {
			t.Errorf("%s is %q", name, v)
		}
	}
}
