package kube

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/knotmeter/knotmeter/internal/preflight"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/target"
	"github.com/knotmeter/knotmeter/internal/target/kube/inspection"
	"github.com/knotmeter/knotmeter/internal/target/kube/manifest"
)

// Facts are what the API server shows, and what the pods of a site see that is opened for them. That it can not be
// opened is an error: no run could be either.
func (k *kubeTarget) Facts(ctx context.Context) ([]result.Fact, error) {
	if err := k.survey(ctx); err != nil {
		return nil, err
	}
	e := gather(ctx, k.cluster)
	e.Nodes, e.Network = k.participants(), k.options.Network
	if err := k.witness(ctx, &e); err != nil {
		return nil, err
	}
	own := "made for the experiment"
	if !k.own {
		own = "given"
	}
	facts := []result.Fact{
		{Name: "kind", Value: "kube"},
		{Name: "node-rule", Value: k.nodes.Rule},
		{Name: "namespace", Value: own},
		{Name: "network-policies", Value: networkPolicies(ctx, k.cluster, k.namespace)},
		{Name: "cilium-network-policies", Value: ciliumPolicies(ctx, k.cluster, k.namespace)},
		{Name: "node-pressure", Value: inspection.Known("watched during runs", k.nodeWatches != nil && k.nodeWatches.Watched())},
		{Name: "image", Value: k.options.Image},
	}
	if k.hold != nil {
		facts = append(facts, result.Fact{Name: "other-experiments", Value: k.hold.looked})
	}
	if n := k.options.Network; n != "" {
		facts = append(facts, result.Fact{Name: "network", Value: n})
	}
	return slices.Concat(facts, k.storage.Facts(ctx, e.DaemonSets), e.Facts()), nil
}

// participants are the nodes that runs can be on.
func (k *kubeTarget) participants() []corev1.Node {
	names := k.nodes.Names()
	return slices.DeleteFunc(slices.Clone(k.listed), func(n corev1.Node) bool { return !slices.Contains(names, n.Name) })
}

// evidence is what the API server shows. What it does not show to us stays unknown.
func gather(ctx context.Context, api kubernetes.Interface) inspection.Evidence {
	e := inspection.Evidence{Config: map[string]map[string]string{}}
	if v, err := api.Discovery().ServerVersion(); err == nil {
		e.Version = v.GitVersion
	}
	if sets, err := api.AppsV1().DaemonSets(corev1.NamespaceAll).List(ctx, metav1.ListOptions{}); err == nil {
		e.DaemonSets = sets.Items
	}
	for _, name := range inspection.ConfigMaps {
		if m, err := api.CoreV1().ConfigMaps(name[0]).Get(ctx, name[1], metav1.GetOptions{}); err == nil {
			e.Config[name[0]+"/"+name[1]] = m.Data
		}
	}
	if e.Config[inspection.CiliumMap] == nil { // where Cilium is installed by its operator
		e.Config[inspection.CiliumMap] = e.Config["cilium/cilium-config"]
	}
	gatherCustom(ctx, api, &e)
	return e
}

// Where plugins keep resources of their own.
const (
	calicoGroup = "/apis/crd.projectcalico.org/v1"
	calicoAPI   = "/apis/projectcalico.org/v3" // of Calico's own API server, or of its resources where it needs none
	ciliumGroup = "/apis/cilium.io/v2"
	ciliumAlpha = "/apis/cilium.io/v2alpha1"
)

// custom reads the plugins' own resources. Those that a cluster does not have, or does not show to us, stay unknown.
func gatherCustom(ctx context.Context, api kubernetes.Interface, e *inspection.Evidence) {
	names, _ := e.Plugins()
	may := func(plugins ...string) bool {
		return len(names) == 0 || slices.ContainsFunc(plugins, func(p string) bool { return slices.Contains(names, p) })
	}
	if may("calico", "canal") {
		for _, group := range []string{calicoGroup, calicoAPI} {
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
		for _, group := range []string{ciliumGroup, ciliumAlpha} {
			if getJSON(ctx, api, group+"/ciliumnodeconfigs", &configs) == nil {
				e.NodeConfigs = configs.Items
				break
			}
		}
	}
}

// get reads what the API server has at a path.
func getJSON(ctx context.Context, api kubernetes.Interface, path string, into any) error {
	text, err := api.CoreV1().RESTClient().Get().AbsPath(path).DoRaw(ctx)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

// ciliumPolicies are Cilium's policies for a namespace and for the whole cluster. A cluster that has no such resources has
// no such policies.
func ciliumPolicies(ctx context.Context, api kubernetes.Interface, namespace string) string {
	var names []string
	for _, path := range []string{"/namespaces/" + namespace + "/ciliumnetworkpolicies", "/ciliumclusterwidenetworkpolicies"} {
		var found struct {
			Items []struct {
				Metadata struct{ Name string }
			}
		}
		switch err := getJSON(ctx, api, ciliumGroup+path, &found); {
		case apierrors.IsNotFound(err):
		case err != nil:
			return result.Unknown
		}
		for _, p := range found.Items {
			names = append(names, p.Metadata.Name)
		}
	}
	return inspection.Counted(names)
}

// policies are the policies in a namespace.
func networkPolicies(ctx context.Context, api kubernetes.Interface, namespace string) string {
	found, err := api.NetworkingV1().NetworkPolicies(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return result.Unknown
	}
	var names []string
	for _, p := range found.Items {
		names = append(names, p.Name)
	}
	return inspection.Counted(names)
}

// witness opens a site with a pod and, where that can be had, a place in the network of a node, and asks both. Nodes are not
// in a network of pods alone: then they have a site of their own, which no run needs, so that without it they stay unknown.
func (k *kubeTarget) witness(ctx context.Context, e *inspection.Evidence) error {
	network := k.options.Network
	if network == "" {
		return k.see(ctx, e, target.PodNodeOther, target.PodNodeSame, target.PodPodOther, target.PodPodSame)
	}
	if err := k.see(ctx, e, target.PodPodOther, target.PodPodSame); err != nil {
		return err
	}
	pod := e.Pod
	k.options.Network = ""
	_ = k.see(ctx, e, target.PodNodeOther, target.PodNodeSame)
	e.Pod, k.options.Network = pod, network
	return ctx.Err()
}

// see opens a site on the first of some paths that there is, and asks its places.
func (k *kubeTarget) see(ctx context.Context, e *inspection.Evidence, paths ...target.Path) error {
	for _, p := range paths {
		s, err := k.open(ctx, target.Placement{Path: p})
		if errors.Is(err, result.ErrNotSupported) {
			continue
		}
		if err != nil {
			return err
		}
		e.Pod = &s.client
		k.look(ctx, s.host(manifest.Client))
		if !s.plan.InPod(manifest.Server) {
			e.Node = &s.server
			asked, err := s.report(ctx, manifest.Server, preflight.Spec{
				Role: preflight.Witness, Patience: meetTime, Ask: inspection.ProxyURLs(s.listen.Addr().String()),
			})
			if err == nil {
				e.Node.Answers = asked.Answers
			}
		}
		err = s.remove(ctx)
		k.unclean = k.unclean || err != nil
		return err
	}
	return nil
}
