package kube

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets/kube/cluster"
	"github.com/knotmeter/knotmeter/internal/targets/kube/volumes"
)

// TestSettle checks that, after a switch, the nodes are listed and watched anew, and earlier refusals are forgotten.
func TestSettle(t *testing.T) {
	k := targetWithNodes(3, options{})
	r := k.reached
	api := fake.NewClientset(&r.listed[0], &r.listed[1], &r.listed[2])
	r.cluster.Interface = api
	r.storage = volumes.NewStorage(r.cluster, k.options.Volume, k.options.need(nil))
	r.vaultStorage = volumes.NewStorage(r.cluster, k.options.vaultVolume(), k.options.need(nil))
	watches := cluster.NewNodes(api.CoreV1().Nodes())
	watches.StartPeriod(t.Context(), "w1")
	r.nodeWatches = watches
	k.refused = map[result.Path]error{result.PodPodOther: result.NotSupported("not before")}
	change := func(ready corev1.ConditionStatus, kernel string) {
		t.Helper()
		n := r.listed[1].DeepCopy()
		n.Status.Conditions[0].Status, n.Status.NodeInfo.KernelVersion = ready, kernel
		if _, err := api.CoreV1().Nodes().Update(t.Context(), n, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	change(corev1.ConditionFalse, "6.1")
	if err := k.Settle(t.Context()); err == nil || !strings.Contains(err.Error(), "w1 is not Ready") {
		t.Errorf("a node that is not ready: %v", err)
	}
	if r.nodeWatches == watches {
		t.Error("nodes are still watched as before the switch")
	}
	change(corev1.ConditionTrue, "6.12")
	if err := k.Settle(t.Context()); err != nil || r.participants()[1].Status.NodeInfo.KernelVersion != "6.12" ||
		k.checkPath(result.PodPodOther) != nil {
		t.Errorf("%v, %+v, %v", err, r.participants()[1].Status.NodeInfo, k.refused)
	}
	if err := api.CoreV1().Nodes().Delete(t.Context(), "w0", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := k.Settle(t.Context()); err == nil || !strings.Contains(err.Error(), "w0 is gone") {
		t.Errorf("a node that is gone: %v", err)
	}
}

// TestEnvironment checks that switch commands reach the cluster that the target names, from any directory.
func TestEnvironment(t *testing.T) {
	whole, err := filepath.Abs("testdata/none")
	if err != nil {
		t.Fatal(err)
	}
	k := newTarget(parseOptions(t, "kube:there?kubeconfig=testdata/none"), nil, nil)
	if got := k.Environment(); !slices.Equal(got, []string{"KUBECONFIG=" + whole}) {
		t.Errorf("%q", got)
	}
}
