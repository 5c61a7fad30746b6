package manifest

import (
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Where volumes are in the pods that measure them, and what they are called there.
const (
	volumePath   = "/volume"
	volumeDevice = "/dev/volume"
	volumeName   = "volume"
)

// diskGroup is the group that devices of disks belong to on most distributions. Kubernetes gives file systems to the
// pod's group, and devices to nobody.
const diskGroup = 6

// DefaultVolume is the size that volumes have unless somebody says otherwise.
const DefaultVolume = "10Gi"

// A Use is how long a volume lasts.
type Use string

const (
	ByClass Use = ""      // fresh, unless the class keeps what is removed
	Fresh   Use = "fresh" // a volume for each block
	Reuse   Use = "reuse" // one for all blocks
)

// A Volume is what a volume is to be.
type Volume struct {
	Given  bool   // the options say something of it
	Class  string // "": the cluster's default
	Access corev1.PersistentVolumeAccessMode
	Block  bool
	Size   resource.Quantity
	Use    Use
}

// AnyVolume is a volume of which nothing is said.
func AnyVolume() Volume {
	return Volume{Access: corev1.ReadWriteOnce, Size: resource.MustParse(DefaultVolume)}
}

func (w Volume) Mode() corev1.PersistentVolumeMode {
	if w.Block {
		return corev1.PersistentVolumeBlock
	}
	return corev1.PersistentVolumeFilesystem
}

// Path is where the volume is in the pod.
func (w Volume) Path() string {
	if w.Block {
		return volumeDevice
	}
	return volumePath
}

// ClaimName is that of the block's claim, or of the experiment's where one volume is for all blocks.
func (b Blueprint) ClaimName() string {
	if b.Reuse {
		return fmt.Sprintf("knotmeter-%s-volume", b.Experiment)
	}
	return fmt.Sprintf("knotmeter-%s-%d-volume", b.Experiment, b.Site)
}

// AnnotationNode is on claims whose volume is to be made for a node.
const AnnotationNode = "volume.kubernetes.io/selected-node"

// Claim asks for the volume. A class is named even where it is the default, so that it cannot become another one.
// Where volumes wait for a pod, the claim names the node itself, as the scheduler would: so it is bound before there
// is a pod that would mount it, and Kubernetes binds none that was there already.
func (b Blueprint) Claim(class string, waits bool) *corev1.PersistentVolumeClaim {
	w := b.Settings.Volume
	l := map[string]string{LabelManaged: ManagedBy, LabelName: AgentName, LabelExperiment: b.Experiment}
	if !b.Reuse {
		l[LabelSite] = strconv.Itoa(b.Site)
	}
	c := &corev1.PersistentVolumeClaim{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"},
		ObjectMeta: metav1.ObjectMeta{Name: b.ClaimName(), Namespace: b.Namespace, Labels: l},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{w.Access}, VolumeMode: new(w.Mode()),
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: w.Size}},
		},
	}
	if class != "" {
		c.Spec.StorageClassName = &class
	}
	if waits {
		c.Annotations = map[string]string{AnnotationNode: b.Node(Client)}
	}
	return c
}

// mount gives a pod the volume: its file system by the pod's group, or its device by that of disks.
func (b Blueprint) mount(p *corev1.Pod) {
	if !b.HasVolume() {
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
	b.Settings.OwnFiles(security)
	security.FSGroupChangePolicy = new(corev1.FSGroupChangeOnRootMismatch)
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: volumeName, MountPath: volumePath})
}
