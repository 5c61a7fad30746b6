package kube

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/knotmeter/knotmeter/internal/targets/kube/inspection"
)

// Environment returns variables with the kubeconfig and the context, as far as the target names them.
func (k *kubeTarget) Environment() []string {
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

// Settle reads and watches the nodes anew after a switch, and forgets refused paths and storage. It returns an error
// unless the experiment's nodes are Ready; whether pods reach each other is left to facts and sites.
func (k *kubeTarget) Settle(ctx context.Context) error {
	if err := k.survey(ctx); err != nil {
		return err
	}
	clear(k.refused)
	k.storage.Forget()
	k.vaultStorage.Forget()
	if k.nodeWatches != nil { // they would report the effects of the switch
		k.nodeWatches.End()
		k.nodeWatches = nil
	}
	k.cluster.RetryAfterOutage()
	if len(k.listed) == 0 {
		return nil // no right to list them
	}
	ctx, cancel := context.WithTimeout(ctx, surveyTime)
	defer cancel()
	nodes, err := k.cluster.Nodes(ctx, k.options.Client, k.options.Server)
	if err != nil {
		return k.cluster.ExplainNoAnswer(err)
	}
	for _, name := range k.nodes.Names() {
		i := slices.IndexFunc(nodes, func(n corev1.Node) bool { return n.Name == name })
		switch {
		case i < 0:
			return fmt.Errorf("the node %s is gone", name)
		case !inspection.Ready(nodes[i]):
			return fmt.Errorf("the node %s is not Ready", name)
		}
	}
	k.listed = nodes
	return nil
}
