package kube

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/knotmeter/knotmeter/internal/targets/kube/cluster"
	"github.com/knotmeter/knotmeter/internal/targets/kube/inspection"
)

// Environment returns the variables KUBECONFIG and KNOTMETER_CONTEXT for switch commands, as far as the target names a
// file and a context.
func (k *named) Environment() []string {
	var list []string
	if file := k.options.Kubeconfig.File; file != "" {
		if whole, err := filepath.Abs(file); err == nil {
			file = whole
		}
		list = append(list, "KUBECONFIG="+file)
	}
	if name, _, err := k.options.Kubeconfig.Load(); err == nil && name != "" {
		list = append(list, "KNOTMETER_CONTEXT="+name)
	}
	return list
}

// Settle lists the nodes again after a switch, and forgets refused paths, storage classes and the state of watched
// nodes. It returns an error unless the experiment's nodes are Ready. Whether pods reach each other is checked later,
// by Facts and Open.
func (k *kubeTarget) Settle(ctx context.Context) error {
	r, err := k.reach(ctx)
	if err != nil {
		return err
	}
	clear(k.refused)
	r.storage.Forget()
	r.vaultStorage.Forget()
	r.nodeWatches.End() // they would report the effects of the switch
	r.nodeWatches = cluster.NewNodes(r.cluster.CoreV1().Nodes())
	r.cluster.RetryAfterOutage()
	if len(r.listed) == 0 {
		return nil // no right to list them
	}
	ctx, cancel := context.WithTimeout(ctx, surveyTime)
	defer cancel()
	nodes, err := r.cluster.Nodes(ctx, k.options.Client, k.options.Server)
	if err != nil {
		return r.cluster.ExplainNoAnswer(err)
	}
	for _, name := range r.nodes.Names() {
		i := slices.IndexFunc(nodes, func(n corev1.Node) bool { return n.Name == name })
		switch {
		case i < 0:
			return fmt.Errorf("the node %s is gone", name)
		case !inspection.Ready(nodes[i]):
			return fmt.Errorf("the node %s is not Ready", name)
		}
	}
	r.listed = nodes
	return nil
}
