package site

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets/kube/cluster"
	"github.com/knotmeter/knotmeter/internal/targets/kube/diagnosis"
	"github.com/knotmeter/knotmeter/internal/targets/kube/manifest"
	"github.com/knotmeter/knotmeter/internal/targets/kube/volumes"
	"github.com/knotmeter/knotmeter/internal/vault"
)

// provisioning returns a fake cluster that binds every claim of the class fast to a volume with the provisioner madeBy,
// and removes the volume with the claim.
func provisioning(t *testing.T, madeBy string) *fake.Clientset {
	t.Helper()
	fast := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fast"}, Provisioner: "disk.example",
		VolumeBindingMode: new(storagev1.VolumeBindingWaitForFirstConsumer)}
	api := fake.NewClientset(fast)
	pvs := corev1.SchemeGroupVersion.WithResource("persistentvolumes")
	api.PrependReactor("create", "selfsubjectaccessreviews", func(a k8stesting.Action) (bool, runtime.Object, error) {
		review := a.(k8stesting.CreateAction).GetObject().(*authorizationv1.SelfSubjectAccessReview)
		review.Status.Allowed = true
		return true, review, nil
	})
	api.PrependReactor("create", "persistentvolumeclaims", func(a k8stesting.Action) (bool, runtime.Object, error) {
		claim := a.(k8stesting.CreateAction).GetObject().(*corev1.PersistentVolumeClaim)
		claim.UID = types.UID("uid-of-" + claim.Name)
		claim.Spec.VolumeName = "pvc-" + string(claim.UID)
		claim.Status.Phase, claim.Status.Capacity = corev1.ClaimBound, claim.Spec.Resources.Requests
		return false, nil, api.Tracker().Create(pvs, &corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: claim.Spec.VolumeName,
				Annotations: map[string]string{"pv.kubernetes.io/provisioned-by": madeBy}},
			Spec: corev1.PersistentVolumeSpec{
				StorageClassName: *claim.Spec.StorageClassName, Capacity: claim.Spec.Resources.Requests,
				VolumeMode: claim.Spec.VolumeMode, AccessModes: claim.Spec.AccessModes,
				ClaimRef:                      &corev1.ObjectReference{UID: claim.UID, Name: claim.Name},
				PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
			},
		}, "")
	})
	// The clientset's own watches ignore field selectors.
	api.PrependWatchReactor("persistentvolumeclaims", func(a k8stesting.Action) (bool, watch.Interface, error) {
		name, one := a.(k8stesting.WatchAction).GetWatchRestrictions().Fields.RequiresExactMatch("metadata.name")
		claim, err := api.Tracker().Get(a.GetResource(), a.GetNamespace(), name)
		if !one || err != nil {
			return false, nil, nil
		}
		w := watch.NewFakeWithChanSize(1, false)
		w.Add(claim)
		return true, w, nil
	})
	api.PrependReactor("delete", "persistentvolumeclaims", func(a k8stesting.Action) (bool, runtime.Object, error) {
		name := "pvc-uid-of-" + a.(k8stesting.DeleteAction).GetName()
		return false, nil, diagnosis.IgnoreNotFound(api.Tracker().Delete(pvs, "", name))
	})
	return api
}

// deployment returns a Vault of three replicas with volumes on a cluster.
func deployment(ctx context.Context, api *fake.Clientset) (*Vault, error) {
	wanted := vault.Instance{Deploy: true, Replicas: 3, Image: "vault:1", StorageClass: "fast"}
	volume := manifest.AnyVolume()
	volume.Size = resource.MustParse("2Gi")
	g := &Group{Cluster: &cluster.Cluster{Interface: api}, Plan: manifest.Blueprint{
		Namespace: "bench", Experiment: "abcdefgh", Site: 4, Settings: manifest.Settings{Volume: volume},
		Nodes: [2]string{"node-1", "node-1"},
	}}
	st := volumes.NewStorage(api, VaultVolume(wanted, volume.Size), cluster.RightsScope{})
	return NewVault(ctx, g, wanted, st, []string{"node-2", "node-3"})
}

// TestVolumesOfReplicas checks that each replica gets a volume that was provisioned for it before any pod is created,
// and that the volumes are spread over the nodes in turn. All volumes are removed with the deployment, after its pods.
func TestVolumesOfReplicas(t *testing.T) {
	api := provisioning(t, "disk.example")
	d, err := deployment(t.Context(), api)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.eachVolume(func(v *volumes.Volume) error { return v.Provision(t.Context()) }); err != nil {
		t.Fatal(err)
	}
	claims, err := api.CoreV1().PersistentVolumeClaims("bench").List(t.Context(),
		metav1.ListOptions{LabelSelector: manifest.ExperimentSelector("abcdefgh") + "," + manifest.ManagedSelector()})
	if err != nil {
		t.Fatal(err)
	}
	var seen []string
	for _, c := range claims.Items {
		if !volumes.OwnClaim.MatchString(c.Name) {
			t.Errorf("clean does not find %s", c.Name)
		}
		size := c.Spec.Resources.Requests[corev1.ResourceStorage]
		seen = append(seen, fmt.Sprint(c.Name, " ", size.String(), " ", c.Annotations[manifest.AnnotationNode]))
	}
	slices.Sort(seen)
	const name = "knotmeter-abcdefgh-4-vault-"
	want := []string{name + "0-volume 2Gi node-2", name + "1-volume 2Gi node-3", name + "2-volume 2Gi node-2"}
	if !slices.Equal(seen, want) {
		t.Errorf("%q", seen)
	}
	if ill, warnings := d.Health(t.Context()), d.Warnings(); len(ill)+len(warnings) > 0 {
		t.Errorf("%q, %v", ill, warnings)
	}
	facts := d.Facts()
	if !strings.Contains(result.FactOf(facts, "vault.storage"), "volume of 2Gi and the class fast") ||
		!strings.Contains(result.FactOf(facts, "vault.volumes"), "pvc-uid-of-"+name+"2-") {
		t.Errorf("%+v", facts)
	}
	gone := d.volumes[1].Name()
	if err := api.CoreV1().PersistentVolumes().Delete(t.Context(), gone, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if ill := strings.Join(d.Health(t.Context()), "; "); ill != "the volume "+gone+" was removed by something else than "+
		"Knotmeter" {
		t.Errorf("a volume that is gone: %q", ill)
	}
	if err := d.Remove(t.Context()); err != nil {
		t.Error(err)
	}
	var removed []string
	for _, a := range api.Actions() {
		if strings.HasPrefix(a.GetVerb(), "delete") {
			removed = append(removed, a.GetResource().Resource)
		}
	}
	last := removed[len(removed)-3:]
	if !slices.Contains(removed, "pods") || !slices.Equal(slices.Compact(last), []string{"persistentvolumeclaims"}) {
		t.Errorf("%q", removed)
	}
}

// TestVolumesOfOthers checks that a volume that was not provisioned for a replica is not used: no pod that would mount
// it is created.
func TestVolumesOfOthers(t *testing.T) {
	api := provisioning(t, "kubernetes.io/no-provisioner")
	d, err := deployment(t.Context(), api)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Start(t.Context()); !errors.Is(err, result.ErrNotSupported) ||
		!strings.Contains(err.Error(), "was not provisioned for it") {
		t.Errorf("%v", err)
	}
	for _, a := range api.Actions() {
		if a.GetVerb() == "create" && a.GetResource().Resource == "pods" {
			t.Errorf("a pod was made: %+v", a)
		}
	}
}
