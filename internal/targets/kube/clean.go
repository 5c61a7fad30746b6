package kube

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/knotmeter/knotmeter/internal/family/app/vault"
	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/targets"
	"github.com/knotmeter/knotmeter/internal/targets/kube/cleanup"
	"github.com/knotmeter/knotmeter/internal/targets/kube/site"
)

// Clean removes what experiments that were interrupted left on the cluster that a target names, and in the Vault that
// is asked from there, and returns the names of it. A Vault that only pods reach is cleaned from one, with the agent
// that agents find where inject=yes.
func Clean(ctx context.Context, spec targets.Spec, agents site.Agents, how targets.Cleaning) ([]string, error) {
	o, err := parse(spec)
	if err != nil {
		return nil, err
	}
	c, err := o.Kubeconfig.Connect()
	if err != nil {
		return nil, err
	}
	removed, err := cleanup.Clean(ctx, c, o.Namespace, how, cleanup.LivesFor)
	// After the pods, whose agents would still use it.
	mounts, left := o.Vault.Clean(ctx, vault.Here(), how, func(ctx context.Context, e host.Endpoint) ([]string, error) {
		return cleanFromPod(ctx, newTarget(o, agents), e, how)
	})
	return append(removed, mounts...), errors.Join(err, left)
}

// cleanFromPod removes what runs left in a Vault, from a pod such as they ask it from.
func cleanFromPod(
	ctx context.Context, k *kubeTarget, e host.Endpoint, how targets.Cleaning,
) (removed []string, err error) {
	defer func() {
		if err = errors.Join(err, k.Close()); err != nil {
			err = fmt.Errorf("from a pod: %w", err)
		}
	}()
	p := targets.Placement{} // a client
	k.plan = &targets.Plan{Placements: []targets.Placement{p}}
	made, err := k.only(ctx, p)
	if err != nil {
		return nil, k.judge(ctx, err)
	}
	errand := vault.Errand{Endpoint: e, Clean: true, All: how.All, DryRun: true, Patience: vaultTime} // to list first
	said, err := made.group.Errand(ctx, errand)
	for _, l := range said.Found {
		how.Found(l)
	}
	if errand.DryRun = how.DryRun; err == nil && said.Error == "" && !errand.DryRun {
		said, err = made.group.Errand(ctx, errand)
	}
	if said.Error != "" {
		err = errors.Join(err, errors.New(said.Error))
	}
	return said.Removed, errors.Join(err, k.removeLater(ctx, []*part{made}))
}

// vaultTime is how long a Vault may take to give back what runs left there.
const vaultTime = time.Minute
