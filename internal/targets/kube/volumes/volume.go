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

	"github.com/knotmeter/knotmeter/internal/preflight"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets/kube/cluster"
	"github.com/knotmeter/knotmeter/internal/targets/kube/diagnosis"
	"github.com/knotmeter/knotmeter/internal/targets/kube/inspection"
	"github.com/knotmeter/knotmeter/internal/targets/kube/manifest"
)

// A Volume is that of a site.
type Volume struct {
	api   kubernetes.Interface
	plan  manifest.Blueprint            // of the pod that measures it
	order *corev1.PersistentVolumeClaim // as it is to be made
	class *storagev1.StorageClass       // nil if it may not be seen
	asked manifest.Volume               // for it
	keep  bool                          // it is for all blocks
	made  bool                          // the claim may be
	used  bool                          // runs have written to it
	claim *corev1.PersistentVolumeClaim // once it was bound
	pv    *corev1.PersistentVolume
	found preflight.Volume // what the pod saw
	limit int64            // bytes that its container may write to its root directory; 0: no limit
}

// HasClaim reports whether there is a volume that belongs to a claim.
func (v *Volume) HasClaim() bool { return v != nil && !v.asked.Root() }

// usable is how many bytes a run may write: all of a device, and of a file system what leaves it some room.
func (v *Volume) usable() int64 {
	switch {
	case v.asked.Root():
		return usableRoot(v.found, v.asked.Size.Value(), v.limit)
	case v.found.Device:
		return v.found.Size
	}
	return v.found.Free / 10 * 9
}

// identity names what the files of runs stay on.
func (v *Volume) identity() string {
	if v.HasClaim() {
		return string(v.claim.UID)
	}
	return v.plan.Name(manifest.Client)
}

// createTime is how long a request may take that makes a claim.
const createTime = 30 * time.Second

// Provision makes the claim of a site, waits until it is bound, and verifies to what: all before a pod could mount it.
func (v *Volume) Provision(ctx context.Context) error {
	if !v.HasClaim() {
		return nil
	}
	whole, cancel := context.WithTimeout(context.WithoutCancel(ctx), createTime)
	defer cancel()
	if err := v.makeClaim(whole); err != nil {
		return err
	}
	if err := v.awaitBinding(ctx); err != nil {
		return diagnosis.Explain(err, v.order.Namespace)
	}
	return v.verifyBinding(ctx)
}

