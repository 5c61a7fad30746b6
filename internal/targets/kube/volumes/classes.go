package volumes

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/utils/ptr"

	"github.com/knotmeter/knotmeter/internal/targets/kube/inspection"
	"github.com/knotmeter/knotmeter/internal/targets/kube/manifest"
)

// Kubernetes' annotations on classes and volumes.
const (
	annotationDefault     = "storageclass.kubernetes.io/is-default-class"
	annotationDefaultBeta = "storageclass.beta.kubernetes.io/is-default-class"
	annotationMadeBy      = "pv.kubernetes.io/provisioned-by"
	noProvisioner         = "kubernetes.io/no-provisioner" // the provisioner of classes of manually created volumes
)

// findClass returns the class that w names, or the default class: the newest of several, as in Kubernetes.
func findClass(classes []storagev1.StorageClass, w manifest.Volume) (*storagev1.StorageClass, error) {
	name := w.Class
	var names []string
	var found *storagev1.StorageClass
	for i := range classes {
		c := &classes[i]
		names = append(names, c.Name)
		if name != "" {
			if c.Name == name {
				return c, nil
			}
			continue
		}
		if c.Annotations[annotationDefault] != "true" && c.Annotations[annotationDefaultBeta] != "true" {
			continue
		}
		if found == nil || newer(c, found) {
			found = c
		}
	}
	slices.Sort(names)
	switch {
	case found != nil:
		return found, nil
	case name != "":
		return nil, fmt.Errorf("the cluster has no storage class %s; it has %s: name one of them with %s", name,
			inspection.List(names), w.ClassOption())
	}
	return nil, fmt.Errorf("the cluster has no default storage class; it has %s: name one of them with %s",
		inspection.List(names), w.ClassOption())
}

// newer reports whether a was created after b. If both were created in the same second, the first by name counts as
// newer, as in Kubernetes.
func newer(a, b *storagev1.StorageClass) bool {
	if a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.Name < b.Name
	}
	return b.CreationTimestamp.Before(&a.CreationTimestamp)
}

// waitsForNode reports whether volumes of a class are created only when a node is chosen for them. It assumes so if the
// class is unknown (nil).
func waitsForNode(c *storagev1.StorageClass) bool {
	return c == nil || c.VolumeBindingMode != nil && *c.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer
}

// retains reports whether a class keeps volumes whose claim is deleted.
func retains(c *storagev1.StorageClass) bool {
	return c != nil && c.ReclaimPolicy != nil && *c.ReclaimPolicy == corev1.PersistentVolumeReclaimRetain
}

// couldBind reports whether Kubernetes could bind a claim to the existing volume v, which may hold data of others,
// instead of a new one. If class is empty, volumes of all classes count.
func couldBind(w manifest.Volume, v *corev1.PersistentVolume, class string) bool {
	if class != "" && v.Spec.StorageClassName != class || v.DeletionTimestamp != nil || v.Spec.ClaimRef != nil {
		return false
	}
	capacity := v.Spec.Capacity[corev1.ResourceStorage]
	return modeOf(v.Spec.VolumeMode) == w.Mode() && slices.Contains(v.Spec.AccessModes, w.Access) &&
		capacity.Cmp(w.Size) >= 0
}

// mismatches returns how a bound volume differs from what w asks for; every volume is checked before it is mounted.
// class is nil if classes cannot be read.
func mismatches(
	w manifest.Volume, class *storagev1.StorageClass, claim *corev1.PersistentVolumeClaim, v *corev1.PersistentVolume,
) []string {
	var wrong []string
	note := func(format string, a ...any) { wrong = append(wrong, fmt.Sprintf(format, a...)) }
	name := w.Class
	if class != nil {
		name = class.Name
	}
	if got := claim.Spec.StorageClassName; got == nil && name != "" || got != nil && name != "" && *got != name {
		note("the claim is of the class %q", ptr.Deref(got, ""))
	}
	if got := claim.Status.Capacity[corev1.ResourceStorage]; got.Cmp(w.Size) < 0 {
		note("it has %s", got.String())
	}
	if modeOf(claim.Spec.VolumeMode) != w.Mode() {
		note("its mode is %s", modeOf(claim.Spec.VolumeMode))
	}
	if v.Spec.StorageClassName != name && name != "" {
		note("the volume is of the class %q", v.Spec.StorageClassName)
	}
	if class != nil && v.Annotations[annotationMadeBy] != class.Provisioner {
		note("it was made by %s, and the class is of %s", v.Annotations[annotationMadeBy], class.Provisioner)
	}
	if modeOf(v.Spec.VolumeMode) != w.Mode() {
		note("its mode is %s", modeOf(v.Spec.VolumeMode))
	}
	if !slices.Contains(v.Spec.AccessModes, w.Access) {
		note("its access modes are %v", v.Spec.AccessModes)
	}
	return wrong
}

// modeOf returns a volume mode; Kubernetes' default is Filesystem.
func modeOf(m *corev1.PersistentVolumeMode) corev1.PersistentVolumeMode {
	return ptr.Deref(m, corev1.PersistentVolumeFilesystem)
}
