package kube

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/knotmeter/knotmeter/internal/result"
)

// Service meshes put proxies into pods, or before them, which would be measured too. Pods of ours ask each known mesh to
// leave them alone; what is in them all the same is told.

// meshLabels and meshAnnotations are what pods opt out with: of Istio's sidecars (older versions read the annotation) and
// its ambient mode, Linkerd, Consul, Kuma (likewise), Open Service Mesh and AWS App Mesh. Cilium's mesh adds nothing to pods.
func meshLabels() map[string]string {
	return map[string]string{
		"sidecar.istio.io/inject": "false", "istio.io/dataplane-mode": "none", "kuma.io/sidecar-injection": "disabled",
	}
}

func meshAnnotations() map[string]string {
	return map[string]string{
		"sidecar.istio.io/inject": "false", "linkerd.io/inject": "disabled", "consul.hashicorp.com/connect-inject": "false",
		"kuma.io/sidecar-injection": "disabled", "openservicemesh.io/sidecar-injection": "disabled",
		"appmesh.k8s.aws/sidecarInjectorWebhook": "disabled",
	}
}

// marks are the labels and annotations of a pod: those of its own over the user's, and these over those that keep meshes out.
func (o options) marks(own map[string]string) (labels, annotations map[string]string) {
	labels, annotations = meshLabels(), meshAnnotations()
	maps.Copy(labels, o.Pods.Labels)
	maps.Copy(labels, own)
	maps.Copy(annotations, o.Pods.Annotations)
	return labels, annotations
}

// ambient is the annotation of pods whose traffic Istio redirects on their node.
const ambient = "ambient.istio.io/redirection"

// added names what is in a pod, or before it, that Knotmeter did not put there.
func added(p *corev1.Pod) []string {
	if p == nil {
		return nil
	}
	var names []string
	for _, c := range p.Spec.Containers {
		if c.Name != containerName {
			names = append(names, c.Name)
		}
	}
	for _, c := range p.Spec.InitContainers {
		kind := " (init)"
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			kind = " (sidecar)"
		}
		names = append(names, c.Name+kind)
	}
	for _, c := range p.Spec.EphemeralContainers {
		names = append(names, c.Name+" (ephemeral)")
	}
	if p.Annotations[ambient] == "enabled" {
		names = append(names, "Istio's ambient mesh")
	}
	return names
}

// sidecars names what was added to which of a site's pods; empty if nothing was.
func sidecars(pods map[string]*corev1.Pod) string {
	var words []string
	for _, name := range slices.Sorted(maps.Keys(pods)) {
		if names := added(pods[name]); len(names) > 0 {
			words = append(words, fmt.Sprintf("%s: %s", pods[name].Labels[labelRole], strings.Join(names, ", ")))
		}
	}
	return strings.Join(words, "; ")
}

// sidecarFact says in a run's facts what was added to its pods, and sidecarWarnings what that means.
func sidecarFact(pods map[string]*corev1.Pod) result.Fact {
	text := sidecars(pods)
	if text == "" {
		text = "none"
	}
	return result.Fact{Name: "sidecars", Value: text}
}

func sidecarWarnings(pods map[string]*corev1.Pod) []string {
	text := sidecars(pods)
	if text == "" {
		return nil
	}
	return []string{"the pods have containers that are not Knotmeter's (" + text + "): what these do to traffic and CPUs was measured too"}
}

// ownContainer is the container of ours in a pod; one without a name if something took it out.
func ownContainer(p *corev1.Pod) (own corev1.Container) {
	for _, c := range p.Spec.Containers {
		if c.Name == containerName {
			return c
		}
	}
	return own
}

// ownStatus is what its node says of the container of ours; nil while it says nothing.
func ownStatus(p *corev1.Pod) *corev1.ContainerStatus {
	for i := range p.Status.ContainerStatuses {
		if p.Status.ContainerStatuses[i].Name == containerName {
			return &p.Status.ContainerStatuses[i]
		}
	}
	return nil
}

// initTime is how long a container that runs before ours may take.
const initTime = 20 * time.Second

// held is what of others keeps our container from running; nil if nothing does.
func held(p *corev1.Pod) *problem {
	for _, s := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		if s.Name == containerName {
			continue
		}
		how, patient := failing(s), time.Duration(0)
		if how == "" && s.State.Running != nil && runsOnce(p, s.Name) {
			how, patient = "has not ended", initTime
		}
		if how != "" {
			return &problem{
				cause: fmt.Sprintf("the container %s of pod %s, which is not Knotmeter's, %s", s.Name, p.Name, how),
				remedy: "something in the cluster adds it to pods, such as a service mesh: have that leave the namespace alone, " +
					"or give another namespace=",
				patient: patient,
			}
		}
	}
	return nil
}

// failing is how a container of others fails; empty while it does not.
func failing(s corev1.ContainerStatus) string {
	switch w, t := s.State.Waiting, s.State.Terminated; {
	case t != nil && t.ExitCode != 0:
		return fmt.Sprintf("ended with status %d: %s", t.ExitCode, shorten(t.Reason+" "+t.Message))
	case w != nil && w.Reason != "ContainerCreating" && w.Reason != "PodInitializing":
		return "does not start: " + shorten(w.Reason+" "+w.Message)
	}
	return ""
}

// runsOnce says whether a container has to end before ours begins.
func runsOnce(p *corev1.Pod, name string) bool {
	return slices.ContainsFunc(p.Spec.InitContainers, func(c corev1.Container) bool { return c.Name == name && c.RestartPolicy == nil })
}

// sccGroup is the API of OpenShift's security context constraints.
const sccGroup = "security.openshift.io"

// assignsUsers says whether the cluster itself gives pods their user and their groups, by its namespaces' ranges. Who may not
// ask what APIs there are is taken for somebody on a cluster that does not.
func (c *cluster) assignsUsers() bool {
	groups, err := c.Discovery().ServerGroups()
	if err != nil {
		return false
	}
	for _, g := range groups.Groups {
		if g.Name == sccGroup {
			return true
		}
	}
	return false
}
