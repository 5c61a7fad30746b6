package volumes

import (
	"errors"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets/kube/cluster"
	"github.com/knotmeter/knotmeter/internal/targets/kube/manifest"
)

type (
	claimObject  = corev1.PersistentVolumeClaim
	volumeObject = corev1.PersistentVolume
)

// TestForeign checks that a volume counts as Knotmeter's only if a provisioner made it for its claim.
func TestForeign(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*volumeObject)
		want   string
	}{
		"ours":            {func(*volumeObject) {}, ""},
		"in-tree":         {func(v *volumeObject) { v.Name, v.Annotations[annotationBound] = "pvc-c", "yes" }, ""},
		"by another hour": {func(v *volumeObject) { v.Name, v.CreationTimestamp = "pvc-c", metav1.Unix(99, 0) }, ""},
		"another claim's": {func(v *volumeObject) { v.Spec.ClaimRef.UID = "d" }, "it belongs to another claim"},
		"reserved":        {func(v *volumeObject) { v.Spec.ClaimRef.UID = "" }, "it belongs to another claim"},
		"nobody's":        {func(v *volumeObject) { v.Spec.ClaimRef = nil }, "it belongs to another claim"},
		"static":          {func(v *volumeObject) { v.Annotations = nil }, "no provisioner made it"},
		"local": {func(v *volumeObject) { v.Annotations[annotationMadeBy] = noProvisioner },
			"no provisioner made it"},
		"freed": {func(v *volumeObject) { v.Annotations[annotationBound] = "yes" }, "it was there already"},
		"older": {func(v *volumeObject) { v.CreationTimestamp = metav1.Unix(99, 0) }, "it is older than the claim"},
	} {
		claim, v := boundTo(manifest.AnyVolume())
		test.change(v)
		if got := foreignReason(v, claim); !strings.HasPrefix(got, test.want) || (got == "") != (test.want == "") {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// foreignPair returns a claim of Knotmeter that was bound to a volume of another owner.
func foreignPair() (*corev1.PersistentVolumeClaim, *corev1.PersistentVolume) {
	claim, v := boundTo(manifest.AnyVolume())
	claim.Namespace, claim.Labels = "bench", map[string]string{manifest.LabelManaged: manifest.ManagedBy}
	v.Annotations, v.CreationTimestamp = map[string]string{annotationBound: "yes"}, metav1.Unix(1, 0)
	return claim, v
}

func forbiddenTo(verb, resource string) error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "", errors.New("you may not "+verb))
}

// writes returns the changing requests, in order.
func writes(c *fake.Clientset) (list []string) {
	for _, a := range c.Actions() {
		if v := a.GetVerb(); v == "patch" || v == "delete" {
			list = append(list, v+" "+a.GetResource().Resource)
		}
	}
	return list
}

