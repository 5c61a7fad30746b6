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

	"github.com/knotmeter/knotmeter/internal/targets/kube/cluster"
	"github.com/knotmeter/knotmeter/internal/targets/kube/diagnosis"
	"github.com/knotmeter/knotmeter/internal/targets/kube/inspection"
	"github.com/knotmeter/knotmeter/internal/targets/kube/manifest"
	"github.com/knotmeter/knotmeter/internal/targets/kube/volumes"
)

// surveyTime limits setup requests to the cluster, such as listing its nodes.
const surveyTime = 15 * time.Second

// reach connects to the cluster and chooses the nodes, once.
func (k *kubeTarget) reach(ctx context.Context) (*reached, error) {
	if k.reached != nil {
		return k.reached, nil
	}
	if k.connection == nil {
		c, err := k.options.Kubeconfig.Connect(ctx)
		if err != nil {
			return nil, err
		}
		k.connection = c
	}
	c := k.connection
	r := &reached{named: k.named, cluster: c, nodeWatches: cluster.NewNodes(c.CoreV1().Nodes()),
		storage:      volumes.NewStorage(c, k.options.Volume, k.options.need(nil)),
		vaultStorage: volumes.NewStorage(c, k.options.vaultVolume(), k.options.need(nil)),
	}
	if err := r.chooseAll(ctx); err != nil {
		return nil, err
	}
	k.reached = r
	return r, nil
}

// chooseAll lists the nodes and chooses those of the experiment. If the user may not list nodes, it takes the named
// ones.
func (k *reached) chooseAll(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, surveyTime)
	defer cancel()
	listed, err := k.cluster.Nodes(ctx, k.options.Client, k.options.Server)
	switch {
	case apierrors.IsForbidden(err) && k.options.Client != "":
		k.nodes = inspection.UnlistedNodes(k.options.NodeConstraints)
		return nil
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%w; or name them with client-node= and server-node=", diagnosis.Explain(err, ""))
	case err != nil:
		return k.cluster.ExplainNoAnswer(err)
	}
	k.listed = listed
	k.nodes, err = inspection.ChooseNodes(listed, k.options.NodeConstraints)
	return err
}

// participants returns the listed nodes that runs may use.
func (k *reached) participants() []corev1.Node {
	names := k.nodes.Names()
	return slices.DeleteFunc(slices.Clone(k.listed), func(n corev1.Node) bool { return !slices.Contains(names, n.Name) })
}

// SiteLife returns the lifetime of pods.
func (k *named) SiteLife() time.Duration { return manifest.Lifetime * time.Second }

// Shares names the API server, and the machines of all nodes by the boot IDs of their kernels. Nodes without runs count
// too, because they may be on the same machine as nodes of another target. Virtual machines on one host are not
// recognized.
func (k *kubeTarget) Shares(ctx context.Context) ([]string, error) {
	r, err := k.reach(ctx)
	if err != nil {
		return nil, err
	}
	if len(r.listed) == 0 {
		return nil, errors.New("its nodes may not be listed, and so the machines under them are not known")
	}
	uses := []string{"the API server " + strings.TrimSuffix(r.cluster.Host(), "/")}
	for _, n := range r.listed {
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
	r, err := k.reach(ctx)
	if err != nil {
		return nil, err
	}
	var names [][2]string
	for _, p := range r.nodes.Pairs {
		names = append(names, [2]string{p[0].Name, p[1].Name})
	}
	return names, nil
}
