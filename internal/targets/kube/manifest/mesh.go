package manifest

import (
	"maps"
)

// A service mesh adds proxies to pods or redirects their traffic, and the proxies would be measured too. So the pods
// opt out of each known mesh. The facts of a run report what was added anyway.

// MeshLabels are the labels that opt out of Istio's sidecars, its ambient mode, and Kuma. Cilium's mesh adds nothing to
// pods.
var MeshLabels = map[string]string{
	"sidecar.istio.io/inject": "false", "istio.io/dataplane-mode": "none", "kuma.io/sidecar-injection": "disabled",
}

// MeshAnnotations are the annotations that opt out of Istio's sidecars and Kuma (for older versions), Linkerd, Consul,
// Open Service Mesh and AWS App Mesh.
var MeshAnnotations = map[string]string{
	"sidecar.istio.io/inject": "false", "linkerd.io/inject": "disabled", "consul.hashicorp.com/connect-inject": "false",
	"kuma.io/sidecar-injection": "disabled", "openservicemesh.io/sidecar-injection": "disabled",
	"appmesh.k8s.aws/sidecarInjectorWebhook": "disabled",
}

// PodMetadata returns the labels and annotations of a pod. The labels in own replace the user's labels, which replace
// those that opt out of meshes; the user's annotations replace such annotations. If there is a DefaultNetwork, an
// annotation requests it.
func (o Settings) PodMetadata(own map[string]string) (labels, annotations map[string]string) {
	labels, annotations = maps.Clone(MeshLabels), maps.Clone(MeshAnnotations)
	maps.Copy(labels, o.Pods.Labels)
	maps.Copy(labels, own)
	maps.Copy(annotations, o.Pods.Annotations)
	if o.DefaultNetwork != "" {
		annotations[multusDefaultRequest] = o.DefaultNetwork
	}
	return labels, annotations
}
