package inspection

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets/kube/manifest"
)

// Runs says whether the agent's container runs and has an address.
func Runs(p *corev1.Pod) bool {
	return p.DeletionTimestamp == nil && p.Status.Phase == corev1.PodRunning && p.Status.PodIP != "" &&
		OwnStatus(p) != nil && OwnStatus(p).State.Running != nil
}

// Limited says whether a pod's container of ours has a limit of CPU time, its own or one that the namespace gave it.
func Limited(p *corev1.Pod) bool { return p != nil && !CPULimit(p).IsZero() }

func CPULimit(p *corev1.Pod) *resource.Quantity {
	limits := OwnContainer(p).Resources.Limits
	return limits.Cpu()
}

// istioRedirection is the annotation of pods whose traffic Istio redirects on their node.
const istioRedirection = "ambient.istio.io/redirection"

// Added names what is in a pod, or before it, that Knotmeter did not put there.
func Added(p *corev1.Pod) []string {
	if p == nil {
		return nil
	}
	var names []string
	for _, c := range p.Spec.Containers {
		if c.Name != manifest.ContainerName {
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
	if p.Annotations[istioRedirection] == "enabled" {
		names = append(names, "Istio's ambient mesh")
	}
	return names
}

// sidecars names what was added to which of a site's pods; empty if nothing was.
func sidecars(pods map[string]*corev1.Pod) string {
	var words []string
	for _, name := range slices.Sorted(maps.Keys(pods)) {
		if names := Added(pods[name]); len(names) > 0 {
			words = append(words, fmt.Sprintf("%s: %s", pods[name].Labels[manifest.LabelRole], strings.Join(names, ", ")))
		}
	}
	return strings.Join(words, "; ")
}

// SidecarFact says in a run's facts what was added to its pods, and sidecarWarnings what that means.
func SidecarFact(pods map[string]*corev1.Pod) result.Fact {
	text := sidecars(pods)
	if text == "" {
		text = "none"
	}
	return result.Fact{Name: "sidecars", Value: text}
}

func SidecarWarnings(pods map[string]*corev1.Pod) []result.Warning {
	text := sidecars(pods)
	if text == "" {
		return nil
	}
	return []result.Warning{{Code: result.Sidecars, Text: "the pods have containers that are not Knotmeter's (" + text +
		"): what these do to traffic and CPUs was measured too"}}
}

// OwnContainer is the container of ours in a pod; one without a name if something took it out.
func OwnContainer(p *corev1.Pod) (own corev1.Container) {
	for _, c := range p.Spec.Containers {
		if c.Name == manifest.ContainerName {
			return c
		}
	}
	return own
}

// OwnStatus is what its node says of the container of ours; nil while it says nothing.
func OwnStatus(p *corev1.Pod) *corev1.ContainerStatus {
	for i := range p.Status.ContainerStatuses {
		if p.Status.ContainerStatuses[i].Name == manifest.ContainerName {
			return &p.Status.ContainerStatuses[i]
		}
	}
	return nil
}
