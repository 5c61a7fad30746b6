package manifest

import (
	"maps"
)

// Service meshes put proxies into pods, or before them, which would be measured too. Pods of ours ask each known mesh
// to leave them alone; what is in them all the same is told.

// MeshLabels and meshAnnotations are what pods opt out with: of Istio's sidecars (older versions read the annotation)
// and its ambient mode, Linkerd, Consul, Kuma (likewise), Open Service Mesh and AWS App Mesh. Cilium's mesh adds
// nothing to pods.
var MeshLabels = map[string]string{
	"sidecar.istio.io/inject": "false", "istio.io/dataplane-mode": "none", "kuma.io/sidecar-injection": "disabled",
}

var MeshAnnotations = map[string]string{
	"sidecar.istio.io/inject": "false", "linkerd.io/inject": "disabled", "consul.hashicorp.com/connect-inject": "false",
	"kuma.io/sidecar-injection": "disabled", "openservicemesh.io/sidecar-injection": "disabled",
	"appmesh.k8s.aws/sidecarInjectorWebhook": "disabled",
}

// PodMetadata are the labels and annotations of a pod: those of its own over the user's, and these over those that keep
// meshes out. A default network is asked for by annotation too.
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
