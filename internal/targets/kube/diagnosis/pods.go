// Package diagnosis explains objects and errors of the API server in sentences with remedies: why a pod does not run or
// a volume is not mounted, what happened to them later, and why a request was refused. Its functions are pure.
package diagnosis

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/knotmeter/knotmeter/internal/host/remote"
	"github.com/knotmeter/knotmeter/internal/targets/kube/inspection"
	"github.com/knotmeter/knotmeter/internal/targets/kube/manifest"
)

// A Problem is the reason why a pod does not run or a volume cannot be used, with a remedy. It is an error.
type Problem struct {
	cause, remedy string
	final         bool          // waiting does not help
	grace         time.Duration // how long it may last, if longer than problemGrace
}

func (p *Problem) Error() string {
	if p.remedy == "" {
		return p.cause
	}
	return p.cause + "; " + p.remedy
}

// diagnose returns the problem in the status of a pod; nil while the pod makes progress or runs.
func diagnose(p *corev1.Pod) *Problem {
	if p.DeletionTimestamp != nil || p.Status.Phase == corev1.PodFailed || p.Status.Phase == corev1.PodSucceeded {
		return endedProblem(p)
	}
	if inspection.OwnContainer(p).Name == "" {
		cause := fmt.Sprintf("pod %s has no container %s; something in the cluster changes pods", p.Name,
			manifest.ContainerName)
		return &Problem{cause: cause, final: true}
	}
	if found := blockedByOthers(p); found != nil {
		return found
	}
	if s := inspection.OwnStatus(p); s != nil && s.State.Waiting != nil {
		return waitingProblem(p, s.State.Waiting)
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
			return &Problem{cause: fmt.Sprintf("pod %s cannot be scheduled: %s", p.Name, strings.TrimSuffix(c.Message, ".")),
				remedy: findHint(c.Message, schedulingHints, otherNodes).remedy}
		}
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonSchedulingGated {
			return &Problem{cause: fmt.Sprintf("pod %s is held back by a scheduling gate that something in the cluster put "+
				"on it", p.Name), final: true}
		}
	}
	return nil
}

// progress describes the state of a pod without a known problem.
func progress(p *corev1.Pod) string {
	phase, node := string(p.Status.Phase), p.Spec.NodeName
	s := inspection.OwnStatus(p)
	switch {
	case p.Status.Phase != corev1.PodPending:
		return phase
	case node == "":
		return phase + ", not yet scheduled; look at the scheduler"
	case s == nil || s.State.Waiting == nil:
		return fmt.Sprintf("%s, not yet reported by node %s; look at its kubelet", phase, node)
	}
	phase += ", " + s.State.Waiting.Reason
	for _, c := range p.Status.Conditions {
		switch {
		case c.Type != corev1.PodReadyToStartContainers:
		case c.Status == corev1.ConditionTrue:
			return fmt.Sprintf("%s: node %s pulls or starts the image %s", phase, node, inspection.OwnContainer(p).Image)
		default:
			return fmt.Sprintf("%s: node %s has not made the pod's sandbox, network and volumes", phase, node)
		}
	}
	return phase + " on node " + node
}

// endedProblem returns why a pod ended, or that it is being removed.
func endedProblem(p *corev1.Pod) *Problem {
	cause := fmt.Sprintf("pod %s ended", p.Name)
	if p.DeletionTimestamp != nil {
		cause = fmt.Sprintf("pod %s is being removed by something else than Knotmeter", p.Name)
	}
	if p.Status.Reason != "" || p.Status.Message != "" {
		cause += ": " + strings.TrimSpace(p.Status.Reason+" "+p.Status.Message)
	}
	for _, s := range p.Status.ContainerStatuses {
		if t := s.State.Terminated; t != nil {
			if s.Name == manifest.ContainerName && (t.Reason == "StartError" || t.Reason == "ContainerCannotRun") {
				return notStarted(p, t.Reason, t.Message)
			}
			what := "the agent"
			if s.Name != manifest.ContainerName {
				what = "the container " + s.Name
			}
			cause += fmt.Sprintf(": %s ended with status %d (%s) %s", what, t.ExitCode, t.Reason, strings.TrimSpace(t.Message))
		}
	}
	pr := &Problem{cause: strings.TrimSpace(cause), final: true}
	switch {
	case p.Status.Reason == "Evicted":
		pr.remedy = "the node is short of something; free it or name other nodes"
	case strings.HasPrefix(p.Status.Reason, "OutOf"):
		pr.remedy = "make room on the node, or ask for less in config="
	case p.Status.Reason == "NodePorts":
		pr.remedy = "something on the node has the port: choose another with port="
	}
	return pr
}

// imageReasons are the reasons of containers whose image is missing, and whether they are final.
var imageReasons = map[string]bool{
	"ErrImageNeverPull": true, "ImagePullBackOff": true, "InvalidImageName": true,
	"ErrImagePull": false, "ImageInspectError": false, "RegistryUnavailable": false, "SignatureValidationFailed": false,
}

