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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
	"github.com/knotmeter/knotmeter/internal/targets/kube/cluster"
	"github.com/knotmeter/knotmeter/internal/targets/kube/manifest"
)

// mutatePods makes an admission policy change each new pod of a namespace until the test ends, as meshes do.
func mutatePods(
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
	if apierrors.IsNotFound(err) {
		t.Skipf("the cluster has no mutating admission policies: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		err := errors.Join(bindings.Delete(ctx, name, metav1.DeleteOptions{}),
			policies.Delete(ctx, name, metav1.DeleteOptions{}))
		if err != nil {
			t.Error(err)
		}
	})
	probe := blueprint(t, "kube:", result.PodPodOther).Pod(manifest.Client)
	probe.Namespace, probe.Labels, probe.Annotations = namespace, map[string]string{"any": "other"}, nil
	var last error
	for range 300 { // until the API server applies the policy
		made, err := c.CoreV1().Pods(namespace).Create(ctx, probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil && len(made.Spec.Containers)+len(made.Spec.InitContainers) > 1 {
			return
		}
		last = err
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatalf("pods are not changed: %v", last)
}

// waitingContainer returns a container that waits, as a CEL expression.
func waitingContainer(kind, name string) string {
	return fmt.Sprintf(`Object.spec.%[1]s{
		name: %[2]q, image: "%[3]s", imagePullPolicy: "Never", command: ["/knotmeter-agent", "wait"],
		securityContext: Object.spec.%[1]s.securityContext{allowPrivilegeEscalation: false,
			capabilities: Object.spec.%[1]s.securityContext.capabilities{drop: ["ALL"]}}}`, kind, name, manifest.DefaultImage)
}

// addSidecar inserts a container before the agent's; addInitContainer adds an init container that never ends.
func addSidecar() []admissionv1.Mutation {
	return []admissionv1.Mutation{jsonPatch("add", "/spec/containers/0", waitingContainer("containers", "istio-proxy"))}
}

func addInitContainer() []admissionv1.Mutation {
	const first = `Object{spec: Object.spec{initContainers: ` +
		`[Object.spec.initContainers{name: "mesh-init", image: "any"}]}}`
	return []admissionv1.Mutation{
		{PatchType: admissionv1.PatchTypeApplyConfiguration,
			ApplyConfiguration: &admissionv1.ApplyConfiguration{Expression: first}},
		jsonPatch("replace", "/spec/initContainers/0", waitingContainer("initContainers", "mesh-init")),
	}
}

func jsonPatch(op, path, value string) admissionv1.Mutation {
	patch := fmt.Sprintf("[JSONPatch{op: %q, path: %q, value: %s}]", op, path, value)
	return admissionv1.Mutation{PatchType: admissionv1.PatchTypeJSONPatch,
		JSONPatch: &admissionv1.JSONPatch{Expression: patch}}
}

// TestMesh checks that a run with sidecars is measured with a warning, that a mesh which honours the opt-out adds none,
// and that an init container which blocks the pod is named soon.
func TestMesh(t *testing.T) {
	c := admin(t)
	t.Run("all", func(t *testing.T) {
		t.Run("sidecar", func(t *testing.T) {
			t.Parallel()
			n := namespaceFor(t, c, "restricted")
			mutatePods(t, c, n, addSidecar())
			k := newTestTarget(t, realCluster(t)+"&namespace="+n)
			site, err := targets.OpenOne(t.Context(), k, targets.Placement{Path: result.PodSvcOther})
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
			mutatePods(t, c, n, addSidecar(), admissionv1.MatchCondition{
				Name: "as-istio", Expression: `object.metadata.labels[?"sidecar.istio.io/inject"].orValue("") != "false"`,
			})
			k := newTestTarget(t, realCluster(t)+"&namespace="+n)
			site, err := targets.OpenOne(t.Context(), k, targets.Placement{Path: result.PodPodOther})
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
			mutatePods(t, c, n, addInitContainer())
			k := newTestTarget(t, realCluster(t)+"&namespace="+n)
			began := time.Now()
			_, err := targets.OpenOne(t.Context(), k, targets.Placement{Path: result.PodPodOther})
			t.Logf("after %.1f s: %v", time.Since(began).Seconds(), err)
			if err == nil || !strings.Contains(err.Error(), "the container mesh-init of pod") {
				t.Errorf("%v", err)
			}
			if err := k.Close(); err != nil {
				t.Error(err)
			}
		})
	})
	if left := leftovers(t, c); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// TestMeshBypassed checks that the cluster, which has no mesh, is not measured with pods that are enrolled in one: the
// error names the mesh and the evidence. The same pods without that are measured, and no fact is about a mesh.
func TestMeshBypassed(t *testing.T) {
	c := admin(t)
	for option, says := range map[string]string{
		"namespace-labels=io.cilium/mtls-enabled=true":  "the mesh cilium (ztunnel)",
		"pod-labels=istio.io/dataplane-mode=ambient":    "the mesh istio (ambient)",
		"pod-annotations=linkerd.io/inject=enabled":     "the mesh linkerd (sidecar)",
		"namespace-labels=team=net&pod-labels=team=net": "",
	} {
		k := newTestTarget(t, realCluster(t)+"&"+option)
		site, err := targets.OpenOne(t.Context(), k, targets.Placement{Path: result.PodPodOther})
		switch {
		case says == "" && err != nil:
			t.Errorf("%s: %v", option, err)
		case says == "":
			if fact := result.FactOf(site.Facts, result.MeshIntercepted); fact != "" || len(site.Warnings) > 0 {
				t.Errorf("%s: %q, %v", option, fact, site.Warnings)
			}
			if err := site.Close(t.Context()); err != nil {
				t.Error(err)
			}
		case err == nil || !strings.Contains(err.Error(), says) ||
			!strings.Contains(err.Error(), "which is the client's own end"):
			t.Errorf("%s: %v", option, err)
		default:
			t.Logf("%s: %v", option, err)
		}
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	}
	if left := leftovers(t, c); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}
