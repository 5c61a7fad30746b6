package kube

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/knotmeter/knotmeter/internal/host/remote"
	"github.com/knotmeter/knotmeter/internal/result"
)

// A problem is what keeps a pod from running.
type problem struct {
	cause, remedy string
	final         bool          // waiting cannot help
	patient       time.Duration // that it may last, where that is longer than other trouble may
}

func (p *problem) Error() string {
	if p.remedy == "" {
		return p.cause
	}
	return p.cause + "; " + p.remedy
}

// diagnose says what keeps a pod from running, by its status; nil while it makes progress or runs.
func diagnose(p *corev1.Pod) *problem {
	if p.DeletionTimestamp != nil || p.Status.Phase == corev1.PodFailed || p.Status.Phase == corev1.PodSucceeded {
		return ended(p)
	}
	if ownContainer(p).Name == "" {
		cause := fmt.Sprintf("pod %s has no container %s; something in the cluster changes pods", p.Name, containerName)
		return &problem{cause: cause, final: true}
	}
	if found := held(p); found != nil {
		return found
	}
	if s := ownStatus(p); s != nil && s.State.Waiting != nil {
		return waiting(p, s.State.Waiting)
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
			return &problem{cause: fmt.Sprintf("pod %s can not be scheduled: %s", p.Name, strings.TrimSuffix(c.Message, ".")), remedy: schedulingRemedy(c.Message)}
		}
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonSchedulingGated {
			return &problem{cause: fmt.Sprintf("pod %s is held back by a scheduling gate that something in the cluster put on it", p.Name), final: true}
		}
	}
	return nil
}

func schedulingRemedy(message string) string {
	switch {
	case strings.Contains(message, "Insufficient"):
		return "make room on the node, name others with client-node= and server-node=, or ask for less in config="
	case strings.Contains(message, "taint"):
		return "tolerate the taint in config=, or name other nodes with client-node= and server-node="
	case strings.Contains(message, "free ports"):
		return "something on the node has the port: choose another with port="
	}
	return "name other nodes with client-node= and server-node="
}