// waitingProblem returns why the agent's container waits; nil while it is being created.
func waitingProblem(p *corev1.Pod, w *corev1.ContainerStateWaiting) *Problem {
	image := inspection.OwnContainer(p).Image
	said := ""
	if w.Message != "" {
		said = ": " + Shorten(w.Message)
	}
	pull := "make it with 'knotmeter image build', bring it to the nodes or 'knotmeter image push' it to a registry " +
		"that they reach, and name it with image="
	if final, is := imageReasons[w.Reason]; is {
		return &Problem{cause: fmt.Sprintf("node %s cannot get the image %s (%s%s)", p.Spec.NodeName, image, w.Reason,
			said), remedy: pull, final: final}
	}
	switch w.Reason {
	case "ContainerCreating", "PodInitializing":
		return nil
	case "RunContainerError", "CrashLoopBackOff", "StartError":
		pr := notStarted(p, w.Reason, w.Message)
		pr.final = false
		return pr
	}
	return &Problem{cause: fmt.Sprintf("pod %s waits on node %s: %s%s", p.Name, p.Spec.NodeName, w.Reason, said)}
}

// notStarted returns why the first process of the agent's container did not start.
func notStarted(p *corev1.Pod, reason, message string) *Problem {
	c := inspection.OwnContainer(p)
	pr := &Problem{
		cause: fmt.Sprintf("the agent does not start on node %s (%s)", p.Spec.NodeName,
			strings.TrimSuffix(reason+": "+Shorten(message), ": ")),
		remedy: fmt.Sprintf("the image %s must have %s for the node's architecture, as 'knotmeter image build --arch' "+
			"makes it, or any other image a shell, with inject=yes", c.Image, remote.AgentPath),
		final: true,
	}
	switch {
	case strings.Contains(message, "exec format error"):
		pr.remedy = fmt.Sprintf("the image %s is for another architecture than the node's; make it for both with "+
			"'knotmeter image push --arch amd64,arm64', or name nodes of one architecture with "+
			"node-selector=kubernetes.io/arch%%3D…", c.Image)
	case c.Stdin:
		pr.remedy = fmt.Sprintf("the image %s has no sh that could be started; inject=yes needs %s", c.Image,
			manifest.ShellNeeds)
	}
	return pr
}

// Shorten collapses white space and cuts a text after 300 bytes.
func Shorten(text string) string {
	const most = 300
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > most {
		return text[:most] + "…"
	}
	return text
}

// fromEvents returns the problem that the last warning about a pod reports; nil if there is no warning. It sorts events
// by time in place.
func fromEvents(p *corev1.Pod, events []corev1.Event) *Problem {
	slices.SortFunc(events, func(a, b corev1.Event) int { return eventTime(a).Compare(eventTime(b)) })
	for _, e := range slices.Backward(events) {
		if e.Type == corev1.EventTypeWarning && e.InvolvedObject.UID == p.UID && e.Reason != failedSecret {
			reason := strings.TrimPrefix(e.Message, "Error: ")
			if _, ofImage := imageReasons[reason]; ofImage {
				return waitingProblem(p, &corev1.ContainerStateWaiting{Reason: reason}) // a busy node's status is late
			}
			pr := &Problem{cause: fmt.Sprintf("pod %s does not start on node %s: %s: %s", p.Name, p.Spec.NodeName, e.Reason,
				Shorten(e.Message))}
			pr.remedy = eventRemedy(e)
			// The kubelet tries a failed sandbox again, which helps on a busy node.
			pr.final = e.Reason != failedSandbox || pr.remedy != refusedSandbox
			return pr
		}
	}
	return nil
}

const (
	failedSandbox  = "FailedCreatePodSandBox"
	failedSecret   = "FailedToRetrieveImagePullSecret" // a problem only if the image cannot be pulled without it
	refusedSandbox = "the node's network plugin or container runtime refuses it: look there, or name other nodes with " +
		"client-node= and server-node="
)

// eventRemedy returns what to do about an event; empty if unknown.
func eventRemedy(e corev1.Event) string {
	switch {
	case strings.Contains(e.Message, "network-attachment-definition"),
		strings.Contains(e.Message, "NetworkAttachmentDefinition"):
		return "make the NetworkAttachmentDefinition, or name another with network=NAMESPACE/NAME " +
			"or default-network=NAMESPACE/NAME"
	case e.Reason == failedSandbox && strings.Contains(e.Message, "no runtime for"),
		e.Reason == failedSandbox && strings.Contains(e.Message, "RuntimeHandler"):
		return "the node's container runtime does not have what the RuntimeClass names: name nodes that do with " +
			"node-selector=, or another runtime-class="
	case e.Reason == failedSandbox:
		return refusedSandbox
	case e.Reason == "FailedMount":
		return "the node cannot make the pod's volumes: look there, or name other nodes with client-node= and server-node="
	}
	return ""
}

// missingSecret returns the problem of an image that cannot be pulled without a missing pull secret; nil if no event
// says so.
func missingSecret(p *corev1.Pod, events []corev1.Event) *Problem {
	for _, e := range events {
		if e.Reason != failedSecret || e.InvolvedObject.UID != p.UID {
			continue
		}
		return &Problem{final: true,
			cause: fmt.Sprintf("node %s cannot get the image %s: the namespace %s lacks an image pull secret: %s",
				p.Spec.NodeName, inspection.OwnContainer(p).Image, p.Namespace, Shorten(e.Message)),
			remedy: "make the secret in a namespace of yours, and give that with namespace=, or name another one under " +
				"imagePullSecrets in config="}
	}
	return nil
}

// eventTime returns when an event last occurred.
func eventTime(e corev1.Event) time.Time {
	switch {
	case !e.LastTimestamp.IsZero():
		return e.LastTimestamp.Time
	case !e.EventTime.IsZero():
		return e.EventTime.Time
	}
	return e.CreationTimestamp.Time
}
