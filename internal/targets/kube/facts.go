package kube

import (
	"context"
	"errors"
	"slices"

	"github.com/knotmeter/knotmeter/internal/preflight"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
	"github.com/knotmeter/knotmeter/internal/targets/kube/cluster"
	"github.com/knotmeter/knotmeter/internal/targets/kube/inspection"
	"github.com/knotmeter/knotmeter/internal/targets/kube/manifest"
	"github.com/knotmeter/knotmeter/internal/targets/kube/product"
	"github.com/knotmeter/knotmeter/internal/targets/kube/site"
	"github.com/knotmeter/knotmeter/internal/vault"
)

// Facts returns what the API server shows, and what the pods of a temporary site report. It fails if that site cannot
// be opened, because then no site for runs could be opened either.
func (k *kubeTarget) Facts(ctx context.Context) ([]result.Fact, error) {
	r, err := k.reach(ctx)
	if err != nil {
		return nil, err
	}
	return k.claimedStage(r).facts(ctx)
}

func (k *claimed) facts(ctx context.Context) ([]result.Fact, error) {
	e := cluster.Gather(ctx, k.cluster)
	e.Nodes, e.Network, e.DefaultNetwork = k.participants(), k.options.Network, k.options.DefaultNetwork
	if e.DefaultNetwork != "" {
		e.Chain = cluster.Chain(ctx, k.cluster, e.DefaultNetwork)
	}
	if err := k.inspectHosts(ctx, &e); err != nil {
		return nil, err
	}
	namespace := "made for the experiment"
	if !k.ownNamespace {
		namespace = "given"
	}
	pressure := result.Unknown
	if k.nodeWatches.Watched() {
		pressure = "watched during runs"
	}
	facts := []result.Fact{
		{Name: "kind", Value: "kube"},
		{Name: "node-rule", Value: k.nodes.Rule},
		{Name: "namespace", Value: namespace},
	}
	facts = append(facts, cluster.PolicyFacts(ctx, k.cluster, k.namespace)...)
	facts = append(facts, result.Fact{Name: "node-pressure", Value: pressure},
		result.Fact{Name: "image", Value: k.options.Image})
	if k.searchedScope != "" {
		facts = append(facts, result.Fact{Name: "other-experiments", Value: k.searchedScope})
	}
	if n := k.options.Network; n != "" {
		facts = append(facts, result.Fact{Name: "network", Value: n})
	}
	if n := k.options.DefaultNetwork; n != "" {
		facts = append(facts, result.Fact{Name: "default-network", Value: n})
	}
	if k.profilesNodes() {
		facts = append(facts, result.Fact{Name: "profile", Value: "pods are privileged and sample their nodes"})
	}
	for _, f := range k.vaultStorage.Facts(ctx, e.DaemonSets) {
		facts = append(facts, result.Fact{Name: vault.Name + "." + f.Name, Value: f.Value})
	}
	return slices.Concat(facts, k.identity(ctx), k.storage.Facts(ctx, e.DaemonSets), inspection.Facts(e)), nil
}

// inspectHosts opens a site with a pod and, if possible, a pod in the network of its node, and adds the reports of both
// to e. With network=, and for pods in a mesh, which takes over only traffic between pods, the node needs a separate
// site. No run needs that site, so its failure only leaves facts of the node unknown.
func (k *claimed) inspectHosts(ctx context.Context, e *product.Evidence) error {
	network := k.options.Network
	if network == "" && k.options.EnrolledIn().Name == "" {
		return k.inspectSite(ctx, e, result.PodNodeOther, result.PodNodeSame, result.PodPodOther, result.PodPodSame)
	}
	if err := k.inspectSite(ctx, e, result.PodPodOther, result.PodPodSame); err != nil {
		return err
	}
	pod, admitted := e.Pod, e.Admitted
	k.options.Network = ""
	_ = k.inspectSite(ctx, e, result.PodNodeOther, result.PodNodeSame)
	e.Pod, e.Admitted, k.options.Network = pod, admitted, network
	return ctx.Err()
}

// inspectSite opens a site on the first supported of some paths, and adds its reports to e.
func (k *claimed) inspectSite(ctx context.Context, e *product.Evidence, paths ...result.Path) error {
	for _, path := range paths {
		p, err := k.openPart(ctx, targets.Placement{Path: path})
		if errors.Is(err, result.ErrNotSupported) {
			continue
		}
		if err != nil {
			return err
		}
		g, w := p.group, p.group.Way(path)
		e.Pod = &w.Client
		e.Admitted = g.Pods[g.Plan.Name(manifest.Client)]
		k.probePrograms(ctx, g.Host(manifest.Client))
		if !p.plan.InPod(manifest.Server) {
			e.Node = &w.Server
			asked, err := g.Report(ctx, manifest.Server, preflight.Spec{
				Role: preflight.Witness, Timeout: site.PreflightTimeout, Ask: product.ProxyURLs(g.Listen.Addr().String()),
			})
			if err == nil {
				e.Node.Answers = asked.Answers
			}
		}
		return k.remove(ctx, []*part{p})
	}
	return nil
}
