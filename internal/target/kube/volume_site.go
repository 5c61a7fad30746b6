package kube

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/preflight"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/target"
	"github.com/knotmeter/knotmeter/internal/target/kube/access"
	"github.com/knotmeter/knotmeter/internal/target/kube/diagnosis"
	"github.com/knotmeter/knotmeter/internal/target/kube/inspection"
	"github.com/knotmeter/knotmeter/internal/target/kube/manifest"
	"github.com/knotmeter/knotmeter/internal/target/kube/watching"
	"github.com/knotmeter/knotmeter/internal/volumelimit"
)

// A storage is what a target knows of the class that its volumes are of.
type storage struct {
	asked bool
	class *storagev1.StorageClass // nil if it may not be seen
	err   error                   // why there is none
	reuse bool
	size  int64 // that may be used of a volume that is reused; 0 until it is known
	claim bool  // of a volume that is reused, may have been made
	made  bool  // any claim may have been
}

// A volume is that of a site.
type volume struct {
	class *storagev1.StorageClass       // nil if it may not be seen
	asked manifest.Volume               // for it
	keep  bool                          // it is for all runs
	made  bool                          // the claim may be
	used  bool                          // runs have written to it
	claim *corev1.PersistentVolumeClaim // once it was bound
	pv    *corev1.PersistentVolume
	found preflight.Volume // what the pod saw
}

// lookUpClass finds the class, once. What the cluster does not have Is result.ErrNotSupported.
func (k *kubeTarget) lookUpClass(ctx context.Context) error {
	st := &k.storage
	if st.asked {
		return st.err
	}
	w := k.options.Volume
	st.reuse = w.Use == manifest.Reuse
	unseen, err := access.Lacks(ctx, k.cluster, "", access.SeeVolumes)
	if err != nil {
		return err
	}
	if len(unseen) > 0 {
		missing, err := k.lacking(ctx, target.Storage)
		if err != nil {
			return err
		}
		st.asked, st.err = true, result.NotSupported(access.LackText(missing)+
			"; without those on persistentvolumes a claim could be bound to a volume with data, which would be overwritten")
		return st.err
	}
	found, err := k.cluster.StorageV1().StorageClasses().List(ctx, metav1.ListOptions{})
	if apierrors.IsForbidden(err) { // the claim will tell
		st.asked = true
		return nil
	}
	if err != nil {
		return diagnosis.Explain(err, "")
	}
	st.asked = true
	if st.class, err = classOf(found.Items, w.Class); err != nil {
		st.err = result.NotSupported(err.Error())
		return st.err
	}
	if st.class.Provisioner == noProvisioner {
		st.err = result.NotSupported(fmt.Sprintf("the class %s has no provisioner: its volumes were made by somebody, and Knotmeter writes over none that it did not make; name another class with storage-class=", st.class.Name))
	}
	st.reuse = st.reuse || w.Use == manifest.ByClass && retains(st.class)
	return st.err
}

// className is the class that claims name; "" where only the cluster knows its default.
func (k *kubeTarget) className() string {
	if k.storage.class != nil {
		return k.storage.class.Name
	}
	return k.options.Volume.Class
}

// equip gives a site of storage its volume, which is not made yet.
func (k *kubeTarget) equip(ctx context.Context, s *site) error {
	if s.plan.Path != target.Storage {
		return nil
	}
	if err := k.lookUpClass(ctx); err != nil {
		return err
	}
	if !k.storage.claim {
		all, err := k.cluster.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return diagnosis.Explain(err, "")
		}
		if names := alreadyThere(k.options.Volume, all.Items, k.className()); len(names) > 0 {
			class := inspection.Known(k.className(), k.className() != "")
			return result.NotSupported(fmt.Sprintf("the class %s has volumes that are available (%s): a claim would be "+
				"bound to one of them instead of a new one, and what is on it would be lost; ask for a larger size= than theirs, or name "+
				"another storage-class=", class, inspection.List(names)))
		}
	}
	s.plan.Reuse = k.storage.reuse
	k.storage.claim = k.storage.claim || k.storage.reuse
	k.storage.made = true
	s.volume = &volume{class: k.storage.class, asked: k.options.Volume, keep: k.storage.reuse, used: k.storage.size > 0}
	s.volume.asked.Class = k.className()
	return nil
}

