package inspection

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/knotmeter/knotmeter/internal/machine"
	"github.com/knotmeter/knotmeter/internal/preflight"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets/kube/manifest"
)

// istioRedirection is the annotation of pods whose traffic Istio's ambient mode redirects.
const istioRedirection = "ambient.istio.io/redirection"

// Ports of proxies in the network namespaces of pods, as their projects document them.
const (
	hbonePort      = 15008 // ztunnel: from other proxies, encrypted
	plaintextPort  = 15006 // ztunnel: from others than proxies; Istio's sidecar: all that arrives
	linkerdInbound = 4143
)

// meshProxies maps names of containers to the meshes whose sidecars they are.
var meshProxies = map[string]string{
	"istio-proxy": "istio", "linkerd-proxy": "linkerd", "consul-dataplane": "consul", "kuma-sidecar": "kuma",
}

// An activeMesh is a mesh that has taken over the traffic of pods, with its evidence.
type activeMesh struct {
	manifest.Mesh
	evidence string // of the mesh
	version  string // with its evidence; empty if it is unknown
}

// mesh returns the mesh of the pod that reported Pod; the zero value if nothing shows one.
func (e Evidence) mesh() activeMesh {
	if e.Admitted == nil {
		return activeMesh{}
	}
	for _, c := range slices.Concat(e.Admitted.Spec.Containers, e.Admitted.Spec.InitContainers) {
		if name := meshProxies[c.Name]; name != "" {
			return activeMesh{manifest.Mesh{Name: name, Mode: manifest.Sidecar}, "container " + c.Name + " of the pods",
				versionOf(c, "container "+c.Name)}
		}
	}
	ztunnel, daemonSet := e.ztunnel()
	version := versionOf(ztunnel, "daemon set "+daemonSet)
	switch cilium := e.acrossNodes(CiliumMap, ciliumZtunnel); {
	case e.Admitted.Annotations[istioRedirection] == "enabled":
		return activeMesh{manifest.Mesh{Name: "istio", Mode: manifest.Ambient},
			"annotation " + istioRedirection + " of the pods", version}
	case !listensAt(e.Pod, hbonePort):
		return activeMesh{}
	case cilium != "":
		return activeMesh{manifest.Mesh{Name: "cilium", Mode: manifest.Ztunnel},
			"port 15008 in the pods, config map cilium-config", version}
	}
	return activeMesh{manifest.Mesh{Name: result.Unknown, Mode: manifest.Ambient}, "port 15008 in the pods", version}
}

// ciliumZtunnel returns a text if Cilium's config map turns its ztunnel on.
func ciliumZtunnel(c map[string]string) string {
	if c["enable-ztunnel"] == "true" {
		return "ztunnel"
	}
	return ""
}

// ztunnel returns the container of the daemon set that runs ztunnel, and the name of the daemon set.
func (e Evidence) ztunnel() (c corev1.Container, daemonSet string) {
	for _, d := range e.DaemonSets {
		for _, c := range d.Spec.Template.Spec.Containers {
			if strings.HasPrefix(imageName(c.Image), "ztunnel") {
				return c, cmp.Or(d.Name, "of ztunnel")
			}
		}
	}
	return corev1.Container{}, ""
}

// versionOf returns the tag of a container's image, with its owner as the evidence; empty without a tag.
func versionOf(c corev1.Container, owner string) string {
	image, _, _ := strings.Cut(imageName(c.Image), "@")
	_, tag, _ := strings.Cut(image, ":")
	if !plainSetting.MatchString(tag) {
		return ""
	}
	return tag + " (image of the " + owner + ")"
}

// listensAt reports whether a socket listens at a port of the network namespace of a report; r may be nil.
func listensAt(r *preflight.Report, port uint16) bool {
	return r != nil && slices.ContainsFunc(r.Sockets, func(s machine.Socket) bool {
		return s.Listening && s.Local.Port() == port
	})
}

// meshFacts returns facts about the mesh of the pods. Without the sockets of a pod, a mesh that neither adds containers
// nor annotates pods cannot be excluded.
func (e Evidence) meshFacts() []result.Fact {
	m := e.mesh()
	switch {
	case m.Name != "":
		return []result.Fact{
			{Name: "mesh", Value: m.Name, Evidence: m.evidence},
			{Name: "mesh.mode", Value: string(m.Mode)},
			result.WithEvidence("mesh.version", cmp.Or(m.version, result.Unknown)),
		}
	case e.Admitted == nil || e.Pod == nil || e.Pod.Sockets == nil:
		return []result.Fact{{Name: "mesh", Value: result.Unknown}}
	}
	return []result.Fact{{Name: "mesh", Value: result.None, Evidence: "containers, annotations and sockets of the pods"}}
}
