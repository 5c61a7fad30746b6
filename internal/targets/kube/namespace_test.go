package kube

import (
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/knotmeter/knotmeter/internal/targets/kube/manifest"
)

// TestNamespaceWithClaims checks that a namespace stays if it has a claim that is not ours, or one whose removal would
// remove a volume of others.
func TestNamespaceWithClaims(t *testing.T) {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{
		Name: "knotmeter-abcdefgh-1-volume", Namespace: "bench", UID: "c", CreationTimestamp: metav1.Unix(100, 0),
		Labels: map[string]string{manifest.LabelManaged: manifest.ManagedBy},
	}}
	v := &corev1.PersistentVolume{ // older than the claim
		ObjectMeta: metav1.ObjectMeta{Name: "pv", CreationTimestamp: metav1.Unix(1, 0), Annotations: map[string]string{
			"pv.kubernetes.io/provisioned-by": "disk.example", "pv.kubernetes.io/bound-by-controller": "yes",
		}},
		Spec: corev1.PersistentVolumeSpec{
			ClaimRef:                      &corev1.ObjectReference{UID: "c", Name: claim.Name},
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
		},
	}
	other := claim.DeepCopy()
	other.Name, other.UID, other.Labels, other.Namespace = "data", "e", nil, "other"
	space := func(name string) *corev1.Namespace {
		ours := map[string]string{manifest.LabelManaged: manifest.ManagedBy}
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: ours}}
	}
	client := fake.NewClientset(claim, v, other, space("bench"), space("other"), space("empty"))
	client.PrependReactor("patch", "persistentvolumes", func(k8stesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "persistentvolumes"}, "",
			errors.New("you may not patch"))
	})
	removed, err := cleanNamespaces(t.Context(), client, selection{all: true})
	if !slices.Equal(removed, []string{"namespace empty"}) {
		t.Errorf("removed %q", removed)
	}
	for _, words := range []string{
		"the claim " + claim.Name + " in the namespace bench stays", "the claim data in it is not Knotmeter's",
	} {
		if err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%v does not say %q", err, words)
		}
	}
	for _, a := range client.Actions() {
		if d, is := a.(k8stesting.DeleteActionImpl); is && d.Name != "empty" {
			t.Errorf("%s %s was deleted", a.GetResource().Resource, d.Name)
		}
	}
}
