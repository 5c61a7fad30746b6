package kube

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/knotmeter/knotmeter/internal/targets/kube/diagnosis"
	"github.com/knotmeter/knotmeter/internal/targets/kube/inspection"
	"github.com/knotmeter/knotmeter/internal/targets/kube/manifest"
	"github.com/knotmeter/knotmeter/internal/targets/kube/volumes"
)

// surveyTime is how long a cluster may take to name its nodes.
const surveyTime = 15 * time.Second

// survey reaches the cluster and chooses the nodes, once.
func (k *kubeTarget) survey(ctx context.Context) error {
	if k.nodes != nil {
		return nil
	}
	if k.cluster == nil {
		c, err := k.options.Kubeconfig.Connect()
		if err != nil {
			return err
		}
		k.cluster = c
	}
	if k.storage == nil {
		k.storage = volumes.NewStorage(k.cluster, k.options.Volume, k.options.need())
		k.vaultStorage = volumes.NewStorage(k.cluster, k.options.vaultVolume(), k.options.need())
	}
	ctx, cancel := context.WithTimeout(ctx, surveyTime)
	defer cancel()
	nodes, err := k.cluster.Nodes(ctx, k.options.Client, k.options.Server)
	if apierrors.IsForbidden(err) && k.options.Client != "" {
		choice := inspection.UnlistedNodes(k.options.NodeConstraints)
		k.nodes = &choice
		return nil
	}
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("%w; or name them with client-node= and server-node=", diagnosis.Explain(err, ""))
	}
	if err != nil {
		return k.cluster.Unanswered(err)
	}
	choice, err := inspection.ChooseNodes(nodes, k.options.NodeConstraints)
	if err != nil {
		return err
	}
	k.listed, k.nodes = nodes, &choice
	return nil
}

// participants are the nodes that runs can be on.
func (k *kubeTarget) participants() []corev1.Node {
	names := k.nodes.Names()
	return slices.DeleteFunc(slices.Clone(k.listed), func(n corev1.Node) bool { return !slices.Contains(names, n.Name) })
}

// SiteLife is that of pods.
func (k *kubeTarget) SiteLife() time.Duration { return manifest.Lifetime * time.Second }

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
