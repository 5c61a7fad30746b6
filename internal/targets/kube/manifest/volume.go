package manifest

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Paths and name of volumes in the pods that measure them.
const (
	volumePath   = "/volume"
	volumeDevice = "/dev/volume"
	volumeName   = "volume"
	rootPath     = "/tmp" // directory of the image that all users may write to
)

// diskGroup is the group of disk devices on most distributions. Kubernetes changes the group of file systems to the
// pod's, but not that of devices.
const diskGroup = 6

// DefaultVolume is the default size of volumes.
const DefaultVolume = "10Gi"

// A Use selects what blocks measure: a volume for each block, one volume for all blocks, or no volume.
type Use string

// Uses of a volume.
const (
	ByClass Use = ""      // fresh, but reuse if the class retains volumes
	Fresh   Use = "fresh" // a volume for each block
	Reuse   Use = "reuse" // one for all blocks
	Root    Use = "root"  // no volume: the root directory of each block's container
)

// A Volume holds the options about a volume.
type Volume struct {
	Given  bool   // whether any option about volumes was given
	Class  string // empty: the cluster's default
	Access corev1.PersistentVolumeAccessMode
	Block  bool // a device, not a file system
	Size   resource.Quantity
	Use    Use
	Vault  bool // for the data of a deployed Vault, not for storage cases
}

// AnyVolume returns a volume with the default options.
func AnyVolume() Volume {
	return Volume{Access: corev1.ReadWriteOnce, Size: resource.MustParse(DefaultVolume)}
}

// Mode returns the volume mode of the claim.
func (w Volume) Mode() corev1.PersistentVolumeMode {
	if w.Block {
		return corev1.PersistentVolumeBlock
	}
	return corev1.PersistentVolumeFilesystem
}

// Root reports whether the container's own root directory is measured instead of a volume.
func (w Volume) Root() bool { return w.Use == Root }

// ClassOption returns the target's option that names the class, with an equals sign.
func (w Volume) ClassOption() string {
	if w.Vault {
		return "vault-storage-class="
	}
	return "storage-class="
}

// Path returns the mount point, device or directory of the volume in the pod.
func (w Volume) Path() string {
	switch {
	case w.Root():
		return rootPath
	case w.Block:
		return volumeDevice
	}
	return volumePath
}

// ClaimName returns the name of the block's claim, or of the experiment's if one volume serves all blocks.
func (b Blueprint) ClaimName() string {
	if b.Reuse {
		return fmt.Sprintf("knotmeter-%s-volume", b.Experiment)
	}
	return fmt.Sprintf("knotmeter-%s-%d-volume", b.Experiment, b.Site)
}

// AnnotationNode is the annotation of claims with the node that the volume is created for.
const AnnotationNode = "volume.kubernetes.io/selected-node"

// Claim returns the claim for the client's volume. waits reports whether the class creates volumes only for a chosen
// node; the claim then chooses the client's node.
func (b Blueprint) Claim(class string, waits bool) *corev1.PersistentVolumeClaim {
	l := map[string]string{LabelManaged: ManagedBy, LabelName: AgentName, LabelExperiment: b.Experiment}
	if !b.Reuse {
		l[LabelSite] = strconv.Itoa(b.Site)
	}
	node := ""
	if waits {
		node = b.Node(Client)
	}
	return b.Settings.Volume.Claim(metav1.ObjectMeta{Name: b.ClaimName(), Namespace: b.Namespace, Labels: l}, class, node)
}

// Claim returns the claim for a volume. Callers name the class even if it is the default, because the default may
// change. They give a node if the class creates volumes only for a chosen node. The claim then names the node, as the
// scheduler would, so that it is bound before any pod mounts the volume, and never to an existing volume.
func (w Volume) Claim(o metav1.ObjectMeta, class, node string) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"}, ObjectMeta: o,
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{w.Access}, VolumeMode: new(w.Mode()),
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: w.Size}},
		},
	}
	if class != "" {
		c.Spec.StorageClassName = &class
	}
	if node != "" {
		c.Annotations = map[string]string{AnnotationNode: node}
	}
	return c
}

// mount adds the volume to a pod: a file system that the pod's group owns, or a device that the group of disks may use.
func (b Blueprint) mount(p *corev1.Pod) {
	if !b.HasVolume() {
		return
	}
	if b.Settings.Volume.Root() {
		b.makeRootWritable(p)
		return
	}
	p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: volumeName, VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: b.ClaimName()},
	}})
	c, security := &p.Spec.Containers[0], p.Spec.SecurityContext
	if b.Settings.Volume.Block {
		security.SupplementalGroups = []int64{diskGroup}
		c.VolumeDevices = append(c.VolumeDevices, corev1.VolumeDevice{Name: volumeName, DevicePath: volumeDevice})
		return
	}
	b.Settings.SetFSGroup(security)
	security.FSGroupChangePolicy = new(corev1.FSGroupChangeOnRootMismatch)
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: volumeName, MountPath: volumePath})
}

// makeRootWritable makes the container's root directory writable and removes the volume over its temporary directory.
// The resource request informs the scheduler and quotas how much of the node's disk may be written.
func (b Blueprint) makeRootWritable(p *corev1.Pod) {
	c := &p.Spec.Containers[0]
	c.SecurityContext.ReadOnlyRootFilesystem = new(false)
	p.Spec.Volumes = slices.DeleteFunc(p.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == tmpVolume })
	c.VolumeMounts = slices.DeleteFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == tmpVolume })
	requests := corev1.ResourceList{}
	maps.Copy(requests, c.Resources.Requests)
	requests[corev1.ResourceEphemeralStorage] = b.Settings.Volume.Size
	c.Resources.Requests = requests
}
