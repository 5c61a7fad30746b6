package kube

import (
	"context"
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/knotmeter/knotmeter/internal/meet"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/target"
)

// Facts are what the API server shows, and what the pods of a site see that is opened for them. That it can not be
// opened is an error: no run could be either.
func (k *kubeTarget) Facts(ctx context.Context) ([]result.Fact, error) {
	if err := k.survey(ctx); err != nil {
		return nil, err
	}
	e := k.cluster.evidence(ctx)
	e.Nodes = k.participants()
	if err := k.witness(ctx, &e); err != nil {
		return nil, err
	}
	own := "made for the experiment"
	if !k.own {
		own = "given"
	}
	facts := []result.Fact{
		{Name: "kind", Value: "kube"},
		{Name: "node-rule", Value: k.nodes.rule},
		{Name: "namespace", Value: own},
		{Name: "network-policies", Value: k.cluster.policies(ctx, k.namespace)},
		{Name: "image", Value: k.options.Image},
	}
	return append(facts, e.facts()...), nil
}

// participants are the nodes that runs can be on.
func (k *kubeTarget) participants() []corev1.Node {
	var names []string
	for _, w := range k.nodes.alone {
		names = append(names, w.Name)
	}
	for _, p := range k.nodes.pairs {
		names = append(names, p[0].Name, p[1].Name)
	}
	return slices.DeleteFunc(slices.Clone(k.listed), func(n corev1.Node) bool { return !slices.Contains(names, n.Name) })
}

// evidence is what the API server shows. What it does not show to us stays unknown.
func (c *cluster) evidence(ctx context.Context) evidence {
	e := evidence{Config: map[string]map[string]string{}}
	if v, err := c.Discovery().ServerVersion(); err == nil {
		e.Version = v.GitVersion
	}
	if sets, err := c.AppsV1().DaemonSets(corev1.NamespaceAll).List(ctx, metav1.ListOptions{}); err == nil {
		e.DaemonSets = sets.Items
	}
	for _, name := range configMaps() {
		if m, err := c.CoreV1().ConfigMaps(name[0]).Get(ctx, name[1], metav1.GetOptions{}); err == nil {
			e.Config[name[0]+"/"+name[1]] = m.Data
		}
	}
	return e
}

// policies is how many policies there are in a namespace.
func (c *cluster) policies(ctx context.Context, namespace string) string {
	found, err := c.NetworkingV1().NetworkPolicies(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return result.Unknown
	}
	var names []string
	for _, p := range found.Items {
		names = append(names, p.Name)
	}
	slices.Sort(names)
	return list(names)
}

// witness opens a site with a pod and, where that can be had, a place in the network of a node, and asks both.
func (k *kubeTarget) witness(ctx context.Context, e *evidence) error {
	paths := []target.Path{target.PodNodeOther, target.PodNodeSame, target.PodPodOther, target.PodPodSame}
	for _, p := range paths {
		s, err := k.open(ctx, target.Placement{Path: p})
		if errors.Is(err, result.ErrNotSupported) {
			continue
		}
		if err != nil {
			return err
		}
		e.Pod = &s.client
		if !s.plan.inPod(server) {
			e.Node = &s.server
			asked, err := s.report(ctx, server, meet.Spec{Version: meet.Version, Role: meet.Witness, Patience: meetTime, Ask: proxyURLs(s.listen.Addr().String())})
			if err == nil {
				e.Node.Answers = asked.Answers
			}
		}
		return s.remove(ctx)
	}
	return nil
}
