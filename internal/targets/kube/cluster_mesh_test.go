package kube

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
	"github.com/knotmeter/knotmeter/internal/targets/kube/cluster"
	"github.com/knotmeter/knotmeter/internal/targets/kube/manifest"
)

// mutated has each new pod of a namespace changed, as meshes do, from when it returns until the end of the test.
func mutated(
	t *testing.T, c *cluster.Cluster, namespace string, m []admissionv1.Mutation,
	conditions ...admissionv1.MatchCondition,
) {
	t.Helper()
	policies, bindings := c.AdmissionregistrationV1().MutatingAdmissionPolicies(),
		c.AdmissionregistrationV1().MutatingAdmissionPolicyBindings()
	name, ctx := "test-"+namespace, context.WithoutCancel(t.Context())
	pods := admissionv1.RuleWithOperations{
		Operations: []admissionv1.OperationType{admissionv1.Create},
		Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
	}
	_, err := policies.Create(ctx, &admissionv1.MutatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.MutatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}},
				ResourceRules:     []admissionv1.NamedRuleWithOperations{{RuleWithOperations: pods}},
			},
			MatchConditions: conditions, FailurePolicy: new(admissionv1.Fail),
			ReinvocationPolicy: admissionv1.NeverReinvocationPolicy,
			Mutations:          m,
		},
	}, metav1.CreateOptions{})
	if err == nil {
		_, err = bindings.Create(ctx, &admissionv1.MutatingAdmissionPolicyBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: admissionv1.MutatingAdmissionPolicyBindingSpec{PolicyName: name},
		}, metav1.CreateOptions{})
	}
	if err != nil {
		t.Skipf("the cluster has no mutating admission policies: %v", err)
	}
	t.Cleanup(func() {
		err := errors.Join(bindings.Delete(ctx, name, metav1.DeleteOptions{}),
			policies.Delete(ctx, name, metav1.DeleteOptions{}))
		if err != nil {
			t.Error(err)
		}
	})
	probe := plan(t, "kube:", targets.PodPodOther).Pod(manifest.Client)
	probe.Namespace, probe.Labels, probe.Annotations = namespace, map[string]string{"any": "other"}, nil
	var last error
	for range 300 { // until the API server knows it
		made, err := c.CoreV1().Pods(namespace).Create(ctx, probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil && len(made.Spec.Containers)+len(made.Spec.InitContainers) > 1 {
			return
		}
		last = err
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatalf("pods are not changed: %v", last)
}

// waiter is a container that waits, as an expression.
func waiter(kind, name string) string {
	return fmt.Sprintf(`Object.spec.%[1]s{
		name: %[2]q, image: "%[3]s", imagePullPolicy: "Never", command: ["/knotmeter-agent", "wait"],
		securityContext: Object.spec.%[1]s.securityContext{allowPrivilegeEscalation: false,
			capabilities: Object.spec.%[1]s.securityContext.capabilities{drop: ["ALL"]}}}`, kind, name, manifest.DefaultImage)
}

// withProxy puts a container before ours, and withInit one that has to end before ours begins, and does not.
func withProxy() []admissionv1.Mutation {
	return []admissionv1.Mutation{patched("add", "/spec/containers/0", waiter("containers", "istio-proxy"))}
}

func withInit() []admissionv1.Mutation {
	const first = `Object{spec: Object.spec{initContainers: ` +
		`[Object.spec.initContainers{name: "mesh-init", image: "any"}]}}`
	return []admissionv1.Mutation{
		{PatchType: admissionv1.PatchTypeApplyConfiguration,
			ApplyConfiguration: &admissionv1.ApplyConfiguration{Expression: first}},
		patched("replace", "/spec/initContainers/0", waiter("initContainers", "mesh-init")),
	}
}

func patched(op, path, value string) admissionv1.Mutation {
	patch := fmt.Sprintf("[JSONPatch{op: %q, path: %q, value: %s}]", op, path, value)
	return admissionv1.Mutation{PatchType: admissionv1.PatchTypeJSONPatch,
		JSONPatch: &admissionv1.JSONPatch{Expression: patch}}
}

// A run with sidecars measures and says so; a mesh that heeds the opt-out adds none; and what holds a pod up is found
// soon.
func TestMesh(t *testing.T) {
	c := admin(t)
	t.Run("all", func(t *testing.T) {
		t.Run("sidecar", func(t *testing.T) {
			t.Parallel()
			n := namespaceFor(t, c, "restricted")
			mutated(t, c, n, withProxy())
			k := open(t, realCluster(t)+"&namespace="+n)
			site, err := targets.One(t.Context(), k, targets.Placement{Path: targets.PodSvcOther})
			if err != nil {
				t.Fatal(err)
			}
			const want = "client: istio-proxy; server: istio-proxy"
			if got := result.FactOf(site.Facts, "sidecars"); got != want || len(site.Warnings) != 1 ||
				!strings.Contains(site.Warnings[0].Text, want) {
				t.Errorf("%q, %v", got, site.Warnings)
			}
			if ill := site.Health(t.Context()); len(ill) > 0 {
				t.Error(ill)
			}
			if err := errors.Join(site.Close(t.Context()), k.Close()); err != nil {
				t.Error(err)
			}
		})
		t.Run("opt-out", func(t *testing.T) {
			t.Parallel()
			n := namespaceFor(t, c, "restricted")
			mutated(t, c, n, withProxy(), admissionv1.MatchCondition{
				Name: "as-istio", Expression: `object.metadata.labels[?"sidecar.istio.io/inject"].orValue("") != "false"`,
			})
			k := open(t, realCluster(t)+"&namespace="+n)
			site, err := targets.One(t.Context(), k, targets.Placement{Path: targets.PodPodOther})
			if err != nil {
				t.Fatal(err)
			}
			if got := result.FactOf(site.Facts, "sidecars"); got != "none" || len(site.Warnings) > 0 {
				t.Errorf("%q, %v", got, site.Warnings)
			}
			if err := errors.Join(site.Close(t.Context()), k.Close()); err != nil {
				t.Error(err)
			}
		})
		t.Run("held up", func(t *testing.T) {
			t.Parallel()
			n := namespaceFor(t, c, "restricted")
			mutated(t, c, n, withInit())
			k := open(t, realCluster(t)+"&namespace="+n)
			began := time.Now()
			_, err := targets.One(t.Context(), k, targets.Placement{Path: targets.PodPodOther})
			t.Logf("after %.1f s: %v", time.Since(began).Seconds(), err)
			if err == nil || !strings.Contains(err.Error(), "the container mesh-init of pod") {
				t.Errorf("%v", err)
			}
			if err := k.Close(); err != nil {
				t.Error(err)
			}
		})
	})
	if left := leftIn(t, c); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}
