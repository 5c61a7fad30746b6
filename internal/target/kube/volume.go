package kube

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/knotmeter/knotmeter/internal/target"
	"github.com/knotmeter/knotmeter/internal/target/kube/inspection"
	"github.com/knotmeter/knotmeter/internal/target/kube/manifest"
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

// defaultVolume is the size that volumes have unless somebody says otherwise.
const defaultVolume = "10Gi"

// A use is how long a volume lasts.
type use string

const (
	useByClass use = ""      // fresh, unless the class keeps what is removed
	useFresh   use = "fresh" // a volume for each run
	useReuse   use = "reuse" // one for all runs
)

// A wanted is what a volume is to be.
type wanted struct {
	Given  bool   // the options say something of it
	Class  string // "": the cluster's default
	Access corev1.PersistentVolumeAccessMode
	Block  bool
	Size   resource.Quantity
	Use    use
}

// anyVolume is a volume of which nothing is said.
func anyVolume() wanted {
	return wanted{Access: corev1.ReadWriteOnce, Size: resource.MustParse(defaultVolume)}
}

// smallestVolume is the least that can be measured: the file of the etcd check takes 22 MiB, and a file system some.
const smallestVolume = 64 << 20

var volumeSettings = []target.Setting[wanted]{
	target.NewSetting(target.Option{
		Name: "storage-class", Example: "NAME", Help: "storage class of the volumes (default: the cluster's default class)",
	}, func(w *wanted) *string { return &w.Class }, target.TextThat(dnsName)),
	target.NewSetting(target.Option{
		Name: "access-mode", Example: "ReadWriteOnce",
		Help: "access mode of the volumes: ReadWriteOnce, ReadWriteOncePod or ReadWriteMany",
	}, func(w *wanted) *corev1.PersistentVolumeAccessMode { return &w.Access }, parseAccess),
	target.NewSetting(target.Option{
		Name: "volume-mode", Example: "filesystem", Help: "mode of the volumes: filesystem, or block for the device itself",
	}, func(w *wanted) *bool { return &w.Block }, target.Choice("filesystem", "block")),
	target.NewSetting(target.Option{
		Name: "size", Example: defaultVolume, Help: "size of the volumes, from 64Mi on",
	}, func(w *wanted) *resource.Quantity { return &w.Size }, parseSize),
	target.NewSetting(target.Option{
		Name: "volume", Example: "fresh",
		Help: "fresh: a new volume for each run; reuse: one for all of them " +
			"(default: fresh, but reuse where the class retains volumes)",
	}, func(w *wanted) *use { return &w.Use }, parseUse),
}

func parseAccess(value string) (corev1.PersistentVolumeAccessMode, error) {
	switch mode := corev1.PersistentVolumeAccessMode(value); mode {
	case corev1.ReadWriteOnce, corev1.ReadWriteOncePod, corev1.ReadWriteMany:
		return mode, nil
	case corev1.ReadOnlyMany:
		return "", errors.New("what is measured is written first; ask for ReadWriteOnce, ReadWriteOncePod or ReadWriteMany")
	}
	return "", errors.New("it is ReadWriteOnce, ReadWriteOncePod or ReadWriteMany")
}

func parseSize(value string) (resource.Quantity, error) {
	size, err := resource.ParseQuantity(value)
	if err != nil || size.Value() < smallestVolume {
		return size, errors.New("it is a size from 64Mi on, as Kubernetes writes it, such as 10Gi")
	}
	return size, nil
}

func parseUse(value string) (use, error) {
	if u := use(value); u == useFresh || u == useReuse {
		return u, nil
	}
	return "", errors.New("it is fresh, for a new volume in each run, or reuse, for one in all of them")
}

// consistent says what of the options about volumes does not go together with others.
func (o options) consistent() error {
	if o.Volume.Use == useReuse && o.Rotate {
		return fmt.Errorf("volume=reuse and rotate-nodes=yes: a volume that stays is measured on one node")
	}
	return nil
}

func (w wanted) mode() corev1.PersistentVolumeMode {
	if w.Block {
		return corev1.PersistentVolumeBlock
	}
	return corev1.PersistentVolumeFilesystem
}

// path is where the volume is in the pod.
func (w wanted) path() string {
	if w.Block {
		return volumeDevice
	}
	return volumePath
}

// claimName is that of the site's claim, or of the experiment's where one volume is for all runs.
func (b blueprint) claimName() string {
	if b.reuse {
		return fmt.Sprintf("knotmeter-%s-volume", b.experiment)
	}
	return fmt.Sprintf("knotmeter-%s-%d-volume", b.experiment, b.site)
}

