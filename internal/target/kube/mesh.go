package kube

import (
	"maps"

	"k8s.io/client-go/kubernetes"
)

// Service meshes put proxies into pods, or before them, which would be measured too. Pods of ours ask each known mesh to
// leave them alone; what is in them all the same is told.

// meshLabels and meshAnnotations are what pods opt out with: of Istio's sidecars (older versions read the annotation) and
// its ambient mode, Linkerd, Consul, Kuma (likewise), Open Service Mesh and AWS App Mesh. Cilium's mesh adds nothing to pods.
var meshLabels = map[string]string{
	"sidecar.istio.io/inject": "false", "istio.io/dataplane-mode": "none", "kuma.io/sidecar-injection": "disabled",
}

var meshAnnotations = map[string]string{
	"sidecar.istio.io/inject": "false", "linkerd.io/inject": "disabled", "consul.hashicorp.com/connect-inject": "false",
	"kuma.io/sidecar-injection": "disabled", "openservicemesh.io/sidecar-injection": "disabled",
	"appmesh.k8s.aws/sidecarInjectorWebhook": "disabled",
}

// marks are the labels and annotations of a pod: those of its own over the user's, and these over those that keep meshes out.
func (o options) marks(own map[string]string) (labels, annotations map[string]string) {
	labels, annotations = maps.Clone(meshLabels), maps.Clone(meshAnnotations)
	maps.Copy(labels, o.Pods.Labels)
	maps.Copy(labels, own)
	maps.Copy(annotations, o.Pods.Annotations)
	return labels, annotations
}

// sccGroup is the API of OpenShift's security context constraints.
const sccGroup = "security.openshift.io"

// assignsUsers says whether the cluster itself gives pods their user and their groups, by its namespaces' ranges. Who may not
// ask what APIs there are is taken for somebody on a cluster that does not.
func assignsUsers(api kubernetes.Interface) bool {
	groups, err := api.Discovery().ServerGroups()
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
