package volumes

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/knotmeter/knotmeter/internal/machine"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets/kube/cluster"
	"github.com/knotmeter/knotmeter/internal/targets/kube/diagnosis"
	"github.com/knotmeter/knotmeter/internal/targets/kube/inspection"
	"github.com/knotmeter/knotmeter/internal/targets/kube/manifest"
	"github.com/knotmeter/knotmeter/internal/targets/kube/product"
)

// A Volume is the volume of a site: one of a PersistentVolumeClaim, or the container's own root directory.
type Volume struct {
	api        kubernetes.Interface
	blueprint  manifest.Blueprint            // of the pod that mounts the volume
	request    *corev1.PersistentVolumeClaim // the claim to create
	class      *storagev1.StorageClass       // nil if classes cannot be read
	spec       manifest.Volume               // what the options ask for
	reused     bool                          // one volume serves all blocks
	created    bool                          // the claim may exist
	written    bool                          // runs have written to the volume
	claim      *corev1.PersistentVolumeClaim // nil until it is bound
	pv         *corev1.PersistentVolume      // nil until the claim is bound
	observed   machine.VolumeState           // reported by the pod
	filling    int64                         // volumes that may be on the same disk at the same time; 0 is 1
	writeLimit int64                         // bytes that the container may write to its root directory; 0: no limit
}

// HasClaim reports whether v is a volume with a claim, not the container's root directory. v may be nil.
func (v *Volume) HasClaim() bool { return v != nil && !v.spec.Root() }

// usable returns how many bytes a run may write: all of a device, nine tenths of the free space of a file system, or
// the part of the root directory that usableRoot allows. If a volume shows much more space than its claim got, it is a
// directory on a file system of others, such as the node's: the size that the claim got counts, and a share of
// the rest.
func (v *Volume) usable() int64 {
	switch got := v.capacity(); {
	case v.spec.Root():
		return usableRoot(v.observed, v.spec.Size.Value(), v.writeLimit, v.filling)
	case v.observed.Device:
		return v.observed.Size
	case got > 0 && v.observed.Size/2 > got:
		return min(got, spare(v.observed)/max(v.filling, 1))
	}
	return v.observed.Free / 10 * 9
}

// capacity returns the size in bytes of the volume that the claim got; 0 if it is not bound.
func (v *Volume) capacity() int64 {
	if v.claim == nil {
		return 0
	}
	return v.claim.Status.Capacity.Storage().Value()
}

// identity returns an identifier of the storage that keeps the files of runs: the UID of the claim, or the pod's name.
func (v *Volume) identity() string {
	if v.HasClaim() {
		return string(v.claim.UID)
	}
	return v.blueprint.Name(manifest.Client)
}

// createTimeout limits the request that creates a claim.
const createTimeout = 30 * time.Second

// Provision creates the claim of a site, waits until it is bound, and verifies its volume before a pod can mount it.
func (v *Volume) Provision(ctx context.Context) error {
	if !v.HasClaim() {
		return nil
	}
	whole, cancel := context.WithTimeout(context.WithoutCancel(ctx), createTimeout)
	defer cancel()
	if err := v.makeClaim(whole); err != nil {
		return err
	}
	if err := v.awaitBinding(ctx); err != nil {
		return diagnosis.Explain(err, v.request.Namespace)
	}
	return v.verifyBinding(ctx)
}

// makeClaim creates the claim of a site. The claim of a reused volume may exist already.
func (v *Volume) makeClaim(ctx context.Context) error {
	v.created = true
	namespace := v.request.Namespace
	_, err := v.api.CoreV1().PersistentVolumeClaims(namespace).Create(ctx, v.request, metav1.CreateOptions{})
	if v.reused && apierrors.IsAlreadyExists(err) {
		return nil
	}
	var status *apierrors.StatusError
	if errors.As(err, &status) && strings.Contains(status.ErrStatus.Message, "per PersistentVolumeClaim") {
		return fmt.Errorf("a LimitRange of the namespace %s refuses the volume; ask for another size=: %w", namespace, err)
	}
	if apierrors.IsForbidden(err) && strings.Contains(err.Error(), "exceeded quota") {
		return fmt.Errorf("%w; or ask for a smaller volume with size=", diagnosis.Explain(err, namespace))
	}
	return diagnosis.Explain(err, namespace)
}