// ended is why a pod that should wait does not.
func ended(p *corev1.Pod) *problem {
	cause := fmt.Sprintf("pod %s ended", p.Name)
	if p.DeletionTimestamp != nil {
		cause = fmt.Sprintf("pod %s is being removed by something else than Knotmeter", p.Name)
	}
	if p.Status.Reason != "" || p.Status.Message != "" {
		cause += ": " + strings.TrimSpace(p.Status.Reason+" "+p.Status.Message)
	}
	for _, s := range p.Status.ContainerStatuses {
		if t := s.State.Terminated; t != nil {
			if s.Name == containerName && (t.Reason == "StartError" || t.Reason == "ContainerCannotRun") {
				return notStarted(p, t.Reason, t.Message)
			}
			what := "the agent"
			if s.Name != containerName {
				what = "the container " + s.Name
			}
			cause += fmt.Sprintf(": %s ended with status %d (%s) %s", what, t.ExitCode, t.Reason, strings.TrimSpace(t.Message))
		}
	}
	pr := &problem{cause: strings.TrimSpace(cause), final: true}
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

// waiting is why a container does not run.
func waiting(p *corev1.Pod, w *corev1.ContainerStateWaiting) *problem {
	image := ownContainer(p).Image
	said := ""
	if w.Message != "" {
		said = ": " + shorten(w.Message)
	}
	pull := "make it with 'knotmeter image build', bring it to the nodes or 'knotmeter image push' it to a registry that they reach, and name it with image="
	switch w.Reason {
	case "ContainerCreating", "PodInitializing":
		return nil
	case "ErrImageNeverPull", "ImagePullBackOff", "InvalidImageName", "ErrImagePull", "ImageInspectError", "RegistryUnavailable", "SignatureValidationFailed":
		return &problem{cause: fmt.Sprintf("node %s can not get the image %s (%s%s)", p.Spec.NodeName, image, w.Reason, said), remedy: pull,
			final: w.Reason == "ErrImageNeverPull" || w.Reason == "ImagePullBackOff" || w.Reason == "InvalidImageName"}
	case "RunContainerError", "CrashLoopBackOff", "StartError":
		pr := notStarted(p, w.Reason, w.Message)
		pr.final = false
		return pr
	}
	return &problem{cause: fmt.Sprintf("pod %s waits on node %s: %s%s", p.Name, p.Spec.NodeName, w.Reason, said)}
}

// notStarted is why the first process of a container is none.
func notStarted(p *corev1.Pod, reason, message string) *problem {
	c := ownContainer(p)
	pr := &problem{
		cause:  fmt.Sprintf("the agent does not start on node %s (%s)", p.Spec.NodeName, strings.TrimSuffix(reason+": "+shorten(message), ": ")),
		remedy: fmt.Sprintf("the image %s must have %s for the node's architecture, as 'knotmeter image build --arch' makes it, or any other image a shell, with inject=yes", c.Image, remote.AgentPath),
		final:  true,
	}
	switch {
	case strings.Contains(message, "exec format error"):
		pr.remedy = fmt.Sprintf("the image %s is for another architecture than the node's; make it for both with 'knotmeter image push --arch amd64,arm64', or name nodes of one architecture with node-selector=kubernetes.io/arch%%3D…", c.Image)
	case c.Stdin:
		pr.remedy = fmt.Sprintf("the image %s has no sh that could be started; inject=yes needs %s", c.Image, needs)
	}
	return pr
}

func shorten(text string) string {
	const most = 300
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > most {
		return text[:most] + "…"
	}
	return text
}

// fromEvents is what the last warning about a pod says; nil without one.
func fromEvents(p *corev1.Pod, events []corev1.Event) *problem {
	slices.SortFunc(events, func(a, b corev1.Event) int { return eventTime(a).Compare(eventTime(b)) })
	for _, e := range slices.Backward(events) {
		if e.Type == corev1.EventTypeWarning && e.InvolvedObject.UID == p.UID {
			pr := &problem{cause: fmt.Sprintf("pod %s does not start on node %s: %s: %s", p.Name, p.Spec.NodeName, e.Reason, shorten(e.Message))}
			pr.remedy = eventRemedy(e)
			return pr
		}
	}
	return nil
}

// eventRemedy says what to do about what an event tells.
func eventRemedy(e corev1.Event) string {
	switch {
	case strings.Contains(e.Message, "network-attachment-definition"), strings.Contains(e.Message, "NetworkAttachmentDefinition"):
		return "make the NetworkAttachmentDefinition, or name another with network=NAMESPACE/NAME"
	case e.Reason == "FailedCreatePodSandBox" && strings.Contains(e.Message, "no runtime for"), e.Reason == "FailedCreatePodSandBox" && strings.Contains(e.Message, "RuntimeHandler"):
		return "the node's container runtime does not have what the RuntimeClass names: name nodes that do with node-selector=, or another runtime-class="
	case e.Reason == "FailedCreatePodSandBox":
		return "the node's network plugin or container runtime refuses it: look there, or name other nodes with client-node= and server-node="
	case e.Reason == "FailedMount":
		return "the node can not make the pod's volumes: look there, or name other nodes with client-node= and server-node="
	}
	return ""
}

// missingSecret is about an image that could not be got for want of a pull secret; nil if no event says that.
func missingSecret(p *corev1.Pod, events []corev1.Event) *problem {
	for _, e := range events {
		if e.Reason != "FailedToRetrieveImagePullSecret" || e.InvolvedObject.UID != p.UID {
			continue
		}
		return &problem{final: true,
			cause: fmt.Sprintf("node %s cannot get the image %s: the namespace %s lacks an image pull secret: %s",
				p.Spec.NodeName, ownContainer(p).Image, p.Namespace, shorten(e.Message)),
			remedy: "make the secret in a namespace of yours, and give that with namespace=, or name another one under imagePullSecrets in config="}
	}
	return nil
}

func eventTime(e corev1.Event) time.Time {
	switch {
	case !e.LastTimestamp.IsZero():
		return e.LastTimestamp.Time
	case !e.EventTime.IsZero():
		return e.EventTime.Time
	}
	return e.CreationTimestamp.Time
}

// explain turns an error of the API server into one for people.
func explain(err error, namespace string) error {
	var status *apierrors.StatusError
	var dial *net.OpError
	var away *url.Error
	switch text := ""; {
	case err == nil, errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("the API server does not know who asks; renew the credentials of the kubeconfig: %w", err)
	case errors.As(err, &status):
		text = status.ErrStatus.Message
		return &refusal{refused(text, namespace), err}
	case errors.As(err, &dial), errors.As(err, &away):
		return fmt.Errorf("the API server can not be reached: %w", err)
	}
	return err
}

// A refusal is an error of the API server in words for people.
type refusal struct {
	text string
	err  error
}

func (r *refusal) Error() string { return r.text }
func (r *refusal) Unwrap() error { return r.err }

// forbidden matches the API server's text about rights.
func forbidden() *regexp.Regexp {
	return regexp.MustCompile(`User "([^"]*)" cannot (\S+) resource "([^"]*)" in API group "([^"]*)"(?: in the namespace "([^"]*)"| at the cluster scope)?`)
}

func refused(text, namespace string) string {
	if m := forbidden().FindStringSubmatch(text); m != nil {
		where := "in the whole cluster"
		if m[5] != "" {
			where = "in the namespace " + m[5]
		}
		return fmt.Sprintf("the user %s may not %s %s %s; 'knotmeter doctor --target … --rbac' prints what is needed", m[1], m[2], m[3], where)
	}
	switch {
	case strings.Contains(text, "violates PodSecurity"):
		return fmt.Sprintf("the namespace %s refuses the pod: %s; allow it what it asks for, or leave namespace= out for one that does", namespace, shorten(text))
	case strings.Contains(text, "exceeded quota"):
		return fmt.Sprintf("a quota of the namespace %s is used up: %s; raise it, or give another namespace=", namespace, shorten(text))
	case strings.Contains(text, "failed quota"):
		return fmt.Sprintf("a quota of the namespace %s wants more said about resources: %s; say it in config=", namespace, shorten(text))
	case strings.Contains(text, "per Container") || strings.Contains(text, "per Pod"):
		return fmt.Sprintf("a LimitRange of the namespace %s refuses the pod: %s; ask for other resources in config=", namespace, shorten(text))
	case strings.Contains(text, "being terminated"):
		return fmt.Sprintf("the namespace %s is being removed: %s; wait until it is gone and make it again, or give another namespace=", namespace, shorten(text))
	case strings.Contains(text, "RuntimeClass") && strings.Contains(text, "not found"):
		return fmt.Sprintf("the cluster has not the RuntimeClass: %s; 'kubectl get runtimeclasses' lists those for runtime-class=", shorten(firstCause(text)))
	case strings.HasPrefix(text, `namespaces "`) && strings.HasSuffix(text, "not found"):
		return fmt.Sprintf("there is no namespace %s; make it, or leave namespace= out for one that is made and removed", namespace)
	}
	return "the API server refuses: " + shorten(text)
}

// noHostNetwork is the reason of node paths that a cluster refuses; nil if err is about something else.
func noHostNetwork(err error, namespace string) error {
	if !apierrors.IsForbidden(err) {
		return nil
	}
	text := err.Error()
	if !strings.Contains(text, "hostNetwork") && !strings.Contains(text, "host namespaces") && !strings.Contains(text, "host network") {
		return nil
	}
	return result.NotSupported(fmt.Sprintf(
		"node paths need pods in the network of their node, which the namespace %s refuses (%s); without namespace= one is made that allows them", namespace, shorten(firstCause(text))))
}

// firstCause is the text of an API server's error from the admission's own words on.
func firstCause(text string) string {
	if _, after, ok := strings.Cut(text, "is forbidden: "); ok {
		return after
	}
	return text
}