// makeClaim makes the claim of a site, or finds that of all blocks.
func (v *Volume) makeClaim(ctx context.Context) error {
	v.made = true
	namespace := v.order.Namespace
	_, err := v.api.CoreV1().PersistentVolumeClaims(namespace).Create(ctx, v.order, metav1.CreateOptions{})
	if v.keep && apierrors.IsAlreadyExists(err) {
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

// awaitBinding waits until the claim is bound; or says what keeps it from that.
func (v *Volume) awaitBinding(ctx context.Context) error {
	w := diagnosis.NewVolumeWait(v.asked, time.Now())
	var events []corev1.Event
	claims := v.api.CoreV1().PersistentVolumeClaims(v.order.Namespace)
	claim, err := cluster.Bound(ctx, claims, v.order.Name, func(claim *corev1.PersistentVolumeClaim) error {
		events = v.latest(ctx, w, false, events)
		if in := w.Blocked(time.Now(), claim, nil, events); in != nil {
			return diagnosis.ErrorOf(in)
		}
		return nil
	})
	v.claim = claim
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("%w (%s)", err, diagnosis.ClaimState(claim, events))
	}
	return err
}

// latest are the events about the volume, asked anew when that is due.
func (v *Volume) latest(
	ctx context.Context, w *diagnosis.VolumeWait, trouble bool, known []corev1.Event,
) []corev1.Event {
	if w.Due(time.Now(), trouble) {
		if found, err := v.events(ctx); err == nil {
			return found
		}
	}
	return known
}

// Running waits until the pod that has the volume runs; or says what keeps it from that.
func (v *Volume) Running(ctx context.Context, watch *cluster.PodWatch) (map[string]*corev1.Pod, error) {
	return Running(ctx, watch, map[string]*Volume{v.plan.Name(manifest.Client): v})
}

// Running waits until pods run that have volumes, each by the pod's name; or says what keeps one from that.
func Running(
	ctx context.Context, watch *cluster.PodWatch, of map[string]*Volume,
) (map[string]*corev1.Pod, error) {
	began := time.Now()
	names := slices.Sorted(maps.Keys(of))
	first := of[names[0]]
	waits := map[string]*diagnosis.VolumeWait{}
	for name, v := range of {
		waits[name] = diagnosis.NewVolumeWait(v.asked, began)
	}
	var events []corev1.Event
	r := diagnosis.NewReadiness(len(of), began, func() ([]corev1.Event, error) {
		found, err := first.events(ctx)
		return slices.DeleteFunc(found, func(e corev1.Event) bool {
			return diagnosis.Mounting(e.Reason) || e.Reason == "FailedScheduling"
		}), err
	})
	return watch.Running(ctx, r, func(pods map[string]*corev1.Pod) error {
		for _, name := range names {
			pod := pods[name]
			if pod == nil || !inspection.Runs(pod) {
				events = first.latest(ctx, waits[names[0]], pod != nil && diagnosis.NotScheduled(pod) != "", events)
			}
			if in := waits[name].Blocked(time.Now(), of[name].claim, pod, events); in != nil {
				return diagnosis.ErrorOf(in)
			}
		}
		return nil
	})
}

// events are those of the namespace's claims and pods.
func (v *Volume) events(ctx context.Context) ([]corev1.Event, error) {
	found, err := v.api.CoreV1().Events(v.order.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(found.Items, func(e corev1.Event) bool {
		return e.InvolvedObject.Kind != "Pod" && e.InvolvedObject.Kind != "PersistentVolumeClaim"
	}), nil
}

// Check holds the volume to what was asked for by what the pod sees of it.
func (v *Volume) Check(seen *preflight.Volume, pod *corev1.Pod) error {
	if seen == nil || seen.Error == "" && seen.Content == nil {
		return fmt.Errorf("the agent of the image %s does not know of volumes: make the image with this version of "+
			"Knotmeter", v.plan.Settings.Image)
	}
	v.found = *seen
	switch {
	case v.asked.Root():
		return v.checkRoot(pod)
	case v.found.Denied && v.asked.Block:
		return result.NotSupported(fmt.Sprintf("on node %s %s; container runtimes give devices to the user of a pod where "+
			"device_ownership_from_security_context is set (containerd, CRI-O): have it set, or ask for volume-mode=filesystem",
			v.plan.Node(manifest.Client), v.found.Error))
	case v.found.Error != "":
		return result.NotSupported(fmt.Sprintf("on node %s %s; see to the class's mountOptions and fsType, or name "+
			"another storage-class=", v.plan.Node(manifest.Client), v.found.Error))
	case v.found.Device != v.asked.Block:
		return fmt.Errorf("the pod %s has not the mode of volume that was asked for; something in the cluster changes pods",
			v.plan.Name(manifest.Client))
	case len(v.found.Content) > 0 && !v.used:
		return result.NotSupported(fmt.Sprintf("the volume %s is not empty, and nothing was written to it: it has %s; "+
			"have the provisioner make empty volumes, or name another storage-class=",
			v.claim.Spec.VolumeName, diagnosis.Shorten(inspection.List(v.found.Content))))
	case v.usable() < 1<<20 && !v.keep:
		return result.NotSupported(fmt.Sprintf("the volume %s has no space: %d bytes are free; ask for more with size=",
			v.claim.Spec.VolumeName, v.found.Free))
	}
	return nil
}

// Health is what became of the volume since it was made that makes a run on it count for nothing.
func (v *Volume) Health(ctx context.Context) []string {
	if !v.HasClaim() {
		return nil
	}
	var list []string
	claim, err := v.api.CoreV1().PersistentVolumeClaims(v.order.Namespace).Get(ctx, v.claim.Name, metav1.GetOptions{})
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

// Remove removes the claim of a site, and returns when its volume is gone, unless the class or the options keep it.
func (v *Volume) Remove(ctx context.Context) error {
	if v == nil || !v.made || v.keep {
		return nil
	}
	return removeClaim(ctx, v.api, v.order.Namespace, v.order.Name)
}

// removeClaim removes a claim, and returns when it and its volume are gone; a volume that its class keeps stays.
func removeClaim(ctx context.Context, api kubernetes.Interface, namespace, name string) error {
	claims := api.CoreV1().PersistentVolumeClaims(namespace)
	claim, err := claims.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return diagnosis.Explain(diagnosis.IgnoreNotFound(err), namespace)
	}
	if err := deleteClaim(ctx, api, namespace, name); err != nil {
		return err
	}
	if err := cluster.Gone(ctx, cluster.Named(name), claims.List, claims.Watch); err != nil {
		return fmt.Errorf("the claim %s in the namespace %s is not gone: %w", name, namespace,
			diagnosis.Explain(err, namespace))
	}
	return awaitVolumeGone(ctx, api, claim.Spec.VolumeName)
}

// awaitVolumeGone waits until a volume is gone whose claim is. One that is kept, or may not be seen, is not waited for.
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
		err = cluster.Gone(ctx, cluster.Named(name), volumes.List, volumes.Watch)
	}
	if apierrors.IsForbidden(err) {
		return nil
	}
	if err != nil {
		said := ""
		if v, cannot := volumes.Get(context.WithoutCancel(ctx), name, metav1.GetOptions{}); cannot == nil &&
			v.Status.Message != "" {
			said = " (" + diagnosis.Shorten(v.Status.Message) + ")"
		}
		return fmt.Errorf("the volume %s is not gone yet%s, which its provisioner should remove: %w", name, said,
			diagnosis.Explain(err, ""))
	}
	return nil
}

