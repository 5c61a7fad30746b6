package manifest

import (
	"maps"

	"github.com/knotmeter/knotmeter/internal/targets/kube/product"
)

// A service mesh adds proxies to pods or redirects their traffic, and the proxies would be measured too. So the pods
// opt out of each known mesh, unless the user's labels and annotations enrol them. The facts of a run report what was
// added anyway.

// EnrolledIn returns the mesh that the user's labels and annotations add the pods to; the zero value if they name none.
// Labels of a namespace that the user gave are not known here.
func (o Settings) EnrolledIn() product.Mesh {
	return product.EnrolledIn(o.NamespaceLabels, o.podLabels(), o.podAnnotations())
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
	labels, annotations = product.OptOuts(joinMaps(o.NamespaceLabels, joinMaps(o.podLabels(), o.podAnnotations())))
	maps.Copy(labels, o.podLabels())
	maps.Copy(labels, own)
	maps.Copy(annotations, o.podAnnotations())
	if o.DefaultNetwork != "" {
		annotations[product.MultusDefaultRequest] = o.DefaultNetwork
	}
	return labels, annotations
}
