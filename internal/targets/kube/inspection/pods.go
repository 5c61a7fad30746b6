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
	"github.com/knotmeter/knotmeter/internal/targets/kube/product"
)

// Runs reports whether the agent's container runs and the pod has an address.
func Runs(p *corev1.Pod) bool {
	return p.DeletionTimestamp == nil && p.Status.Phase == corev1.PodRunning && p.Status.PodIP != "" &&
		OwnStatus(p) != nil && OwnStatus(p).State.Running != nil
}

// Limited reports whether the agent's container has a CPU limit, its own or one from the namespace. p may be nil.
func Limited(p *corev1.Pod) bool { return p != nil && !CPULimit(p).IsZero() }

// CPULimit returns the CPU limit of the agent's container; zero if it has none.
func CPULimit(p *corev1.Pod) *resource.Quantity {
	limits := OwnContainer(p).Resources.Limits
	return limits.Cpu()
}

// AddedContainers returns what the cluster added to a pod: containers, and a mesh that redirects its traffic. p may be
// nil.
func AddedContainers(p *corev1.Pod) []string {
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
	if mesh := product.Redirects(p); mesh.Name != "" {
		names = append(names, mesh.Redirector)
	}
	return names
}

// sidecars lists what was added to a site's pods, by role; empty if nothing was.
func sidecars(pods map[string]*corev1.Pod) string {
	var words []string
	for _, name := range slices.Sorted(maps.Keys(pods)) {
		if names := AddedContainers(pods[name]); len(names) > 0 {
			words = append(words, fmt.Sprintf("%s: %s", pods[name].Labels[manifest.LabelRole], strings.Join(names, ", ")))
		}
	}
	return strings.Join(words, "; ")
}

// SidecarFact returns the fact about what was added to the pods of a site.
func SidecarFact(pods map[string]*corev1.Pod) result.Fact {
	text := sidecars(pods)
	if text == "" {
		text = "none"
	}
	return result.Fact{Name: "sidecars", Value: text}
}

// SidecarWarnings returns a warning if anything was added to the pods of a site.
func SidecarWarnings(pods map[string]*corev1.Pod) []result.Warning {
	text := sidecars(pods)
	if text == "" {
		return nil
	}
	return []result.Warning{{Code: result.Sidecars, Text: "the pods have containers that are not Knotmeter's (" + text +
		"): what these do to traffic and CPUs was measured too"}}
}

// OwnContainer returns the agent's container of a pod; one without a name if something in the cluster removed it.
func OwnContainer(p *corev1.Pod) (own corev1.Container) {
	for _, c := range p.Spec.Containers {
		if c.Name == manifest.ContainerName {
			return c
		}
	}
	return own
}

// OwnStatus returns the status of the agent's container; nil until the node reports it.
func OwnStatus(p *corev1.Pod) *corev1.ContainerStatus {
	for i := range p.Status.ContainerStatuses {
		if p.Status.ContainerStatuses[i].Name == manifest.ContainerName {
			return &p.Status.ContainerStatuses[i]
		}
	}
	return nil
}