// offersVolume says what is known to stand in the way of volumes before one is made. Where the cluster can not be asked, Open
// will tell.
func (k *kubeTarget) offersVolume(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, surveyTime)
	defer cancel()
	if err := k.lookUpClass(ctx); errors.Is(err, result.ErrNotSupported) {
		return err
	}
	return nil
}

// openVolume makes a place with a volume.
func (k *kubeTarget) openVolume(ctx context.Context, p target.Placement) (target.Site, error) {
	s, err := k.open(ctx, p)
	if err != nil {
		return target.Site{}, k.judge(ctx, err)
	}
	v := host.Volume{Path: s.plan.Settings.Volume.Path(), Device: s.volume.found.Device, Size: usable(s.volume.found)}
	if s.volume.keep {
		// What is free later is what the files of earlier runs leave.
		if k.storage.size == 0 {
			k.storage.size = v.Size
		}
		v.Size, v.Kept = k.storage.size, string(s.volume.claim.UID)
	}
	return target.Site{
		Pair:  host.Pair{Client: s.host(manifest.Client), Shared: true, Volume: v},
		Facts: s.facts(), Spent: s.spent, Warnings: append(s.volume.warnings(), inspection.SidecarWarnings(s.pods)...),
		Health: func(ctx context.Context) []string { return append(s.volumeHealth(ctx), s.health(ctx)...) },
		Close: func(ctx context.Context) error {
			err := s.remove(ctx)
			k.unclean = k.unclean || err != nil
			return err
		},
	}, nil
}

// usable is how much a run may write: all of a device, and of a file system what leaves it some room.
func usable(v preflight.Volume) int64 {
	if v.Device {
		return v.Size
	}
	return v.Free / 10 * 9
}

// provision makes the claim of a site, waits until it is bound, and verifies to what: all before a pod could mount it.
func (s *site) provision(ctx context.Context) error {
	if s.volume == nil {
		return nil
	}
	whole, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
	defer cancel()
	if err := s.makeClaim(whole); err != nil {
		return err
	}
	if err := s.awaitBinding(ctx); err != nil {
		return diagnosis.Explain(err, s.plan.Namespace)
	}
	return s.verifyBinding(ctx)
}

// makeClaim makes the claim of a site, or finds that of all runs.
func (s *site) makeClaim(ctx context.Context) error {
	s.volume.made = true
	claim := s.plan.Claim(s.volume.asked.Class, waits(s.volume.class))
	_, err := s.cluster.CoreV1().PersistentVolumeClaims(s.plan.Namespace).Create(ctx, claim, metav1.CreateOptions{})
	if s.volume.keep && apierrors.IsAlreadyExists(err) {
		return nil
	}
	var status *apierrors.StatusError
	if errors.As(err, &status) && strings.Contains(status.ErrStatus.Message, "per PersistentVolumeClaim") {
		return fmt.Errorf("a LimitRange of the namespace %s refuses the volume; ask for another size=: %w", s.plan.Namespace, err)
	}
	if apierrors.IsForbidden(err) && strings.Contains(err.Error(), "exceeded quota") {
		return fmt.Errorf("%w; or ask for a smaller volume with size=", diagnosis.Explain(err, s.plan.Namespace))
	}
	return diagnosis.Explain(err, s.plan.Namespace)
}

// awaitBinding waits until the claim is bound; or says what keeps it from that.
func (s *site) awaitBinding(ctx context.Context) error {
	w := diagnosis.NewVolumeWait(s.volume.asked.Access, s.volume.asked.Size, time.Now())
	var events []corev1.Event
	claims := s.cluster.CoreV1().PersistentVolumeClaims(s.plan.Namespace)
	claim, err := watching.Bound(ctx, claims, s.plan.ClaimName(), func(claim *corev1.PersistentVolumeClaim) error {
		events = s.latest(ctx, w, false, events)
		if in := w.Blocked(time.Now(), claim, nil, events); in != nil {
			return diagnosis.Cannot(in)
		}
		return nil
	})
	s.volume.claim = claim
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("%w (%s)", err, diagnosis.ClaimState(claim, events))
	}
	return err
}

// latest are the events about the volume, asked anew when that is due.
func (s *site) latest(ctx context.Context, w *diagnosis.VolumeWait, trouble bool, known []corev1.Event) []corev1.Event {
	if w.Due(time.Now(), trouble) {
		if found, err := s.volumeEvents(ctx); err == nil {
			return found
		}
	}
	return known
}

