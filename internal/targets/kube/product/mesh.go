package product

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/knotmeter/knotmeter/internal/result"
)

// A Mesh is a service mesh by its product and by how it takes over the traffic of pods. The zero value is no mesh.
type Mesh struct {
	Name string   // of the product
	Mode MeshMode // how it takes over
}

// A MeshMode is how a mesh takes over the TCP connections of pods.
type MeshMode string

// The modes of meshes.
const (
	Sidecar MeshMode = "sidecar" // by a proxy in each pod
	Ambient MeshMode = "ambient" // by the ztunnel of the node, with Istio's control plane
	Ztunnel MeshMode = "ztunnel" // by the ztunnel of the node, with Cilium's control plane
)

// HBONE reports whether proxies of the mode exchange the traffic of pods by HTTP/2 CONNECT over mutual TLS.
func (m MeshMode) HBONE() bool { return m == Ambient || m == Ztunnel }

// Ports of ztunnels in the network namespaces of pods.
const (
	HBONEPort     = 15008 // from other proxies, encrypted
	PlaintextPort = 15006 // from others than proxies; that of Istio's sidecars, too
)

// An Enrolment is a label or an annotation that adds pods to a mesh.
type Enrolment struct {
	Key    string
	Values []string // nil: any value
	Mode   MeshMode
	// Where it counts: as a label of the namespace, as a label of the pod, as an annotation of the pod.
	OnNamespace, AsLabel, AsAnnotation bool
	OptOut                             string // key of the opt-out that it replaces, if that is not Key
}

// EnrolledIn returns the mesh that labels of the namespace and of pods, and annotations of pods, add pods to; the zero
// value if they name none. The first match counts.
func EnrolledIn(namespace, pods, annotations map[string]string) Mesh {
	for _, p := range All() {
		for _, e := range p.Enrolments {
			for _, place := range []struct {
				counts bool
				given  map[string]string
			}{{e.OnNamespace, namespace}, {e.AsLabel, pods}, {e.AsAnnotation, annotations}} {
				value, given := place.given[e.Key]
				if place.counts && given && (e.Values == nil || slices.Contains(e.Values, value)) {
					return Mesh{p.Name, e.Mode}
				}
			}
		}
	}
	return Mesh{}
}

// OptOuts returns the labels and annotations by which pods opt out of all meshes, without those that decide about what
// given keys decide.
func OptOuts(given map[string]string) (labels, annotations map[string]string) {
	labels, annotations = map[string]string{}, map[string]string{}
	decided := func(p Product, key string) bool {
		_, itself := given[key]
		return itself || slices.ContainsFunc(p.Enrolments, func(e Enrolment) bool {
			_, enrolled := given[e.Key]
			return enrolled && e.OptOut == key
		})
	}
	for _, p := range All() {
		for key, value := range p.OptOutLabels {
			if !decided(p, key) {
				labels[key] = value
			}
		}
		for key, value := range p.OptOutAnnotations {
			if !decided(p, key) {
				annotations[key] = value
			}
		}
	}
	return labels, annotations
}

// InboundPorts returns the ports at which proxies in pods take connections in plain text.
func InboundPorts() (ports []uint16) {
	for _, p := range All() {
		if p.InboundPort != 0 {
			ports = append(ports, p.InboundPort)
		}
	}
	return ports
}

// Redirects returns the product that redirects the traffic of a pod; the zero value if none does.
func Redirects(pod *corev1.Pod) Product {
	for _, p := range All() {
		if p.Redirection != "" && pod.Annotations[p.Redirection] == "enabled" {
			return p
		}
	}
	return Product{}
}

// MeshFacts returns facts about the mesh that has taken over the traffic of the pod that reported Pod. Without the
// sockets of a pod, a mesh that neither adds containers nor annotates pods cannot be excluded.
func (e Evidence) MeshFacts() []result.Fact {
	mesh, source, version := e.activeMesh()
	switch {
	case mesh.Name != "":
		return []result.Fact{
			{Name: "mesh", Value: mesh.Name, Evidence: source}, {Name: "mesh.mode", Value: string(mesh.Mode)}, version,
		}
	case e.Admitted == nil || e.Pod == nil || e.Pod.Sockets == nil:
		return []result.Fact{{Name: "mesh", Value: result.Unknown}}
	}
	return []result.Fact{{Name: "mesh", Value: result.None, Evidence: "containers, annotations and sockets of the pods"}}
}

// activeMesh returns the mesh of the pod with what shows it and the fact about its version; the zero value if nothing
// shows one.
func (e Evidence) activeMesh() (mesh Mesh, source string, version result.Fact) {
	if e.Admitted == nil {
		return mesh, source, version
	}
	for _, c := range slices.Concat(e.Admitted.Spec.Containers, e.Admitted.Spec.InitContainers) {
		for _, p := range All() {
			if p.Sidecar != "" && c.Name == p.Sidecar {
				return Mesh{p.Name, Sidecar}, "container " + c.Name + " of the pods", versionFact(c, "container "+c.Name)
			}
		}
	}
	version = e.ztunnelVersion()
	if p := Redirects(e.Admitted); p.Name != "" {
		return Mesh{p.Name, p.ZtunnelMode}, "annotation " + p.Redirection + " of the pods", version
	}
	if !listensAt(e.Pod, HBONEPort) {
		return mesh, source, version
	}
	const port = "port 15008 in the pods"
	for _, p := range All() {
		if p.ZtunnelOn != nil && p.ZtunnelOn(e) {
			return Mesh{p.Name, p.ZtunnelMode}, port + ", " + inConfigMap(p.ConfigMaps[0]), version
		}
	}
	return Mesh{result.Unknown, Ambient}, port, version
}

// ztunnelVersion returns the fact about the version of the daemon set that runs ztunnel.
func (e Evidence) ztunnelVersion() result.Fact {
	for _, d := range e.DaemonSets {
		for _, c := range d.Spec.Template.Spec.Containers {
			if strings.HasPrefix(imageName(c.Image), "ztunnel") {
				return versionFact(c, "daemon set "+cmp.Or(d.Name, "of ztunnel"))
			}
		}
	}
	return result.Fact{Name: "mesh.version", Value: result.Unknown}
}

// versionFact returns the fact about a mesh's version: the tag of the image of a container, with its owner.
func versionFact(c corev1.Container, owner string) result.Fact {
	image, _, _ := strings.Cut(imageName(c.Image), "@")
	_, tag, _ := strings.Cut(image, ":")
	if !plainSetting.MatchString(tag) {
		return result.Fact{Name: "mesh.version", Value: result.Unknown}
	}
	return result.Fact{Name: "mesh.version", Value: tag, Evidence: "image of the " + owner}
}
