package kube

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// Shares names the API server and the machines of the nodes, by the boot IDs of their kernels: of all nodes, since what
// runs on one that takes no part may share its machine with one that does. Machines that share a host underneath do not
// show it.
func (k *kubeTarget) Shares(ctx context.Context) ([]string, error) {
	if err := k.survey(ctx); err != nil {
		return nil, err
	}
	if len(k.listed) == 0 {
		return nil, errors.New("its nodes may not be listed, and so the machines under them are not known")
	}
	uses := []string{"the API server " + strings.TrimSuffix(k.cluster.Host(), "/")}
	for _, n := range k.listed {
		id := n.Status.NodeInfo.BootID
		if id == "" {
			return nil, fmt.Errorf("the node %s does not tell its boot ID", n.Name)
		}
		uses = append(uses, "the machine with boot ID "+id)
	}
	return uses, nil
}

// Nodes are the pairs that blocks are on in turn, if they are not on the same one.
func (k *kubeTarget) Nodes(ctx context.Context) ([][2]string, error) {
	if !k.options.Rotate {
		return nil, nil
	}
	if err := k.survey(ctx); err != nil {
		return nil, err
	}
	var names [][2]string
	for _, p := range k.nodes.Pairs {
		names = append(names, [2]string{p[0].Name, p[1].Name})
	}
	return names, nil
}