// claim asks for the volume. A class is named even where it is the default, so that it cannot become another one.
// Where volumes wait for a pod, the claim names the node itself, as the scheduler would: so it is bound before there
// is a pod that would mount it, and Kubernetes binds none that was there already.
func (b blueprint) claim(class string, waits bool) *corev1.PersistentVolumeClaim {
	w := b.options.Volume
	l := map[string]string{manifest.LabelManaged: manifest.ManagedBy, manifest.LabelName: manifest.AgentName, manifest.LabelExperiment: b.experiment}
	if !b.reuse {
		l[manifest.LabelSite] = strconv.Itoa(b.site)
	}
	c := &corev1.PersistentVolumeClaim{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"},
		ObjectMeta: metav1.ObjectMeta{Name: b.claimName(), Namespace: b.namespace, Labels: l},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{w.Access}, VolumeMode: new(w.mode()),
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: w.Size}},
		},
	}
	if class != "" {
		c.Spec.StorageClassName = &class
	}
	if waits {
		c.Annotations = map[string]string{annotationNode: b.node(manifest.Client)}
	}
	return c
}

// mount gives a pod the volume: its file system by the pod's group, or its device by that of disks.
func (b blueprint) mount(p *corev1.Pod) {
	if b.path != target.Storage {
		return
	}
	p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: volumeName, VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: b.claimName()},
	}})
	c, security := &p.Spec.Containers[0], p.Spec.SecurityContext
	if b.options.Volume.Block {
		security.SupplementalGroups = []int64{diskGroup}
		c.VolumeDevices = append(c.VolumeDevices, corev1.VolumeDevice{Name: volumeName, DevicePath: volumeDevice})
		return
	}
	b.options.ownFiles(security)
	security.FSGroupChangePolicy = new(corev1.FSGroupChangeOnRootMismatch)
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: volumeName, MountPath: volumePath})
}

// Annotations of Kubernetes' own on classes and volumes.
const (
	annotationDefault     = "storageclass.kubernetes.io/is-default-class"
	annotationDefaultBeta = "storageclass.beta.kubernetes.io/is-default-class"
	annotationNode        = "volume.kubernetes.io/selected-node"
	annotationMadeBy      = "pv.kubernetes.io/provisioned-by"
	noProvisioner         = "kubernetes.io/no-provisioner"
)

// classOf is the class by its name, or the default one of them: where there are several, Kubernetes takes the newest.
func classOf(classes []storagev1.StorageClass, name string) (*storagev1.StorageClass, error) {
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
		return nil, fmt.Errorf("the cluster has no storage class %s; it has %s: name one of them with storage-class=", name, inspection.List(names))
	}
	return nil, fmt.Errorf("the cluster has no default storage class; it has %s: name one of them with storage-class=", inspection.List(names))
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

// alreadyThere are volumes that exist already and that a claim would be bound to, instead of one that is made for it. What is
// on them is somebody's. Without a class any could be.
func (w wanted) alreadyThere(volumes []corev1.PersistentVolume, class string) []string {
	var names []string
	for _, v := range volumes {
		if class != "" && v.Spec.StorageClassName != class || v.DeletionTimestamp != nil || v.Spec.ClaimRef != nil {
			continue
		}
		capacity := v.Spec.Capacity[corev1.ResourceStorage]
		if modeOf(v.Spec.VolumeMode) == w.mode() && slices.Contains(v.Spec.AccessModes, w.Access) && capacity.Cmp(w.Size) >= 0 {
			names = append(names, v.Name)
		}
	}
	slices.Sort(names)
	return names
}

func modeOf(m *corev1.PersistentVolumeMode) corev1.PersistentVolumeMode {
	if m == nil {
		return corev1.PersistentVolumeFilesystem
	}
	return *m
}

// notAsked is how a volume differs from what was asked for: the gate of every run on one. The class is nil where it
// may not be seen.
func notAsked(w wanted, class *storagev1.StorageClass, claim *corev1.PersistentVolumeClaim, v *corev1.PersistentVolume) []string {
	var wrong []string
	note := func(format string, a ...any) { wrong = append(wrong, fmt.Sprintf(format, a...)) }
	name := w.Class
	if class != nil {
		name = class.Name
	}
	if of := claim.Spec.StorageClassName; of == nil && name != "" || of != nil && name != "" && *of != name {
		note("the claim is of the class %q", deref(of))
	}
	if got := claim.Status.Capacity[corev1.ResourceStorage]; got.Cmp(w.Size) < 0 {
		note("it has %s", got.String())
	}
	if modeOf(claim.Spec.VolumeMode) != w.mode() {
		note("its mode is %s", modeOf(claim.Spec.VolumeMode))
	}
	if v.Spec.StorageClassName != name && name != "" {
		note("the volume is of the class %q", v.Spec.StorageClassName)
	}
	if class != nil && v.Annotations[annotationMadeBy] != class.Provisioner {
		note("it was made by %s, and the class is of %s", v.Annotations[annotationMadeBy], class.Provisioner)
	}
	if modeOf(v.Spec.VolumeMode) != w.mode() {
		note("its mode is %s", modeOf(v.Spec.VolumeMode))
	}
	if !slices.Contains(v.Spec.AccessModes, w.Access) {
		note("its access modes are %v", v.Spec.AccessModes)
	}
	return wrong
}

func deref(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}
