package volumes

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/knotmeter/knotmeter/internal/targets/kube/manifest"
)

func class(name string, change func(*storagev1.StorageClass)) storagev1.StorageClass {
	c := storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: "disk.example"}
	if change != nil {
		change(&c)
	}
	return c
}

func TestClasses(t *testing.T) {
	byDefault := func(second int64) func(*storagev1.StorageClass) {
		return func(c *storagev1.StorageClass) {
			c.Annotations = map[string]string{annotationDefault: "true"}
			c.CreationTimestamp = metav1.Unix(second, 0)
		}
	}
	all := []storagev1.StorageClass{class("slow", nil), class("old", byDefault(1)), class("new", byDefault(2))}
	for _, test := range []struct {
		classes    []storagev1.StorageClass
		name, want string
		says       string
	}{
		{all, "slow", "slow", ""},
		{all, "", "new", ""},
		{all, "none", "", "the cluster has no storage class none; it has new, old, slow"},
		{all[:1], "", "", "no default storage class; it has slow"},
		{nil, "", "", "it has none"},
	} {
		c, err := findClass(test.classes, manifest.Volume{Class: test.name})
		if (c != nil) != (test.want != "") || c != nil && c.Name != test.want || (err == nil) != (test.says == "") ||
			err != nil && !strings.Contains(err.Error(), test.says) {
			t.Errorf("%q: %v, %v", test.name, c, err)
		}
	}
}

// wanted returns a volume spec of the class fast.
func wanted(size string) manifest.Volume {
	w := manifest.AnyVolume()
	w.Class, w.Size = "fast", resource.MustParse(size)
	return w
}

// boundTo returns a bound claim and its volume, as w asks for.
func boundTo(w manifest.Volume) (*corev1.PersistentVolumeClaim, *corev1.PersistentVolume) {
	capacity := corev1.ResourceList{corev1.ResourceStorage: w.Size}
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "knotmeter-abcdefgh-1-volume", UID: "c", CreationTimestamp: metav1.Unix(100, 0)},
		Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: new(w.Class), VolumeMode: new(w.Mode()),
			VolumeName: "pv"},
		Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound, Capacity: capacity},
	}
	pv := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "pv", CreationTimestamp: metav1.Unix(101, 0),
			Annotations: map[string]string{annotationMadeBy: "disk.example"}},
		Spec: corev1.PersistentVolumeSpec{
			StorageClassName: w.Class, Capacity: capacity, VolumeMode: new(w.Mode()),
			AccessModes:                   []corev1.PersistentVolumeAccessMode{w.Access},
			ClaimRef:                      &corev1.ObjectReference{UID: "c", Name: claim.Name},
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
		},
	}
	return claim, pv
}

func TestMismatches(t *testing.T) {
	fast := class("fast", nil)
	for want, change := range map[string]func(*corev1.PersistentVolumeClaim, *corev1.PersistentVolume){
		"": func(*corev1.PersistentVolumeClaim, *corev1.PersistentVolume) {},
		`the claim is of the class "slow"`: func(c *corev1.PersistentVolumeClaim, _ *corev1.PersistentVolume) {
			c.Spec.StorageClassName = new("slow")
		},
		`the claim is of the class ""`: func(c *corev1.PersistentVolumeClaim, _ *corev1.PersistentVolume) {
			c.Spec.StorageClassName = nil
		},
		"it has 1Gi": func(c *corev1.PersistentVolumeClaim, _ *corev1.PersistentVolume) {
			c.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
		},
		`the volume is of the class "slow"`: func(_ *corev1.PersistentVolumeClaim, v *corev1.PersistentVolume) {
			v.Spec.StorageClassName = "slow"
		},
		"it was made by other.example, and the class is of disk.example": func(_ *corev1.PersistentVolumeClaim,
			v *corev1.PersistentVolume) {
			v.Annotations[annotationMadeBy] = "other.example"
		},
		"its mode is Block": func(_ *corev1.PersistentVolumeClaim, v *corev1.PersistentVolume) {
			v.Spec.VolumeMode = new(corev1.PersistentVolumeBlock)
		},
		"its access modes are [ReadOnlyMany]": func(_ *corev1.PersistentVolumeClaim, v *corev1.PersistentVolume) {
			v.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadOnlyMany}
		},
	} {
		w := wanted("10Gi")
		claim, pv := boundTo(w)
		change(claim, pv)
		got := strings.Join(mismatches(w, &fast, claim, pv), "; ")
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestCouldBind checks that an available volume of another owner is found before Kubernetes could bind a claim to it.
func TestCouldBind(t *testing.T) {
	w := wanted("1Gi")
	_, pv := boundTo(w)
	pv.Spec.ClaimRef, pv.Status.Phase = nil, corev1.VolumeAvailable
	smaller := pv.DeepCopy()
	smaller.Spec.Capacity[corev1.ResourceStorage] = resource.MustParse("100Mi")
	taken := pv.DeepCopy()
	taken.Spec.ClaimRef = &corev1.ObjectReference{Name: "theirs"}
	fresh := pv.DeepCopy()
	fresh.Status.Phase = "" // just created
	for name, test := range map[string]struct {
		volume *corev1.PersistentVolume
		class  string
		want   bool
	}{
		"available": {pv, "fast", true}, "smaller": {smaller, "fast", false}, "taken": {taken, "fast", false},
		"of another class": {pv, "slow", false}, "of a class that may not be seen": {fresh, "", true},
	} {
		if got := couldBind(w, test.volume, test.class); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestOwnClaim checks that OwnClaim matches the claims of blueprints, and no others.
func TestOwnClaim(t *testing.T) {
	b := manifest.Blueprint{Site: 7}
	b.Experiment = "abcdefgh"
	names := []string{b.ClaimName()}
	b.Reuse = true
	names = append(names, b.ClaimName())
	for _, name := range names {
		if !OwnClaim.MatchString(name) {
			t.Errorf("%s is not found", name)
		}
	}
	if i := slices.IndexFunc([]string{"data", "knotmeter-data", "my-knotmeter-abcdefgh-1-volume"},
		OwnClaim.MatchString); i >= 0 {
		t.Error("a name of another owner matches")
	}
}