// awaitBinding waits until the claim is bound. It returns an error once something prevents that.
func (v *Volume) awaitBinding(ctx context.Context) error {
	w := diagnosis.NewVolumeWait(v.spec, time.Now())
	var events []corev1.Event
	claims := v.api.CoreV1().PersistentVolumeClaims(v.request.Namespace)
	claim, err := cluster.AwaitBound(ctx, claims, v.request.Name, func(claim *corev1.PersistentVolumeClaim) error {
		events = v.refreshEvents(ctx, w, false, events)
		if problem := w.Problem(time.Now(), claim, nil, events); problem != nil {
			return diagnosis.ErrorOf(problem)
		}
		return nil
	})
	v.claim = claim
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("%w (%s)", err, diagnosis.ClaimState(claim, events))
	}
	return err
}

// refreshEvents returns the events about the volume. It reads them if w is due, and else returns the known ones.
// trouble reports whether there are other signs of a problem.
func (v *Volume) refreshEvents(
	ctx context.Context, w *diagnosis.VolumeWait, trouble bool, known []corev1.Event,
) []corev1.Event {
	if w.Due(time.Now(), trouble) {
		if found, err := v.events(ctx); err == nil {
			return found
		}
	}
	return known
}

// Running waits until the pod of the volume runs, and returns it by its name. It returns an error once something
// prevents that.
func (v *Volume) Running(ctx context.Context, watch *cluster.PodWatch) (map[string]*corev1.Pod, error) {
	return Running(ctx, watch, map[string]*Volume{v.blueprint.Name(manifest.Client): v})
}

// Running waits until pods run, and returns them. of holds the volume of each pod by the name of the pod. Running
// returns an error once something prevents a pod from running.
func Running(
	ctx context.Context, watch *cluster.PodWatch, of map[string]*Volume,
) (map[string]*corev1.Pod, error) {
	began := time.Now()
	names := slices.Sorted(maps.Keys(of))
	first := of[names[0]]
	waits := map[string]*diagnosis.VolumeWait{}
	for name, v := range of {
		waits[name] = diagnosis.NewVolumeWait(v.spec, began)
	}
	var events []corev1.Event
	r := diagnosis.NewReadiness(len(of), began, func() ([]corev1.Event, error) {
		found, err := first.events(ctx)
		return slices.DeleteFunc(found, func(e corev1.Event) bool {
			return diagnosis.Mounting(e.Reason) || e.Reason == "FailedScheduling"
		}), err
	})
	return watch.AwaitRunning(ctx, r, func(pods map[string]*corev1.Pod) error {
		for _, name := range names {
			pod := pods[name]
			if pod == nil || !inspection.Runs(pod) {
				events = first.refreshEvents(ctx, waits[names[0]], pod != nil && diagnosis.NotScheduled(pod) != "", events)
			}
			if problem := waits[name].Problem(time.Now(), of[name].claim, pod, events); problem != nil {
				return diagnosis.ErrorOf(problem)
			}
		}
		return nil
	})
}

