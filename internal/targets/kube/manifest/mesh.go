package manifest

import (
	"maps"
)

// Service meshes add proxies to pods or redirect their traffic, which would be measured too. The pods opt out of each
// known mesh; the facts of a run report what was added anyway.

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

// PodMetadata returns the labels and annotations of a pod: its own replace the user's, which replace the opt-outs of
// meshes. An annotation also requests the default network.
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
