package kube

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets/kube/cluster"
	"github.com/knotmeter/knotmeter/internal/targets/kube/manifest"
)

// TestMeshesLeaveOut checks that every pod of an experiment opts out of every mesh, unless the user opts in.
func TestMeshesLeaveOut(t *testing.T) {
	b := vaultPlan(t, "kube:?vault=deploy")
	asked := blueprint(t,
		`kube:?config={labels: {sidecar.istio.io/inject: "true"}, annotations: {linkerd.io/inject: enabled}}`,
		result.PodPodOther)
	pods := []*corev1.Pod{b.Pod(manifest.Client), b.Replica(0),
		blueprint(t, "kube:", result.NodeNode).Pod(manifest.Server), volumeBlueprint(t, "kube:").Pod(manifest.Client)}
	for _, p := range pods {
		for key, value := range manifest.MeshLabels {
			if p.Labels[key] != value {
				t.Errorf("%s: label %s=%q", p.Name, key, p.Labels[key])
			}
		}
		for key, value := range manifest.MeshAnnotations {
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

// TestUsersOfOpenShift checks that users and groups of pods are left to the cluster if it has security context
// constraints, and only then.
func TestUsersOfOpenShift(t *testing.T) {
	api := fake.NewClientset()
	c := &cluster.Cluster{Interface: api}
	if cluster.AssignsUsers(c) {
		t.Error("any cluster is taken for OpenShift")
	}
	api.Resources = append(api.Resources, &metav1.APIResourceList{GroupVersion: "security.openshift.io/v1"})
	if !cluster.AssignsUsers(c) {
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
