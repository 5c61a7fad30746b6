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

const (
	provisionerGrace = 15 * time.Second // until a provisioner must have reported that it creates the volume
	mountGrace       = 15 * time.Second // for failed mounts, which the node retries
	attachGrace      = 60 * time.Second // for failed attachments, which are retried
	eventDelay       = 2 * time.Second  // until events are read even without a sign of a problem
	eventInterval    = 2 * time.Second  // between two reads of events
)

// A VolumeWait finds what keeps a claim from being bound and a pod from mounting its volume.
type VolumeWait struct {
	spec         manifest.Volume // what the options ask for
	began        time.Time
	problemSince time.Time // zero without a problem
	eventsRead   time.Time
}

// NewVolumeWait returns a VolumeWait that begins now. spec is what the options ask for.
func NewVolumeWait(spec manifest.Volume, now time.Time) *VolumeWait {
	return &VolumeWait{spec: spec, began: now}
}

// eventsAbout returns the events about the claim and those about the pod, oldest first. It sorts events in place.
func eventsAbout(
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

// Due reports whether events should be read now: at most once in eventInterval, and in the first eventDelay only if
// there is trouble, another sign of a problem. If so, it counts them as read.
func (w *VolumeWait) Due(now time.Time, trouble bool) bool {
	if now.Sub(w.eventsRead) < eventInterval || !trouble && now.Sub(w.began) < eventDelay {
		return false
	}
	w.eventsRead = now
	return true
}

// Problem returns the problem that keeps a volume from being bound or mounted, from its claim, pod and events; nil
// while there may be progress. It returns a temporary problem only after a grace time.
func (w *VolumeWait) Problem(
	now time.Time, claim *corev1.PersistentVolumeClaim, pod *corev1.Pod, events []corev1.Event,
) *Problem {
	if claim != nil && claim.Status.Phase == corev1.ClaimLost {
		return &Problem{final: true, cause: fmt.Sprintf("the claim %s has lost its volume %s", claim.Name,
			claim.Spec.VolumeName)}
	}
	ofClaim, ofPod := eventsAbout(events, claim, pod)
	bound := claim != nil && claim.Status.Phase == corev1.ClaimBound
	var found *Problem
	grace := problemGrace
	switch failed := lastWarning(ofClaim); {
	case !bound && failed != nil:
		found = w.notProvisioned(claim, failed)
	case bound && pod != nil && NotScheduled(pod) != "":
		message := NotScheduled(pod)
		found = &Problem{cause: fmt.Sprintf("pod %s cannot be scheduled to its volume: %s", pod.Name,
			strings.TrimSuffix(message, ".")), remedy: findHint(message, volumeSchedulingHints, otherNodes).remedy}
	case bound && pod != nil:
		if failed := lastWarning(ofPod); failed != nil && Mounting(failed.Reason) {
			found, grace = w.notMounted(pod, failed), mountGrace
			if failed.Reason == "FailedAttachVolume" {
				grace = attachGrace // it may still be attached to the previous node
			}
		}
	}
	if found == nil && !bound && w.unprovisioned(now, ofClaim) {
		return w.noProvisioner(claim, ofClaim)
	}
	if found == nil {
		w.problemSince = time.Time{}
		return nil
	}
	if w.problemSince.IsZero() {
		w.problemSince = now
	}
	if found.final || now.Sub(w.problemSince) >= grace {
		return found
	}
	return nil
}

// lastWarning returns the last warning of sorted events; nil without one.
func lastWarning(events []corev1.Event) *corev1.Event {
	for i := range slices.Backward(events) {
		if events[i].Type == corev1.EventTypeWarning {
			return &events[i]
		}
	}
	return nil
}

// NotScheduled returns the scheduler's message about a pod that fits no node; empty without one.
func NotScheduled(p *corev1.Pod) string {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
			return c.Message
		}
	}
	return ""
}

