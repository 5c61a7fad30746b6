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

// Annotations of Kubernetes' own on classes and volumes.
const (
	annotationDefault     = "storageclass.kubernetes.io/is-default-class"
	annotationDefaultBeta = "storageclass.beta.kubernetes.io/is-default-class"
	annotationMadeBy      = "pv.kubernetes.io/provisioned-by"
	noProvisioner         = "kubernetes.io/no-provisioner"
)

// classOf is the class that is wanted by its name, or the default one: where there are several, Kubernetes takes the
// newest.
func classOf(classes []storagev1.StorageClass, w manifest.Volume) (*storagev1.StorageClass, error) {
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

func newer(a, b *storagev1.StorageClass) bool {
	if a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.Name < b.Name
	}
	return b.CreationTimestamp.Before(&a.CreationTimestamp)
}

// waits says whether volumes of a class are made only when a node is chosen for them. One that may not be seen could
// be so.
func waits(c *storagev1.StorageClass) bool {
	return c == nil || c.VolumeBindingMode != nil && *c.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer
}

// retains says whether a class keeps volumes whose claim is gone.
func retains(c *storagev1.StorageClass) bool {
	return c != nil && c.ReclaimPolicy != nil && *c.ReclaimPolicy == corev1.PersistentVolumeReclaimRetain
}

// alreadyThere reports whether a claim would be bound to a volume that exists, instead of one that is made for it. What
// is on it is somebody's. Without a class any could be.
func alreadyThere(w manifest.Volume, v *corev1.PersistentVolume, class string) bool {
	if class != "" && v.Spec.StorageClassName != class || v.DeletionTimestamp != nil || v.Spec.ClaimRef != nil {
		return false
	}
	capacity := v.Spec.Capacity[corev1.ResourceStorage]
	return modeOf(v.Spec.VolumeMode) == w.Mode() && slices.Contains(v.Spec.AccessModes, w.Access) &&
		capacity.Cmp(w.Size) >= 0
}

// notAsked is how a volume differs from what was asked for: the gate of every run on one. The class is nil where it
// may not be seen.
func notAsked(
	w manifest.Volume, class *storagev1.StorageClass, claim *corev1.PersistentVolumeClaim, v *corev1.PersistentVolume,
) []string {
	var wrong []string
	note := func(format string, a ...any) { wrong = append(wrong, fmt.Sprintf(format, a...)) }
	name := w.Class
	if class != nil {
		name = class.Name
	}
	if of := claim.Spec.StorageClassName; of == nil && name != "" || of != nil && name != "" && *of != name {
		note("the claim is of the class %q", ptr.Deref(of, ""))
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

func modeOf(m *corev1.PersistentVolumeMode) corev1.PersistentVolumeMode {
	return ptr.Deref(m, corev1.PersistentVolumeFilesystem)
}
