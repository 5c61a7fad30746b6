package main

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	provisionerName = "test.knotmeter.dev/loop" // of the storage classes
	finalizer       = "test.knotmeter.dev/loop"
	// Annotations of a volume: its loop device, the file of that device, and whether I/O bypasses the page cache.
	deviceAnnotation = "test.knotmeter.dev/device"
	fileAnnotation   = "test.knotmeter.dev/file"
	directAnnotation = "test.knotmeter.dev/direct-io"

	selectedNode  = "volume.kubernetes.io/selected-node"
	provisionedBy = "pv.kubernetes.io/provisioned-by"
	hostname      = "kubernetes.io/hostname"

	block    = 4096      // bytes
	xfsLeast = 300 << 20 // mkfs.xfs refuses less
)

// awaitsVolume reports whether a claim has a class, a node and no volume.
func awaitsVolume(c *corev1.PersistentVolumeClaim) bool {
	return c.DeletionTimestamp == nil && c.Spec.VolumeName == "" && c.Spec.StorageClassName != nil &&
		*c.Spec.StorageClassName != "" && c.Annotations[selectedNode] != ""
}

// isReleased reports whether a volume was made by this provisioner and is no longer needed.
func isReleased(v *corev1.PersistentVolume) bool {
	if v.Annotations[provisionedBy] != provisionerName || !slices.Contains(v.Finalizers, finalizer) {
		return false
	}
	if v.DeletionTimestamp != nil {
		return v.Status.Phase != corev1.VolumeBound
	}
	return v.Status.Phase == corev1.VolumeReleased
}

// volumeName returns the name of a claim's volume, in the usual form of provisioners.
func volumeName(c *corev1.PersistentVolumeClaim) string { return "pvc-" + string(c.UID) }

// size returns the size of a claim's volume in bytes, rounded up to whole blocks.
func size(c *corev1.PersistentVolumeClaim) int64 {
	asked := c.Spec.Resources.Requests[corev1.ResourceStorage]
	return (asked.Value() + block - 1) / block * block
}

// fileSystem returns the file system of a class's volumes: ext4 or xfs.
func fileSystem(class *storagev1.StorageClass) string { return class.Parameters["fsType"] }

// checkClaim returns an error if the provisioner cannot satisfy a claim.
func checkClaim(c *corev1.PersistentVolumeClaim, class *storagev1.StorageClass) error {
	for _, mode := range c.Spec.AccessModes {
		if mode != corev1.ReadWriteOnce && mode != corev1.ReadWriteOncePod {
			return fmt.Errorf("access mode %s: volumes are of one node; ask for ReadWriteOnce", mode)
		}
	}
	switch {
	case c.Spec.DataSource != nil || c.Spec.DataSourceRef != nil:
		return fmt.Errorf("volumes are not made from a data source")
	case c.Spec.Selector != nil:
		return fmt.Errorf("volumes are not selected by labels")
	case !isBlock(c) && fileSystem(class) == "xfs" && size(c) < xfsLeast:
		return fmt.Errorf("%d bytes are too few for xfs, which takes at least 300Mi", size(c))
	}
	return nil
}

func isBlock(c *corev1.PersistentVolumeClaim) bool {
	return c.Spec.VolumeMode != nil && *c.Spec.VolumeMode == corev1.PersistentVolumeBlock
}

// volumeOf returns the volume of a claim: a local volume of a device on a node.
func volumeOf(c *corev1.PersistentVolumeClaim, class *storagev1.StorageClass,
	node *corev1.Node, d device) *corev1.PersistentVolume {
	mode := corev1.PersistentVolumeFilesystem
	source := &corev1.LocalVolumeSource{Path: d.path}
	options := class.MountOptions
	if isBlock(c) {
		mode, options = corev1.PersistentVolumeBlock, nil
	} else {
		fs := fileSystem(class)
		source.FSType = &fs
	}
	reclaim := corev1.PersistentVolumeReclaimDelete
	if class.ReclaimPolicy != nil {
		reclaim = *class.ReclaimPolicy
	}
	v := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{
			Name: volumeName(c),
			Annotations: map[string]string{
				provisionedBy: provisionerName, deviceAnnotation: d.path,
				fileAnnotation: d.file, directAnnotation: fmt.Sprint(d.direct),
			},
		},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: corev1.ResourceList{corev1.ResourceStorage: *resource.NewQuantity(size(c),
				resource.BinarySI)},
			AccessModes:            c.Spec.AccessModes,
			PersistentVolumeSource: corev1.PersistentVolumeSource{Local: source},
			ClaimRef: &corev1.ObjectReference{
				APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: c.Namespace, Name: c.Name, UID: c.UID,
			},
			PersistentVolumeReclaimPolicy: reclaim, StorageClassName: class.Name, MountOptions: options, VolumeMode: &mode,
			NodeAffinity: nodeAffinity(node.Labels[hostname]),
		},
	}
	if reclaim == corev1.PersistentVolumeReclaimDelete {
		v.Finalizers = []string{finalizer}
	}
	return v
}

// nodeAffinity binds a volume to the node with a host name.
func nodeAffinity(name string) *corev1.VolumeNodeAffinity {
	term := corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{
		Key: hostname, Operator: corev1.NodeSelectorOpIn, Values: []string{name},
	}}}
	return &corev1.VolumeNodeAffinity{
		Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{term}},
	}
}

func without(list []string, item string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return s == item })
}
