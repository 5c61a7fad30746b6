package diagnosis

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets/kube/manifest"
)

// How long a claim or its pod may be without a sign of anybody who makes the volume, and in trouble with a node that
// attaches and mounts, which tries again on its own.
const (
	unanswered   = 15 * time.Second
	mountingFor  = 15 * time.Second
	attachingFor = 60 * time.Second
	// Events are asked for from the first on, and then each time the second has passed.
	askFrom  = 2 * time.Second
	askEvery = 2 * time.Second
)

// A VolumeWait is what is known of a claim and its pod while the volume is made.
type VolumeWait struct {
	asked manifest.Volume
	began time.Time
	since time.Time // of trouble
	shown time.Time // when events were asked
}

// NewVolumeWait begins to wait for a volume that is asked for.
func NewVolumeWait(asked manifest.Volume, now time.Time) *VolumeWait {
	return &VolumeWait{asked: asked, began: now}
}

// about are the events that are about the claim, and those about the pod, oldest first.
func about(
	events []corev1.Event, claim *corev1.PersistentVolumeClaim, pod *corev1.Pod,
) (ofClaim, ofPod []corev1.Event) {
	slices.SortStableFunc(events, func(a, b corev1.Event) int { return eventTime(a).Compare(eventTime(b)) })
	for _, e := range events {
		switch {
		case claim != nil && e.InvolvedObject.UID == claim.UID:
			ofClaim = append(ofClaim, e)
		case pod != nil && e.InvolvedObject.UID == pod.UID:
			ofPod = append(ofPod, e)
		}
	}
	return ofClaim, ofPod
}

// Due says whether events should be asked now: while something is in the way, and not more often than each second.
func (w *VolumeWait) Due(now time.Time, trouble bool) bool {
	if now.Sub(w.shown) < askEvery || !trouble && now.Sub(w.began) < askFrom {
		return false
	}
	w.shown = now
	return true
}

// Blocked is what keeps a volume from being there, by what the claim and the pod say and by their events; nil while
// there may be progress. What may pass is given some time.
func (w *VolumeWait) Blocked(
	now time.Time, claim *corev1.PersistentVolumeClaim, pod *corev1.Pod, events []corev1.Event,
) *Problem {
	if claim != nil && claim.Status.Phase == corev1.ClaimLost {
		return &Problem{final: true, cause: fmt.Sprintf("the claim %s has lost its volume %s", claim.Name,
			claim.Spec.VolumeName)}
	}
	ofClaim, ofPod := about(events, claim, pod)
	bound := claim != nil && claim.Status.Phase == corev1.ClaimBound
	var found *Problem
	patient := trouble
	switch failed := lastWarning(ofClaim); {
	case !bound && failed != nil:
		found = w.unmade(claim, failed)
	case bound && pod != nil && NotScheduled(pod) != "":
		message := NotScheduled(pod)
		found = &Problem{cause: fmt.Sprintf("pod %s cannot be scheduled to its volume: %s", pod.Name,
			strings.TrimSuffix(message, ".")), remedy: hinted(message, volumeSchedulingHints, otherNodes).remedy}
	case bound && pod != nil:
		if failed := lastWarning(ofPod); failed != nil && Mounting(failed.Reason) {
			found, patient = w.unmounted(pod, failed), mountingFor
			if failed.Reason == "FailedAttachVolume" {
				patient = attachingFor // the node before may still have it
			}
		}
	}
	if found == nil && !bound && w.nobody(now, ofClaim) {
		return w.unansweredBy(claim, ofClaim)
	}
	if found == nil {
		w.since = time.Time{}
		return nil
	}
	if w.since.IsZero() {
		w.since = now
	}
	if found.final || now.Sub(w.since) >= patient {
		return found
	}
	return nil
}

func lastWarning(events []corev1.Event) *corev1.Event {
	for i := range slices.Backward(events) {
		if events[i].Type == corev1.EventTypeWarning {
			return &events[i]
		}
	}
	return nil
}

// NotScheduled is what the scheduler says of a pod that it has no place for.
func NotScheduled(p *corev1.Pod) string {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
			return c.Message
		}
	}
	return ""
}

// nobody says whether a claim has waited for long, and nobody has said that he makes its volume: what Kubernetes itself
// says is only whom it waits for.
func (w *VolumeWait) nobody(now time.Time, events []corev1.Event) bool {
	if now.Sub(w.began) < unanswered {
		return false
	}
	waits := false
	for _, e := range events {
		switch e.Reason {
		case "ExternalProvisioning", "WaitForFirstConsumer":
			waits = true
		case "WaitForPodScheduled", "FailedBinding":
		default:
			return false
		}
	}
	return waits
}