// unprovisioned reports whether a claim has waited for provisionerGrace without an event from a provisioner.
// Kubernetes' own events do not count, because they only name what the claim waits for.
func (w *VolumeWait) unprovisioned(now time.Time, events []corev1.Event) bool {
	if now.Sub(w.began) < provisionerGrace {
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

// noProvisioner returns the problem of a claim to which no provisioner responds.
func (w *VolumeWait) noProvisioner(claim *corev1.PersistentVolumeClaim, events []corev1.Event) *Problem {
	last := events[len(events)-1]
	return &Problem{final: true,
		cause: fmt.Sprintf("no provisioner makes the volume of the claim %s: %s: %s", claim.Name, last.Reason,
			Shorten(last.Message)),
		remedy: "see whether the provisioner of the class runs ('kubectl get pods -A' and its logs), or name another " +
			w.spec.ClassOption()}
}

// notProvisioned returns the problem of a volume that a provisioner could not create, with its message.
func (w *VolumeWait) notProvisioned(claim *corev1.PersistentVolumeClaim, e *corev1.Event) *Problem {
	otherwise := "look into the log of the class's provisioner, or name another " + w.spec.ClassOption()
	h := findHint(e.Message, provisioningHints, otherwise)
	return &Problem{remedy: w.fillIn(h.remedy), final: h.final,
		cause: fmt.Sprintf("the volume of the claim %s is not made: %s: %s", claim.Name, e.Reason, Shorten(e.Message))}
}

// fillIn replaces the placeholders of a remedy with the options about the volume.
func (w *VolumeWait) fillIn(remedy string) string {
	return strings.NewReplacer("{access}", string(w.spec.Access), "{size}", w.spec.Size.String(),
		"{class}", w.spec.ClassOption()).Replace(remedy)
}

// Mounting reports whether the reason of an event is about attaching or mounting a volume.
func Mounting(reason string) bool {
	return slices.Contains([]string{"FailedMount", "FailedAttachVolume", "FailedMapVolume", "VolumeResizeFailed",
		"FailedMountOnFilesystemMismatch"}, reason)
}

// notMounted returns the problem of a volume that cannot be attached or mounted.
func (w *VolumeWait) notMounted(p *corev1.Pod, e *corev1.Event) *Problem {
	message := e.Message
	if _, cause, ok := strings.Cut(message, ", error "); ok {
		message = cause // the text before it contains paths
	}
	otherwise := "look into the log of the CSI driver on this node, or name another one with client-node="
	return &Problem{remedy: w.fillIn(findHint(e.Message, mountHints, otherwise).remedy),
		cause: fmt.Sprintf("the volume does not come into pod %s on node %s: %s: %s", p.Name, p.Spec.NodeName, e.Reason,
			Shorten(message))}
}

// ErrorOf returns a problem as an error. The error Is result.ErrNotSupported if the problem is final, because later
// runs would have the same problem.
func ErrorOf(p *Problem) error {
	if p.final {
		return result.NotSupported(p.Error())
	}
	return p
}

// ClaimState describes the phase of a claim and its last event. c may be nil.
func ClaimState(c *corev1.PersistentVolumeClaim, events []corev1.Event) string {
	if c == nil {
		return "nothing was heard of the claim"
	}
	text := fmt.Sprintf("claim %s: %s", c.Name, c.Status.Phase)
	if ofClaim, _ := eventsAbout(events, c, nil); len(ofClaim) > 0 {
		last := ofClaim[len(ofClaim)-1]
		text += fmt.Sprintf(": %s: %s", last.Reason, Shorten(last.Message))
	}
	return text
}

// ClaimDisruptions returns what happened to a claim since it was bound.
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

// VolumeDisruptions returns what happened to a volume since its claim was bound.
func VolumeDisruptions(before, now *corev1.PersistentVolume) []string {
	var list []string
	if now.DeletionTimestamp != nil {
		list = append(list, fmt.Sprintf("the volume %s is being removed by something else than Knotmeter", now.Name))
	}
	if now.Status.Phase == corev1.VolumeReleased || now.Status.Phase == corev1.VolumeFailed {
		phase := strings.ToLower(string(now.Status.Phase))
		list = append(list, withMessage(fmt.Sprintf("the volume %s is %s", now.Name, phase), now.Status.Message))
	}
	was, is := before.Spec.Capacity[corev1.ResourceStorage], now.Spec.Capacity[corev1.ResourceStorage]
	if was.Cmp(is) != 0 {
		list = append(list, fmt.Sprintf("the volume %s was resized from %s to %s", now.Name, was.String(), is.String()))
	}
	return list
}