// awaitVolume waits until the pod that has the volume runs; or says what keeps it from that.
func (s *site) awaitVolume(ctx context.Context) (map[string]*corev1.Pod, error) {
	began := time.Now()
	w := diagnosis.NewVolumeWait(s.volume.asked.Access, s.volume.asked.Size, began)
	var events []corev1.Event
	r := diagnosis.NewReadiness(1, began, func() ([]corev1.Event, error) {
		found, err := s.volumeEvents(ctx)
		return slices.DeleteFunc(found, func(e corev1.Event) bool { return diagnosis.Mounting(e.Reason) || e.Reason == "FailedScheduling" }), err
	})
	return s.watch.Running(ctx, r, func(pods map[string]*corev1.Pod) error {
		pod := pods[s.plan.Name(manifest.Client)]
		if pod == nil || !inspection.Runs(pod) {
			events = s.latest(ctx, w, pod != nil && diagnosis.NotScheduled(pod) != "", events)
		}
		if in := w.Blocked(time.Now(), s.volume.claim, pod, events); in != nil {
			return diagnosis.Cannot(in)
		}
		return nil
	})
}

// volumeEvents are those of the namespace's claims and pods.
func (s *site) volumeEvents(ctx context.Context) ([]corev1.Event, error) {
	found, err := s.cluster.CoreV1().Events(s.plan.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(found.Items, func(e corev1.Event) bool {
		return e.InvolvedObject.Kind != "Pod" && e.InvolvedObject.Kind != "PersistentVolumeClaim"
	}), nil
}

// checkVolume holds the volume to what was asked for by what the pod sees of it.
func (s *site) checkVolume() error {
	v := s.volume
	if s.client.Volume == nil || s.client.Volume.Error == "" && s.client.Volume.Content == nil {
		return fmt.Errorf("the agent of the image %s does not know of volumes: make the image with this version of Knotmeter", s.plan.Settings.Image)
	}
	v.found = *s.client.Volume
	switch {
	case v.found.Error != "" && v.asked.Block && strings.Contains(v.found.Error, "may not be opened"):
		return result.NotSupported(fmt.Sprintf("on node %s %s; container runtimes give devices to the user of a pod where device_ownership_from_security_context is set (containerd, CRI-O): have it set, or ask for volume-mode=filesystem",
			s.plan.Node(manifest.Client), v.found.Error))
	case v.found.Error != "":
		return result.NotSupported(fmt.Sprintf("on node %s %s; see to the class's mountOptions and fsType, or name another storage-class=", s.plan.Node(manifest.Client), v.found.Error))
	case v.found.Device != v.asked.Block:
		return fmt.Errorf("the pod %s has not the mode of volume that was asked for; something in the cluster changes pods", s.plan.Name(manifest.Client))
	case len(v.found.Content) > 0 && !v.used:
		return result.NotSupported(fmt.Sprintf("the volume %s is not empty, and nothing was written to it: it has %s; "+
			"have the provisioner make empty volumes, or name another storage-class=",
			v.claim.Spec.VolumeName, diagnosis.Shorten(inspection.List(v.found.Content))))
	case usable(v.found) < 1<<20 && !v.keep:
		return result.NotSupported(fmt.Sprintf("the volume %s has no space: %d bytes are free; ask for more with size=", v.claim.Spec.VolumeName, v.found.Free))
	}
	return nil
}

// volumeHealth is what became of the volume since it was made that makes a run on it count for nothing.
func (s *site) volumeHealth(ctx context.Context) []string {
	v := s.volume
	var list []string
	claim, err := s.cluster.CoreV1().PersistentVolumeClaims(s.plan.Namespace).Get(ctx, v.claim.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err), err == nil && claim.UID != v.claim.UID:
		list = append(list, fmt.Sprintf("the claim %s was removed by something else than Knotmeter", v.claim.Name))
	case err == nil:
		list = append(list, diagnosis.ClaimAilments(v.claim, claim)...)
	}
	pv, err := s.cluster.CoreV1().PersistentVolumes().Get(ctx, v.pv.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err), err == nil && pv.UID != v.pv.UID:
		list = append(list, fmt.Sprintf("the volume %s was removed by something else than Knotmeter", v.pv.Name))
	case err == nil:
		list = append(list, diagnosis.VolumeAilments(v.pv, pv)...)
	}
	return list
}

