package manifest

import (
	"maps"
	"slices"
)

// A service mesh adds proxies to pods or redirects their traffic, and the proxies would be measured too. So the pods
// opt out of each known mesh, unless the user's labels and annotations enrol them. The facts of a run report what was
// added anyway.

// MeshLabels are the labels that opt out of Istio's sidecars, its ambient mode, and Kuma. Cilium's mesh adds nothing to
// pods.
var MeshLabels = map[string]string{
	istioInject: "false", istioMode: "none", kumaInject: "disabled",
}

// MeshAnnotations are the annotations that opt out of Istio's sidecars and Kuma (for older versions), Linkerd, Consul,
// Open Service Mesh and AWS App Mesh.
var MeshAnnotations = map[string]string{
	istioInject: "false", linkerdInject: "disabled", consulInject: "false", kumaInject: "disabled",
	"openservicemesh.io/sidecar-injection": "disabled", "appmesh.k8s.aws/sidecarInjectorWebhook": "disabled",
}

// Keys of labels and annotations by which pods join meshes.
const (
	istioInject    = "sidecar.istio.io/inject"
	istioInjection = "istio-injection" // of namespaces
	istioRevision  = "istio.io/rev"
	istioMode      = "istio.io/dataplane-mode"
	linkerdInject  = "linkerd.io/inject"
	ciliumMTLS     = "io.cilium/mtls-enabled" // of namespaces
	consulInject   = "consul.hashicorp.com/connect-inject"
	kumaInject     = "kuma.io/sidecar-injection"
)

// A Mesh is a service mesh by its product and by how it takes over the traffic of pods. The zero value is no mesh.
type Mesh struct {
	Name string   // istio, linkerd, cilium, consul or kuma
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

// An enrolment is a label or an annotation that adds pods to a mesh.
type enrolment struct {
	key    string
	values []string // nil: any value
	mesh   Mesh
	// Where it counts: as a label of the namespace, as a label of the pod, as an annotation of the pod.
	onNamespace, asLabel, asAnnotation bool
}

// enrolments are documented by the projects: istio.io/docs (ambient/usage/add-workloads, setup/additional-setup/
// sidecar-injection), linkerd.io (features/proxy-injection), docs.cilium.io (security/network/encryption-ztunnel),
// developer.hashicorp.com/consul (annotations and labels), kuma.io (kubernetes annotations). The first match counts.
var enrolments = []enrolment{
	{key: istioMode, values: []string{"ambient"}, mesh: Mesh{"istio", Ambient}, onNamespace: true, asLabel: true},
	{key: ciliumMTLS, values: []string{"true"}, mesh: Mesh{"cilium", Ztunnel}, onNamespace: true},
	{key: istioInject, values: []string{"true"}, mesh: Mesh{"istio", Sidecar}, asLabel: true, asAnnotation: true},
	{key: istioInjection, values: []string{"enabled"}, mesh: Mesh{"istio", Sidecar}, onNamespace: true},
	{key: istioRevision, mesh: Mesh{"istio", Sidecar}, onNamespace: true, asLabel: true},
	{key: linkerdInject, values: []string{"enabled", "ingress"}, mesh: Mesh{"linkerd", Sidecar}, asAnnotation: true},
	{key: consulInject, values: []string{"true"}, mesh: Mesh{"consul", Sidecar}, asAnnotation: true},
	{key: kumaInject, values: []string{"enabled", "true"}, mesh: Mesh{"kuma", Sidecar}, onNamespace: true, asLabel: true},
}

// EnrolledIn returns the mesh that the user's labels and annotations add the pods to; the zero value if they name none.
// Labels of a namespace that the user gave are not known here.
func (o Settings) EnrolledIn() Mesh {
	labels, annotations := o.podLabels(), o.podAnnotations()
	for _, e := range enrolments {
		for _, place := range []struct {
			counts bool
			given  map[string]string
		}{{e.onNamespace, o.NamespaceLabels}, {e.asLabel, labels}, {e.asAnnotation, annotations}} {
			value, given := place.given[e.key]
			if place.counts && given && (e.values == nil || slices.Contains(e.values, value)) {
				return e.mesh
			}
		}
	}
	return Mesh{}
}

// podLabels returns the user's labels of pods. Those of pod-labels= replace those of config=.
func (o Settings) podLabels() map[string]string { return joinMaps(o.Pods.Labels, o.PodLabels) }

// podAnnotations returns the user's annotations of pods. Those of pod-annotations= replace those of config=.
func (o Settings) podAnnotations() map[string]string {
	return joinMaps(o.Pods.Annotations, o.PodAnnotations)
}

// joinMaps returns the entries of both maps; those of b replace those of a.
func joinMaps(a, b map[string]string) map[string]string {
	joined := map[string]string{}
	maps.Copy(joined, a)
	maps.Copy(joined, b)
	return joined
}

// PodMetadata returns the labels and annotations of a pod. The labels in own replace the user's labels, which replace
// those that opt out of meshes; the user's annotations replace such annotations. An opt-out is left out where the user
// decides about its mesh elsewhere. If there is a DefaultNetwork, an annotation requests it.
func (o Settings) PodMetadata(own map[string]string) (labels, annotations map[string]string) {
	labels, annotations = maps.Clone(MeshLabels), maps.Clone(MeshAnnotations)
	for _, given := range []map[string]string{o.NamespaceLabels, o.podLabels(), o.podAnnotations()} {
		for key := range given {
			if key == istioInjection || key == istioRevision {
				key = istioInject
			}
			delete(labels, key)
			delete(annotations, key)
		}
	}
	maps.Copy(labels, o.podLabels())
	maps.Copy(labels, own)
	maps.Copy(annotations, o.podAnnotations())
	if o.DefaultNetwork != "" {
		annotations[multusDefaultRequest] = o.DefaultNetwork
	}
	return labels, annotations
}
