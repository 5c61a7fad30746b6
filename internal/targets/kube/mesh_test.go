package kube

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets/kube/cluster"
	"github.com/knotmeter/knotmeter/internal/targets/kube/manifest"
	"github.com/knotmeter/knotmeter/internal/targets/kube/product"
)

// TestMeshesLeaveOut checks that every pod of an experiment opts out of every mesh, unless the user opts in.
func TestMeshesLeaveOut(t *testing.T) {
	b := vaultPlan(t, "kube:?vault=deploy")
	asked := blueprint(t,
		`kube:?config={labels: {sidecar.istio.io/inject: "true"}, annotations: {linkerd.io/inject: enabled}}`,
		result.PodPodOther)
	pods := []*corev1.Pod{b.Pod(manifest.Client), b.Replica(0),
		blueprint(t, "kube:", result.NodeNode).Pod(manifest.Server), volumeBlueprint(t, "kube:").Pod(manifest.Client)}
	labels, annotations := product.OptOuts(nil)
	if len(labels) == 0 || len(annotations) == 0 {
		t.Error("no mesh has an opt-out")
	}
	for _, p := range pods {
		for key, value := range labels {
			if p.Labels[key] != value {
				t.Errorf("%s: label %s=%q", p.Name, key, p.Labels[key])
			}
		}
		for key, value := range annotations {
			if p.Annotations[key] != value {
				t.Errorf("%s: annotation %s=%q", p.Name, key, p.Annotations[key])
			}
		}
	}
	p := asked.Pod(manifest.Client)
	if p.Labels["sidecar.istio.io/inject"] != "true" || p.Annotations["linkerd.io/inject"] != "enabled" ||
		p.Labels[manifest.LabelManaged] != manifest.ManagedBy {
		t.Errorf("%v %v", p.Labels, p.Annotations)
	}
}

// TestEnrolment checks which mesh the user's labels and annotations enrol the pods in, and that the opt-outs of the
// other meshes stay.
func TestEnrolment(t *testing.T) {
	const istio, ambient, linkerd = "sidecar.istio.io/inject", "istio.io/dataplane-mode", "linkerd.io/inject"
	for text, test := range map[string]struct {
		mesh                product.Mesh
		labels, annotations map[string]string // that the pods have; empty: that they lack
	}{
		"kube:": {product.Mesh{}, map[string]string{istio: "false", ambient: "none"}, map[string]string{istio: "false"}},
		"kube:?namespace-labels=team=net,stage=test": {product.Mesh{},
			map[string]string{istio: "false", ambient: "none"}, nil},
		"kube:?namespace-labels=istio.io/dataplane-mode=ambient": {product.Mesh{Name: "istio", Mode: product.Ambient},
			map[string]string{istio: "false", ambient: ""}, map[string]string{linkerd: "disabled"}},
		"kube:?namespace-labels=io.cilium/mtls-enabled=true": {product.Mesh{Name: "cilium", Mode: product.Ztunnel},
			map[string]string{istio: "false", ambient: "none"}, nil},
		"kube:?namespace-labels=istio-injection=enabled": {product.Mesh{Name: "istio", Mode: product.Sidecar},
			map[string]string{istio: "", ambient: "none"}, map[string]string{istio: ""}},
		"kube:?pod-labels=istio.io/rev=canary": {product.Mesh{Name: "istio", Mode: product.Sidecar},
			map[string]string{istio: "", "istio.io/rev": "canary"}, map[string]string{istio: ""}},
		"kube:?pod-labels=istio.io/dataplane-mode=ambient,a=b": {product.Mesh{Name: "istio", Mode: product.Ambient},
			map[string]string{istio: "false", ambient: "ambient", "a": "b"}, nil},
		"kube:?pod-annotations=sidecar.istio.io/inject=true": {product.Mesh{Name: "istio", Mode: product.Sidecar},
			map[string]string{istio: ""}, map[string]string{istio: "true"}},
		"kube:?pod-annotations=linkerd.io/inject=enabled,config.linkerd.io/opaque-ports=5201": {
			product.Mesh{Name: "linkerd", Mode: product.Sidecar}, map[string]string{istio: "false"},
			map[string]string{linkerd: "enabled", "config.linkerd.io/opaque-ports": "5201"}},
		"kube:?config={annotations: {linkerd.io/inject: enabled}}&pod-annotations=linkerd.io/inject=disabled": {
			product.Mesh{}, nil, map[string]string{linkerd: "disabled"}},
	} {
		b := blueprint(t, text, result.PodPodOther)
		if got := b.Settings.EnrolledIn(); got != test.mesh {
			t.Errorf("%s: enrolled in %+v", text, got)
		}
		p := b.Pod(manifest.Client)
		for key, value := range test.labels {
			if p.Labels[key] != value {
				t.Errorf("%s: label %s=%q", text, key, p.Labels[key])
			}
		}
		for key, value := range test.annotations {
			if p.Annotations[key] != value {
				t.Errorf("%s: annotation %s=%q", text, key, p.Annotations[key])
			}
		}
		if p.Labels[manifest.LabelManaged] != manifest.ManagedBy {
			t.Errorf("%s: %v", text, p.Labels)
		}
		level := (&named{options: parseOptions(t, text)}).podSecurityLevel()
		if sidecar := test.mesh.Mode == product.Sidecar; sidecar != (level == manifest.LevelPrivileged) {
			t.Errorf("%s: the namespace enforces %s", text, level)
		}
	}
}