// TestDeleteClaim checks that a volume of another owner is set to Retain before its claim is deleted. If that is not
// confirmed, the claim stays.
func TestDeleteClaim(t *testing.T) {
	const keeps, deletes = "patch persistentvolumes", "delete persistentvolumeclaims"
	refuse := func(c *fake.Clientset, verb string) {
		c.PrependReactor(verb, "persistentvolumes", func(k8stesting.Action) (bool, runtime.Object, error) {
			return true, nil, forbiddenTo(verb, "persistentvolumes")
		})
	}
	for name, test := range map[string]struct {
		change func(*claimObject, *volumeObject)
		set    func(*fake.Clientset)
		want   []string
		says   string
	}{
		"theirs": {want: []string{keeps, deletes}},
		"ours": {want: []string{deletes}, change: func(c *claimObject, v *volumeObject) {
			v.Name, v.Annotations = "pvc-c", map[string]string{annotationMadeBy: "disk.example"}
			c.Spec.VolumeName = v.Name
		}},
		"theirs, retained": {want: []string{deletes}, change: func(_ *claimObject, v *volumeObject) {
			v.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
		}},
		"theirs, recycled": {want: []string{keeps, deletes}, change: func(_ *claimObject, v *volumeObject) {
			v.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRecycle
		}},
		"bound on its side alone": {want: []string{keeps, deletes}, change: func(c *claimObject, _ *volumeObject) {
			c.Spec.VolumeName, c.Status.Phase = "", corev1.ClaimPending
		}},
		"lost": {want: []string{deletes}, change: func(c *claimObject, _ *volumeObject) {
			c.Spec.VolumeName, c.UID = "gone", "another"
		}},
		"may not be kept": {
			set: func(c *fake.Clientset) { refuse(c, "patch") }, want: []string{keeps},
			says: `kubectl patch pv pv -p '{"spec":{"persistentVolumeReclaimPolicy":"Retain"}}'; ` +
				`then: kubectl delete pvc -n bench knotmeter-abcdefgh-1-volume`,
		},
		"is not kept": {
			set: func(c *fake.Clientset) {
				c.PrependReactor("patch", "persistentvolumes", func(k8stesting.Action) (bool, runtime.Object, error) {
					_, v := foreignPair()
					return true, v, nil
				})
			}, want: []string{keeps}, says: "it is still Delete",
		},
		"may not be seen": {
			set: func(c *fake.Clientset) { refuse(c, "list") }, says: "stays, because the volume that it may be bound to",
		},
		"bound in between": {
			want: []string{deletes, keeps, deletes},
			change: func(c *claimObject, v *volumeObject) {
				c.Spec.VolumeName, v.Spec.ClaimRef = "", nil
			},
			set: func(c *fake.Clientset) {
				first := true
				c.PrependReactor("delete", "persistentvolumeclaims", func(a k8stesting.Action) (bool, runtime.Object, error) {
					if !first {
						return false, nil, nil
					}
					first = false
					claim, v := foreignPair()
					err := errors.Join(c.Tracker().Update(corev1.SchemeGroupVersion.WithResource("persistentvolumes"), v, ""),
						c.Tracker().Update(corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims"), claim, "bench"))
					if err != nil {
						t.Error(err)
					}
					claims, changed := schema.GroupResource{Resource: "persistentvolumeclaims"}, errors.New("it was changed")
					return true, nil, apierrors.NewConflict(claims, claim.Name, changed)
				})
			},
		},
	} {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			claim, v := foreignPair()
			if test.change != nil {
				test.change(claim, v)
			}
			client := fake.NewClientset(claim, v)
			if test.set != nil {
				test.set(client)
			}
			err := deleteClaim(t.Context(), client, claim.Namespace, claim.Name)
			if (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
				t.Errorf("%v, want %q", err, test.says)
			}
			if got := writes(client); !slices.Equal(got, test.want) {
				t.Errorf("%q, want %q", got, test.want)
			}
			for _, a := range client.Actions() {
				d, is := a.(k8stesting.DeleteActionImpl)
				preconditions := d.DeleteOptions.Preconditions
				if is && (preconditions == nil || preconditions.ResourceVersion == nil || *preconditions.UID != claim.UID) {
					t.Errorf("deleted whatever it is by now: %+v", d.DeleteOptions)
				}
			}
		})
	}
}

// TestVolumeRights checks that no claim is created without the right to read volumes, and that the error names the
// right.
func TestVolumeRights(t *testing.T) {
	fast := class("fast", nil)
	client := fake.NewClientset(&fast)
	client.PrependReactor("create", "selfsubjectaccessreviews", func(a k8stesting.Action) (bool, runtime.Object, error) {
		review := a.(k8stesting.CreateAction).GetObject().(*authorizationv1.SelfSubjectAccessReview)
		of := review.Spec.ResourceAttributes
		review.Status.Allowed = of.Resource != "persistentvolumes" || of.Verb != "get"
		return true, review, nil
	})
	st := NewStorage(client, wanted("10Gi"), cluster.RightsScope{})
	for range 2 {
		err := st.LookUp(t.Context())
		const says = "lacks rights on persistentvolumes (get); "
		if !errors.Is(err, result.ErrNotSupported) || !strings.Contains(err.Error(), says) {
			t.Errorf("%v", err)
		}
	}
}

// TestSelectedNode checks that the claim names the node, before a pod exists, if the class creates volumes only for a
// chosen node.
func TestSelectedNode(t *testing.T) {
	b := manifest.Blueprint{Settings: manifest.Settings{Volume: wanted("10Gi")}, Nodes: [2]string{"node-1", "node-1"}}
	late, atOnce := class("late", nil), class("at-once", nil)
	late.VolumeBindingMode = new(storagev1.VolumeBindingWaitForFirstConsumer)
	atOnce.VolumeBindingMode = new(storagev1.VolumeBindingImmediate)
	for want, c := range map[string]*storagev1.StorageClass{"node-1": &late, "": &atOnce} {
		if got := b.Claim(c.Name, waitsForNode(c)).Annotations[manifest.AnnotationNode]; got != want {
			t.Errorf("%s: %q", c.Name, got)
		}
	}
	if !waitsForNode(nil) {
		t.Error("a class that may not be seen is taken for one that does not wait")
	}
}

// TestRetainingClass checks that a class for a Vault must not retain volumes, because each block would leave those of
// all replicas. The class of other volumes may.
func TestRetainingClass(t *testing.T) {
	keeps := class("keeps", nil)
	keeps.ReclaimPolicy = new(corev1.PersistentVolumeReclaimRetain)
	for _, isVault := range []bool{false, true} {
		w := manifest.Volume{Class: "keeps", Access: corev1.ReadWriteOnce, Vault: isVault}
		err := (&Storage{spec: w}).chooseClass([]storagev1.StorageClass{keeps})
		if errors.Is(err, result.ErrNotSupported) != isVault || isVault && !strings.Contains(err.Error(),
			"name another class with vault-storage-class=") {
			t.Errorf("%t: %v", isVault, err)
		}
	}
}