// Warnings are what a reader of a run should know of its volume.
func (v *Volume) Warnings() []result.Warning {
	if text := v.kept(); text != "" {
		return []result.Warning{{Code: result.VolumeKept, Text: text}}
	}
	return nil
}

// kept says which volume stays when its claim is gone; empty if none does.
func (v *Volume) kept() string {
	if !v.HasClaim() || v.pv.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain {
		return ""
	}
	return retained(v.pv)
}

// retained names a volume of ours that stays, and what removes it.
func retained(pv *corev1.PersistentVolume) string {
	return fmt.Sprintf("the volume %s is kept by its reclaim policy, Retain, when Knotmeter's claim is gone: 'kubectl "+
		"delete pv %s' removes it, and %s stays until it is removed there", pv.Name, pv.Name, atProvider(pv))
}

// atProvider is what a volume is at its provider.
func atProvider(pv *corev1.PersistentVolume) string {
	switch {
	case pv.Spec.CSI != nil:
		return fmt.Sprintf("what it is at the provider (%s %s)", pv.Spec.CSI.Driver, pv.Spec.CSI.VolumeHandle)
	case pv.Spec.Local != nil:
		return "what it is on (" + pv.Spec.Local.Path + ")"
	}
	return "what it is at the provider"
}

// Path is where the volume is in the pod; empty without one.
func (v *Volume) Path() string {
	if v == nil {
		return ""
	}
	return v.asked.Path()
}

// Facts are those of a block's volume; none without one.
func (v *Volume) Facts() []result.Fact {
	switch {
	case v == nil:
		return nil
	case v.asked.Root():
		return v.rootFacts()
	}
	got, asked := v.claim.Status.Capacity[corev1.ResourceStorage], v.asked.Size
	facts := []result.Fact{
		{Name: "volume", Value: v.claim.Spec.VolumeName},
		{Name: "volume-class", Value: ptr.Deref(v.claim.Spec.StorageClassName, result.Unknown)},
		{Name: "access-mode", Value: string(v.asked.Access)}, {Name: "volume-mode", Value: string(v.asked.Mode())},
		{Name: "size-asked", Value: asked.String()}, {Name: "size-got", Value: got.String()},
		{Name: "volume-use", Value: map[bool]string{false: "a new one for this block", true: "one for all blocks"}[v.keep]},
		{Name: "volume-topology", Value: inspection.Topology(v.pv)},
		{Name: "volume-usable", Value: strconv.FormatInt(v.usable(), 10) + " B"},
		{Name: "volume-reclaim", Value: string(v.pv.Spec.PersistentVolumeReclaimPolicy)},
	}
	if text := v.kept(); text != "" {
		facts = append(facts, result.Fact{Name: "volume-retained", Value: text})
	}
	if v.class != nil {
		if l, ok := limitOf(v.class.Provisioner, v.class.Parameters, got.Value()); ok {
			facts = append(facts, l.Facts()...)
		}
	}
	return append(facts, v.found.Facts...)
}

// Name is that of the volume; empty until the claim is bound.
func (v *Volume) Name() string {
	if v.claim == nil {
		return ""
	}
	return v.claim.Spec.VolumeName
}
