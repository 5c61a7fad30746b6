package cluster

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/kubernetes"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets/kube/inspection"
)

// Gather reads the objects from which facts are derived. What the user may not read stays unknown.
func Gather(ctx context.Context, api kubernetes.Interface) inspection.Evidence {
	e := inspection.Evidence{Config: map[string]map[string]string{}}
	var running version.Info
	if getJSON(ctx, api, "/version", &running) == nil { // Discovery takes no context
		e.Version = running.GitVersion
	}
	if sets, err := api.AppsV1().DaemonSets(corev1.NamespaceAll).List(ctx, metav1.ListOptions{}); err == nil {
		e.DaemonSets = sets.Items
	}
	for _, name := range inspection.ConfigMaps {
		if m, err := api.CoreV1().ConfigMaps(name[0]).Get(ctx, name[1], metav1.GetOptions{}); err == nil {
			e.Config[name[0]+"/"+name[1]] = m.Data
		}
	}
	if e.Config[inspection.CiliumMap] == nil { // some installations have it in the namespace cilium
		e.Config[inspection.CiliumMap] = e.Config["cilium/cilium-config"]
	}
	gatherCustom(ctx, api, &e)
	return e
}

// API groups of network plugins.
const (
	CalicoGroup = "/apis/crd.projectcalico.org/v1"
	calicoAPI   = "/apis/projectcalico.org/v3" // of Calico's own API server, or of CRDs where Calico needs none
	CiliumGroup = "/apis/cilium.io/v2"
	ciliumAlpha = "/apis/cilium.io/v2alpha1"
	attachments = "/apis/k8s.cni.cncf.io/v1" // of the Network Plumbing Working Group, for Multus and others
)

// gatherCustom reads the custom resources of network plugins. What the cluster lacks, or the user may not read, stays
// unknown.
func gatherCustom(ctx context.Context, api kubernetes.Interface, e *inspection.Evidence) {
	names, _ := e.Plugins()
	may := func(plugins ...string) bool {
		return len(names) == 0 || slices.ContainsFunc(plugins, func(p string) bool { return slices.Contains(names, p) })
	}
	if may("calico", "canal") {
		for _, group := range []string{CalicoGroup, calicoAPI} {
			var pools struct{ Items []inspection.IPPool }
			var one inspection.Felix
			if getJSON(ctx, api, group+"/ippools", &pools) == nil {
				e.Pools = pools.Items
			}
			if getJSON(ctx, api, group+"/felixconfigurations/"+inspection.CalicoDefault, &one) == nil {
				e.Felix = &one
			}
			if len(e.Pools) > 0 || e.Felix != nil {
				break
			}
		}
	}
	if may("cilium", "gke-dataplane-v2") {
		var configs struct{ Items []inspection.CiliumNodeConfig }
		for _, group := range []string{CiliumGroup, ciliumAlpha} {
			if getJSON(ctx, api, group+"/ciliumnodeconfigs", &configs) == nil {
				e.NodeConfigs = configs.Items
				break
			}
		}
	}
}

// Chain returns the plugins of the NetworkAttachmentDefinition NAMESPACE/NAME, in their order. It is empty if the
// definition is absent, may not be read, or leaves its configuration to the nodes.
func Chain(ctx context.Context, api kubernetes.Interface, network string) []string {
	namespace, name, _ := strings.Cut(network, "/")
	var definition struct{ Spec struct{ Config string } }
	if getJSON(ctx, api, attachments+"/namespaces/"+namespace+"/network-attachment-definitions/"+name,
		&definition) != nil {
		return nil
	}
	return inspection.Chain(definition.Spec.Config)
}

// getJSON decodes the API server's answer to a GET of path.
func getJSON(ctx context.Context, api kubernetes.Interface, path string, into any) error {
	text, err := api.CoreV1().RESTClient().Get().AbsPath(path).DoRaw(ctx)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

// CiliumPolicies returns the number and names of Cilium's policies in a namespace and in the whole cluster.
func CiliumPolicies(ctx context.Context, api kubernetes.Interface, namespace string) string {
	return policies(ctx, api, CiliumGroup+"/namespaces/"+namespace+"/ciliumnetworkpolicies",
		CiliumGroup+"/ciliumclusterwidenetworkpolicies")
}

// NetworkPolicies returns the number and names of the NetworkPolicies in a namespace.
func NetworkPolicies(ctx context.Context, api kubernetes.Interface, namespace string) string {
	return policies(ctx, api, "/apis/networking.k8s.io/v1/namespaces/"+namespace+"/networkpolicies")
}

// policies returns the number and names of the objects in some collections, or result.Unknown if one cannot be read. A
// collection that does not exist counts as empty.
func policies(ctx context.Context, api kubernetes.Interface, collections ...string) string {
	var names []string
	for _, path := range collections {
		var found metav1.PartialObjectMetadataList
		if err := getJSON(ctx, api, path, &found); err != nil && !apierrors.IsNotFound(err) {
			return result.Unknown
		}
		for _, p := range found.Items {
			names = append(names, p.Name)
		}
	}
	return inspection.Counted(names)
}

// AssignsUsers reports whether the cluster itself assigns users and groups to pods, as OpenShift's security context
// constraints do. It is false if the API group may not be read.
func AssignsUsers(ctx context.Context, api kubernetes.Interface) bool {
	var group metav1.APIGroup
	return getJSON(ctx, api, "/apis/security.openshift.io", &group) == nil
}
