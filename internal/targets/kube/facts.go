package kube

import (
	"context"
	"errors"
	"slices"

	"github.com/knotmeter/knotmeter/internal/family/app/vault"
	"github.com/knotmeter/knotmeter/internal/preflight"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
	"github.com/knotmeter/knotmeter/internal/targets/kube/cluster"
	"github.com/knotmeter/knotmeter/internal/targets/kube/inspection"
	"github.com/knotmeter/knotmeter/internal/targets/kube/manifest"
	"github.com/knotmeter/knotmeter/internal/targets/kube/site"
)

// Facts are what the API server shows, and what the pods of a site see that is opened for them. That it cannot be
// opened is an error: no run could be either.
func (k *kubeTarget) Facts(ctx context.Context) ([]result.Fact, error) {
	if err := k.survey(ctx); err != nil {
		return nil, err
	}
	e := cluster.Gather(ctx, k.cluster)
	e.Nodes, e.Network, e.DefaultNetwork = k.participants(), k.options.Network, k.options.DefaultNetwork
	if e.DefaultNetwork != "" {
		e.Chain = cluster.Chain(ctx, k.cluster, e.DefaultNetwork)
	}
	if err := k.witness(ctx, &e); err != nil {
		return nil, err
	}
	own := "made for the experiment"
	if !k.own {
		own = "given"
	}
	pressure := result.Unknown
	if k.nodeWatches != nil && k.nodeWatches.Watched() {
		pressure = "watched during runs"
	}
	facts := []result.Fact{
		{Name: "kind", Value: "kube"},
		{Name: "node-rule", Value: k.nodes.Rule},
		{Name: "namespace", Value: own},
		{Name: "network-policies", Value: cluster.NetworkPolicies(ctx, k.cluster, k.namespace)},
		{Name: "cilium-network-policies", Value: cluster.CiliumPolicies(ctx, k.cluster, k.namespace)},
		{Name: "node-pressure", Value: pressure},
		{Name: "image", Value: k.options.Image},
	}
	if k.hold != nil {
		facts = append(facts, result.Fact{Name: "other-experiments", Value: k.hold.looked})
	}
	if n := k.options.Network; n != "" {
		facts = append(facts, result.Fact{Name: "network", Value: n})
	}
	if n := k.options.DefaultNetwork; n != "" {
		facts = append(facts, result.Fact{Name: "default-network", Value: n})
	}
	if k.profiles() {
		facts = append(facts, result.Fact{Name: "profile", Value: "pods are privileged and sample their nodes"})
	}
	for _, f := range k.vaultStorage.Facts(ctx, e.DaemonSets) {
		facts = append(facts, result.Fact{Name: vault.Name + "." + f.Name, Value: f.Value})
	}
	return slices.Concat(facts, k.identity(ctx), k.storage.Facts(ctx, e.DaemonSets), e.Facts()), nil
}

// witness opens a site with a pod and, where that can be had, a place in the network of a node, and asks both. Nodes
// are not in a network of pods alone: then they have a site of their own, which no run needs, so that without it they
// stay unknown.
func (k *kubeTarget) witness(ctx context.Context, e *inspection.Evidence) error {
	network := k.options.Network
	if network == "" {
		return k.see(ctx, e, targets.PodNodeOther, targets.PodNodeSame, targets.PodPodOther, targets.PodPodSame)
	}
	if err := k.see(ctx, e, targets.PodPodOther, targets.PodPodSame); err != nil {
		return err
	}
	pod := e.Pod
	k.options.Network = ""
	_ = k.see(ctx, e, targets.PodNodeOther, targets.PodNodeSame)
	e.Pod, k.options.Network = pod, network
	return ctx.Err()
}

// see makes a part of a site on the first of some paths that there is, and asks its places.
func (k *kubeTarget) see(ctx context.Context, e *inspection.Evidence, paths ...targets.Path) error {
	for _, path := range paths {
		p, err := k.only(ctx, targets.Placement{Path: path})
		if errors.Is(err, result.ErrNotSupported) {
			continue
		}
		if err != nil {
			return err
		}
		g, w := p.group, p.group.Way(path)
		e.Pod = &w.Client
		e.Annotations = g.Pods[g.Plan.Name(manifest.Client)].GetAnnotations()
		k.look(ctx, g.Host(manifest.Client))
		if !p.plan.InPod(manifest.Server) {
			e.Node = &w.Server
			asked, err := g.Report(ctx, manifest.Server, preflight.Spec{
				Role: preflight.Witness, Patience: site.MeetTime, Ask: inspection.ProxyURLs(g.Listen.Addr().String()),
			})
			if err == nil {
				e.Node.Answers = asked.Answers
			}
		}
		return k.remove(ctx, []*part{p})
	}
	return nil
}