// TestEnrolmentErrors checks labels and annotations that are invalid or Knotmeter's own.
func TestEnrolmentErrors(t *testing.T) {
	for text, says := range map[string]string{
		"kube:?namespace-labels=istio-injection":                             `"istio-injection" is not KEY=VALUE`,
		"kube:?namespace-labels=a=1,a=2":                                     "the key a is given twice",
		"kube:?namespace-labels=a=b c":                                       "is no label or annotation",
		"kube:?pod-labels=a/b/c=d":                                           "is no label or annotation",
		"kube:?pod-annotations=,":                                            "is not KEY=VALUE",
		"kube:?pod-labels=knotmeter.dev/role=server":                         "Knotmeter's own",
		"kube:?namespace-labels=app.kubernetes.io/managed-by=me":             "Knotmeter's own",
		"kube:?namespace-labels=pod-security.kubernetes.io/enforce=baseline": "Knotmeter's own",
		"kube:?namespace=bench&namespace-labels=a=b":                         "kubectl label namespace bench",
	} {
		spec, err := result.ParseSpec(text)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parse(spec); !errors.Is(err, result.ErrSpec) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestUsersOfOpenShift checks that users and groups of pods are left to the cluster if it has security context
// constraints, and only then.
func TestUsersOfOpenShift(t *testing.T) {
	if c, _ := serve(t, nil); cluster.AssignsUsers(t.Context(), c) {
		t.Error("any cluster is taken for OpenShift")
	}
	c, _ := serve(t, map[string]any{"/apis/security.openshift.io": object{"kind": "APIGroup"}})
	if !cluster.AssignsUsers(t.Context(), c) {
		t.Error("OpenShift is not known by its API")
	}
	for _, assigned := range []bool{false, true} {
		storage, app := volumeBlueprint(t, "kube:"), vaultPlan(t, "kube:?vault=deploy")
		storage.Settings.AssignsUsers, app.Settings.AssignsUsers = assigned, assigned
		for _, p := range []*corev1.Pod{storage.Pod(manifest.Client), app.Pod(manifest.Client), app.Replica(0)} {
			s := p.Spec.SecurityContext
			if (s.RunAsUser == nil) != assigned || (s.RunAsGroup == nil) != assigned || !*s.RunAsNonRoot ||
				s.SeccompProfile == nil {
				t.Errorf("assigned %t: %s: %+v", assigned, p.Name, s)
			}
		}
		for _, p := range []*corev1.Pod{storage.Pod(manifest.Client), app.Replica(0)} {
			if s := p.Spec.SecurityContext; (s.FSGroup == nil) != assigned {
				t.Errorf("assigned %t: %s: the file system's group is %v", assigned, p.Name, s.FSGroup)
			}
		}
	}
}