// removeVolume removes the claim of a site, and returns when its volume is gone, unless the class or the options keep it.
func (s *site) removeVolume(ctx context.Context) error {
	v := s.volume
	if v == nil || !v.made || v.keep {
		return nil
	}
	return removeClaim(ctx, s.cluster, s.plan.Namespace, s.plan.ClaimName())
}

// removeClaim removes a claim, and returns when it and its volume are gone; a volume that its class keeps stays.
func removeClaim(ctx context.Context, api kubernetes.Interface, namespace, name string) error {
	claims := api.CoreV1().PersistentVolumeClaims(namespace)
	claim, err := claims.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return diagnosis.Explain(diagnosis.IgnoreGone(err), namespace)
	}
	if err := deleteClaim(ctx, api, namespace, name); err != nil {
		return err
	}
	if err := watching.Gone(ctx, watching.Named(name), claims.List, claims.Watch); err != nil {
		return fmt.Errorf("the claim %s in the namespace %s is not gone: %w", name, namespace, diagnosis.Explain(err, namespace))
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
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || err == nil && v.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain {
		return nil
	}
	if err == nil {
		err = watching.Gone(ctx, watching.Named(name), volumes.List, volumes.Watch)
	}
	if apierrors.IsForbidden(err) {
		return nil
	}
	if err != nil {
		said := ""
		if v, cannot := volumes.Get(context.WithoutCancel(ctx), name, metav1.GetOptions{}); cannot == nil && v.Status.Message != "" {
			said = " (" + diagnosis.Shorten(v.Status.Message) + ")"
		}
		return fmt.Errorf("the volume %s is not gone yet%s, which its provisioner should remove: %w", name, said, diagnosis.Explain(err, ""))
	}
	return nil
}

// leaveVolume removes the volume that was for all runs.
func (k *kubeTarget) leaveVolume(ctx context.Context) error {
	if !k.storage.claim || k.namespace == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, cleanTime)
	defer cancel()
	plan := manifest.Blueprint{Experiment: k.experiment, Reuse: true}
	return removeClaim(ctx, k.cluster, k.namespace, plan.ClaimName())
}

// warnings are what a reader of a run should know of its volume.
func (v *volume) warnings() []string {
	if text := v.kept(); text != "" {
		return []string{text}
	}
	return nil
}

// kept says which volume stays when its claim is gone; empty if none does.
func (v *volume) kept() string {
	if v.pv.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain {
		return ""
	}
	return retained(v.pv)
}

// retained names a volume of ours that stays, and what removes it.
func retained(pv *corev1.PersistentVolume) string {
	return fmt.Sprintf("the volume %s is kept by its reclaim policy, Retain, when Knotmeter's claim is gone: 'kubectl delete pv %s' removes it, and %s stays until it is removed there", pv.Name, pv.Name, atProvider(pv))
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

// path is where the volume is in the pod; empty without one.
func (v *volume) path() string {
	if v == nil {
		return ""
	}
	return v.asked.Path()
}

// facts are those of a run's volume; none without one.
func (v *volume) facts() []result.Fact {
	if v == nil {
		return nil
	}
	got, asked := v.claim.Status.Capacity[corev1.ResourceStorage], v.asked.Size
	facts := []result.Fact{
		{Name: "volume", Value: v.claim.Spec.VolumeName}, {Name: "volume-class", Value: inspection.Known(deref(v.claim.Spec.StorageClassName), v.claim.Spec.StorageClassName != nil)},
		{Name: "access-mode", Value: string(v.asked.Access)}, {Name: "volume-mode", Value: string(v.asked.Mode())},
		{Name: "size-asked", Value: asked.String()}, {Name: "size-got", Value: got.String()},
		{Name: "volume-use", Value: map[bool]string{false: "a new one for this run", true: "one for all runs"}[v.keep]},
		{Name: "volume-topology", Value: inspection.Topology(v.pv)},
		{Name: "volume-usable", Value: strconv.FormatInt(usable(v.found), 10) + " B"},
		{Name: "volume-reclaim", Value: string(v.pv.Spec.PersistentVolumeReclaimPolicy)},
	}
	if text := v.kept(); text != "" {
		facts = append(facts, result.Fact{Name: "volume-retained", Value: text})
	}
	if v.class != nil {
		if l, ok := volumelimit.Of(v.class.Provisioner, v.class.Parameters, got.Value()); ok {
			facts = append(facts, l.Facts()...)
		}
	}
	return append(facts, v.found.Facts...)
}