func (w *VolumeWait) unansweredBy(claim *corev1.PersistentVolumeClaim, events []corev1.Event) *Problem {
	said := events[len(events)-1]
	return &Problem{final: true,
		cause: fmt.Sprintf("no provisioner makes the volume of the claim %s: %s: %s", claim.Name, said.Reason,
			Shorten(said.Message)),
		remedy: "see whether the provisioner of the class runs ('kubectl get pods -A' and its logs), or name another " +
			w.asked.ClassOption()}
}

// unmade is about a volume that a provisioner could not make, in its own words.
func (w *VolumeWait) unmade(claim *corev1.PersistentVolumeClaim, e *corev1.Event) *Problem {
	look := "look into the log of the class's provisioner, or name another " + w.asked.ClassOption()
	h := hinted(e.Message, provisioningHints, look)
	return &Problem{remedy: w.inWords(h.remedy), final: h.final,
		cause: fmt.Sprintf("the volume of the claim %s is not made: %s: %s", claim.Name, e.Reason, Shorten(e.Message))}
}

// inWords is a remedy with what is asked for.
func (w *VolumeWait) inWords(remedy string) string {
	return strings.NewReplacer("{access}", string(w.asked.Access), "{size}", w.asked.Size.String(),
		"{class}", w.asked.ClassOption()).Replace(remedy)
}

// Mounting says whether an event is about a volume on its way into a pod.
func Mounting(reason string) bool {
	return slices.Contains([]string{"FailedMount", "FailedAttachVolume", "FailedMapVolume", "VolumeResizeFailed",
		"FailedMountOnFilesystemMismatch"}, reason)
}

// unmounted is about a volume that does not come into its pod.
func (w *VolumeWait) unmounted(p *corev1.Pod, e *corev1.Event) *Problem {
	said := e.Message
	if _, why, ok := strings.Cut(said, ", error "); ok {
		said = why // before it are paths
	}
	look := "look into the log of the CSI driver on this node, or name another one with client-node="
	return &Problem{remedy: w.inWords(hinted(e.Message, mountHints, look).remedy),
		cause: fmt.Sprintf("the volume does not come into pod %s on node %s: %s: %s", p.Name, p.Spec.NodeName, e.Reason,
			Shorten(said))}
}

// ErrorOf is an error about what is asked of a cluster, and not about its state: another run would meet it too.
func ErrorOf(p *Problem) error {
	if p.final {
		return result.NotSupported(p.Error())
	}
	return p
}

// ClaimState is how far a claim is, with what was last said of it.
func ClaimState(c *corev1.PersistentVolumeClaim, events []corev1.Event) string {
	if c == nil {
		return "nothing was heard of the claim"
	}
	text := fmt.Sprintf("claim %s: %s", c.Name, c.Status.Phase)
	if of, _ := about(events, c, nil); len(of) > 0 {
		last := of[len(of)-1]
		text += fmt.Sprintf(": %s: %s", last.Reason, Shorten(last.Message))
	}
	return text
}

// ClaimDisruptions are what became of a claim: how it is now beside how it was when it was bound.
func ClaimDisruptions(before, now *corev1.PersistentVolumeClaim) []string {
	var list []string
	if now.DeletionTimestamp != nil {
		list = append(list, fmt.Sprintf("the claim %s is being removed by something else than Knotmeter", now.Name))
	}
	if now.Status.Phase == corev1.ClaimLost {
		list = append(list, fmt.Sprintf("the claim %s has lost its volume", now.Name))
	}
	was, is := before.Status.Capacity[corev1.ResourceStorage], now.Status.Capacity[corev1.ResourceStorage]
	wanted, wants := before.Spec.Resources.Requests[corev1.ResourceStorage],
		now.Spec.Resources.Requests[corev1.ResourceStorage]
	switch {
	case was.Cmp(is) != 0:
		list = append(list, fmt.Sprintf("the volume of the claim %s was resized from %s to %s", now.Name, was.String(),
			is.String()))
	case wanted.Cmp(wants) != 0:
		list = append(list, fmt.Sprintf("the volume of the claim %s is being resized from %s to %s", now.Name,
			wanted.String(), wants.String()))
	}
	return list
}

// VolumeDisruptions are the same of a volume.
func VolumeDisruptions(before, now *corev1.PersistentVolume) []string {
	var list []string
	if now.DeletionTimestamp != nil {
		list = append(list, fmt.Sprintf("the volume %s is being removed by something else than Knotmeter", now.Name))
	}
	if now.Status.Phase == corev1.VolumeReleased || now.Status.Phase == corev1.VolumeFailed {
		list = append(list, inWords(fmt.Sprintf("the volume %s is %s", now.Name, strings.ToLower(string(now.Status.Phase))),
			now.Status.Message))
	}
	was, is := before.Spec.Capacity[corev1.ResourceStorage], now.Spec.Capacity[corev1.ResourceStorage]
	if was.Cmp(is) != 0 {
		list = append(list, fmt.Sprintf("the volume %s was resized from %s to %s", now.Name, was.String(), is.String()))
	}
	return list
}
