//go:build linux

package paths

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
	"github.com/knotmeter/knotmeter/test/e2e"
)

// effectTime is how long a network may take to enforce a policy, or to stop doing so.
const effectTime = time.Minute

// openUntil opens sites between pods of two nodes until the outcome is as wanted, and returns the last error. The
// effect of a policy shows in no other way.
func openUntil(t *testing.T, text string, wanted func(error) bool) error {
	t.Helper()
	for began := time.Now(); ; {
		k := open(t, text)
		site, err := targets.OpenOne(t.Context(), k, targets.Placement{Path: result.PodPodOther})
		if err == nil {
			if closed := site.Close(context.WithoutCancel(t.Context())); closed != nil {
				t.Fatal(closed)
			}
		}
		if wanted(err) {
			return err
		}
		if time.Since(began) > effectTime {
			t.Fatalf("%v is not as wanted after %v", err, effectTime)
		}
	}
}

func opens(err error) bool { return err == nil }
func fails(err error) bool { return err != nil }

// TestPolicies checks that the error of a site whose traffic a NetworkPolicy forbids names the policy; with a policy
// that allows it the site opens; and with a cluster-wide policy the error suggests to look for one. A network that
// enforces no policies opens the site.
func TestPolicies(t *testing.T) {
	here := cluster{e2e.OpenLocal(t)}
	n := here.network(t)
	c := e2e.Open(t)
	namespace, err := c.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-policies-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.CoreV1().Namespaces().Delete(context.Background(), namespace.Name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	policies := c.NetworkingV1().NetworkPolicies(namespace.Name)
	make := func(name string, spec networkingv1.NetworkPolicySpec) {
		t.Helper()
		policy := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}
		_, err := policies.Create(t.Context(), policy, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	both := []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress}
	make("deny-all", networkingv1.NetworkPolicySpec{PolicyTypes: both})
	text := here.target("namespace=" + namespace.Name)
	if !n.enforces {
		openUntil(t, text, opens)
		return
	}
	says := func(err error, words ...string) {
		t.Helper()
		for _, w := range words {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%v does not say %q", err, w)
			}
		}
	}
	says(openUntil(t, text, fails), "the NetworkPolicies deny-all of the namespace "+namespace.Name, e2e.Managed)
	ours := metav1.LabelSelector{MatchLabels: map[string]string{"app.kubernetes.io/managed-by": "knotmeter"}}
	peers := []networkingv1.NetworkPolicyPeer{{PodSelector: &ours}}
	make("allow-ours", networkingv1.NetworkPolicySpec{PodSelector: ours, PolicyTypes: both,
		Ingress: []networkingv1.NetworkPolicyIngressRule{{From: peers}},
		Egress:  []networkingv1.NetworkPolicyEgressRule{{To: peers}}})
	openUntil(t, text, opens)
	if n.hostile == nil {
		return
	}
	path, object := n.hostile(namespace.Name)
	body, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.CoreV1().RESTClient().Post().AbsPath(path).Body(body).Do(t.Context()).Error(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		err := c.CoreV1().RESTClient().Delete().AbsPath(path, "hostile").Do(context.Background()).Error()
		if err != nil {
			t.Error(err)
		}
	})
	says(openUntil(t, text, fails), "are not in the way", "policies of the whole cluster")
}

// ciliumHostile returns a cluster-wide policy of Cilium that forbids all traffic to the pods of a namespace.
func ciliumHostile(namespace string) (path string, object any) {
	return "/apis/cilium.io/v2/ciliumclusterwidenetworkpolicies", map[string]any{
		"apiVersion": "cilium.io/v2", "kind": "CiliumClusterwideNetworkPolicy",
		"metadata": map[string]any{"name": "hostile"},
		"spec": map[string]any{
			"endpointSelector": map[string]any{
				"matchLabels": map[string]any{"k8s:io.kubernetes.pod.namespace": namespace},
			},
			"ingressDeny": []any{map[string]any{"fromEntities": []any{"all"}}},
		},
	}
}

// calicoHostile returns a cluster-wide policy of Calico that forbids all traffic to the pods of a namespace.
func calicoHostile(namespace string) (path string, object any) {
	return "/apis/crd.projectcalico.org/v1/globalnetworkpolicies", map[string]any{
		"apiVersion": "crd.projectcalico.org/v1", "kind": "GlobalNetworkPolicy",
		"metadata": map[string]any{"name": "hostile"},
		"spec": map[string]any{
			"order": 1, "namespaceSelector": "kubernetes.io/metadata.name == '" + namespace + "'", "types": []any{"Ingress"},
			"ingress": []any{map[string]any{"action": "Deny"}},
		},
	}
}
