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

// Where volumes are in the pods that measure them, and what they are called there.
const (
	volumePath   = "/volume"
	volumeDevice = "/dev/volume"
	volumeName   = "volume"
	rootPath     = "/tmp" // the directory of the image that any user may write to
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
	Root    Use = "root"  // no volume: the root directory of each block's container
)

// A Volume is what a volume is to be.
type Volume struct {
	Given  bool   // the options say something of it
	Class  string // "": the cluster's default
	Access corev1.PersistentVolumeAccessMode
	Block  bool
	Size   resource.Quantity
	Use    Use
	Vault  bool // it is for the data of a Vault that is deployed
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

// Root reports whether the container's own root directory is measured instead of a volume.
func (w Volume) Root() bool { return w.Use == Root }

// ClassOption is the option that names the class.
func (w Volume) ClassOption() string {
	if w.Vault {
		return "vault-storage-class="
	}
	return "storage-class="
}

// Path is where the volume is in the pod.
func (w Volume) Path() string {
	switch {
	case w.Root():
		return rootPath
	case w.Block:
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

// Claim asks for the volume of the client, on its node where volumes wait for a pod.
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

// Claim asks for a volume. A class is named even where it is the default, so that it cannot become another one. Where
// volumes wait for a pod, the claim names the node itself, as the scheduler would: so it is bound before there is a pod
// that would mount it, and Kubernetes binds none that was there already.
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

// mount gives a pod the volume: its file system by the pod's group, or its device by that of disks.
func (b Blueprint) mount(p *corev1.Pod) {
	if !b.HasVolume() {
		return
	}
	if b.Settings.Volume.Root() {
		b.openRoot(p)
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

// openRoot lets the container write to its own root directory, where the image's directory for temporary files takes
// the place of the pod's. The request tells the scheduler and quotas how much of the node's disk may be written.
func (b Blueprint) openRoot(p *corev1.Pod) {
	c := &p.Spec.Containers[0]
	c.SecurityContext.ReadOnlyRootFilesystem = new(false)
	p.Spec.Volumes = slices.DeleteFunc(p.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == tmpVolume })
	c.VolumeMounts = slices.DeleteFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == tmpVolume })
	requests := corev1.ResourceList{}
	maps.Copy(requests, c.Resources.Requests)
	requests[corev1.ResourceEphemeralStorage] = b.Settings.Volume.Size
	c.Resources.Requests = requests
}