// events returns the events about claims and pods of the namespace.
func (v *Volume) events(ctx context.Context) ([]corev1.Event, error) {
	found, err := v.api.CoreV1().Events(v.request.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(found.Items, func(e corev1.Event) bool {
		return e.InvolvedObject.Kind != "Pod" && e.InvolvedObject.Kind != "PersistentVolumeClaim"
	}), nil
}

// Check returns an error if the volume, as the pod observed it, is not what the options ask for, or cannot be measured.
func (v *Volume) Check(observed *machine.VolumeState, pod *corev1.Pod) error {
	if observed == nil || observed.Error == "" && observed.Content == nil {
		return fmt.Errorf("the agent of the image %s does not know of volumes: make the image with this version of "+
			"Knotmeter", v.blueprint.Settings.Image)
	}
	v.observed = *observed
	switch {
	case v.spec.Root():
		return v.checkRoot(pod)
	case v.observed.Denied && v.spec.Block:
		return result.NotSupported(fmt.Sprintf("on node %s %s; container runtimes give devices to the user of a pod where "+
			"device_ownership_from_security_context is set (containerd, CRI-O): have it set, or ask for volume-mode=filesystem",
			v.blueprint.Node(manifest.Client), v.observed.Error))
	case v.observed.Error != "":
		return result.NotSupported(fmt.Sprintf("on node %s %s; see to the class's mountOptions and fsType, or name "+
			"another storage-class=", v.blueprint.Node(manifest.Client), v.observed.Error))
	case v.observed.Device != v.spec.Block:
		return fmt.Errorf("the pod %s has not the mode of volume that was asked for; something in the cluster changes pods",
			v.blueprint.Name(manifest.Client))
	case len(v.observed.Content) > 0 && !v.written:
		return result.NotSupported(fmt.Sprintf("the volume %s is not empty, and nothing was written to it: it has %s; "+
			"have the provisioner make empty volumes, or name another storage-class=",
			v.claim.Spec.VolumeName, diagnosis.Shorten(inspection.List(v.observed.Content))))
	case v.usable() < 1<<20 && !v.reused:
		return result.NotSupported(fmt.Sprintf("the volume %s has no space: %d bytes are free; ask for more with size=",
			v.claim.Spec.VolumeName, v.observed.Free))
	}
	return nil
}

// Health returns what happened to the claim and the volume since they were created that invalidates runs on them.
func (v *Volume) Health(ctx context.Context) []string {
	if !v.HasClaim() {
		return nil
	}
	var list []string
	claim, err := v.api.CoreV1().PersistentVolumeClaims(v.request.Namespace).Get(ctx, v.claim.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err), err == nil && claim.UID != v.claim.UID:
		list = append(list, fmt.Sprintf("the claim %s was removed by something else than Knotmeter", v.claim.Name))
	case err == nil:
		list = append(list, diagnosis.ClaimDisruptions(v.claim, claim)...)
	}
	pv, err := v.api.CoreV1().PersistentVolumes().Get(ctx, v.pv.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err), err == nil && pv.UID != v.pv.UID:
		list = append(list, fmt.Sprintf("the volume %s was removed by something else than Knotmeter", v.pv.Name))
	case err == nil:
		list = append(list, diagnosis.VolumeDisruptions(v.pv, pv)...)
	}
	return list
}

// Remove deletes the claim of a site, unless the volume is reused, and waits until the volume is gone, unless its
// reclaim policy keeps it.
func (v *Volume) Remove(ctx context.Context) error {
	if v == nil || !v.created || v.reused {
		return nil
	}
	return deleteClaimAndWait(ctx, v.api, v.request.Namespace, v.request.Name)
}

// deleteClaimAndWait deletes a claim and waits until it and its volume are gone. It does not wait for a volume that its
// reclaim policy keeps.
func deleteClaimAndWait(ctx context.Context, api kubernetes.Interface, namespace, name string) error {
	claims := api.CoreV1().PersistentVolumeClaims(namespace)
	claim, err := claims.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return diagnosis.Explain(diagnosis.IgnoreNotFound(err), namespace)
	}
	if err := deleteClaim(ctx, api, namespace, name); err != nil {
		return err
	}
	if err := cluster.AwaitGone(ctx, cluster.ByName(name), claims.List, claims.Watch); err != nil {
		return fmt.Errorf("the claim %s in the namespace %s is not gone: %w", name, namespace,
			diagnosis.Explain(err, namespace))
	}
	return awaitVolumeGone(ctx, api, claim.Spec.VolumeName)
}

