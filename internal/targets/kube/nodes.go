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

// surveyTime limits setup requests to the cluster, such as listing its nodes.
const surveyTime = 15 * time.Second

// survey connects to the cluster and chooses the nodes, once.
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
		k.storage = volumes.NewStorage(k.cluster, k.options.Volume, k.options.need(nil))
		k.vaultStorage = volumes.NewStorage(k.cluster, k.options.vaultVolume(), k.options.need(nil))
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
		return k.cluster.ExplainNoAnswer(err)
	}
	choice, err := inspection.ChooseNodes(nodes, k.options.NodeConstraints)
	if err != nil {
		return err
	}
	k.listed, k.nodes = nodes, &choice
	return nil
}

// participants returns the nodes that runs can be on.
func (k *kubeTarget) participants() []corev1.Node {
	names := k.nodes.Names()
	return slices.DeleteFunc(slices.Clone(k.listed), func(n corev1.Node) bool { return !slices.Contains(names, n.Name) })
}

// SiteLife returns the lifetime of pods.
func (k *kubeTarget) SiteLife() time.Duration { return manifest.Lifetime * time.Second }

// Shares names the API server and the machines of all nodes, by the boot IDs of their kernels. Nodes without runs count
// too, because they may share a machine with others. Virtual machines on one host are not recognized.
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

// Nodes returns the pairs of nodes that blocks use in turn, or nil if all use the same pair.
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