// awaitVolumeGone waits until the volume of a deleted claim is gone. It returns at once if the reclaim policy keeps the
// volume, or if volumes cannot be read.
func awaitVolumeGone(ctx context.Context, api kubernetes.Interface, name string) error {
	if name == "" {
		return nil
	}
	volumes := api.CoreV1().PersistentVolumes()
	v, err := volumes.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || err == nil &&
		v.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain {
		return nil
	}
	if err == nil {
		err = cluster.AwaitGone(ctx, cluster.ByName(name), volumes.List, volumes.Watch)
	}
	if apierrors.IsForbidden(err) {
		return nil
	}
	if err != nil {
		status := ""
		if v, getErr := volumes.Get(context.WithoutCancel(ctx), name, metav1.GetOptions{}); getErr == nil &&
			v.Status.Message != "" {
			status = " (" + diagnosis.Shorten(v.Status.Message) + ")"
		}
		return fmt.Errorf("the volume %s is not gone yet%s, which its provisioner should remove: %w", name, status,
			diagnosis.Explain(err, ""))
	}
	return nil
}

// Warnings returns a warning for the runs on the volume if the volume stays after the experiment.
func (v *Volume) Warnings() []result.Warning {
	if text := v.retainedNote(); text != "" {
		return []result.Warning{{Code: result.VolumeKept, Text: text}}
	}
	return nil
}

// retainedNote returns the text about a volume that stays when its claim is gone; empty if it goes with the claim.
func (v *Volume) retainedNote() string {
	if !v.HasClaim() || v.pv.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain {
		return ""
	}
	return retainedText(v.pv)
}

// retainedText names a volume of a Knotmeter claim that stays, and the command that removes it.
func retainedText(pv *corev1.PersistentVolume) string {
	return fmt.Sprintf("the volume %s is kept by its reclaim policy, Retain, when Knotmeter's claim is gone: 'kubectl "+
		"delete pv %s' removes it, and %s stays until it is removed there", pv.Name, pv.Name, backingStorage(pv))
}

// backingStorage describes the provider's disk or the path behind a volume.
func backingStorage(pv *corev1.PersistentVolume) string {
	switch {
	case pv.Spec.CSI != nil:
		return fmt.Sprintf("what it is at the provider (%s %s)", pv.Spec.CSI.Driver, pv.Spec.CSI.VolumeHandle)
	case pv.Spec.Local != nil:
		return "what it is on (" + pv.Spec.Local.Path + ")"
	}
	return "what it is at the provider"
}

// Path returns where the pod has the volume: a mount point, a device, or a directory; empty if v is nil.
func (v *Volume) Path() string {
	if v == nil {
		return ""
	}
	return v.spec.Path()
}

// Facts returns the facts about the volume of a block; none if v is nil.
func (v *Volume) Facts() []result.Fact {
	switch {
	case v == nil:
		return nil
	case v.spec.Root():
		return v.rootFacts()
	}
	got, asked := v.claim.Status.Capacity[corev1.ResourceStorage], v.spec.Size
	facts := []result.Fact{
		{Name: "volume", Value: v.claim.Spec.VolumeName},
		{Name: "volume-class", Value: ptr.Deref(v.claim.Spec.StorageClassName, result.Unknown)},
		{Name: "access-mode", Value: string(v.spec.Access)}, {Name: "volume-mode", Value: string(v.spec.Mode())},
		{Name: "size-asked", Value: asked.String()}, {Name: "size-got", Value: got.String()},
		{Name: "volume-use", Value: map[bool]string{false: "a new one for this block", true: "one for all blocks"}[v.reused]},
		{Name: "volume-topology", Value: inspection.Topology(v.pv)},
		{Name: "volume-usable", Value: strconv.FormatInt(v.usable(), 10) + " B"},
		{Name: "volume-reclaim", Value: string(v.pv.Spec.PersistentVolumeReclaimPolicy)},
	}
	if text := v.retainedNote(); text != "" {
		facts = append(facts, result.Fact{Name: "volume-retained", Value: text})
	}
	if v.class != nil {
		if l, ok := product.LimitOf(v.class.Provisioner, v.class.Parameters, got.Value()); ok {
			facts = append(facts, l.Facts()...)
		}
	}
	return append(facts, v.observed.Facts...)
}

// Name returns the name of the PersistentVolume; empty until the claim is bound.
func (v *Volume) Name() string {
	if v.claim == nil {
		return ""
	}
	return v.claim.Spec.VolumeName
}
