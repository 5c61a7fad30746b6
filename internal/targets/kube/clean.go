package kube

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
	"github.com/knotmeter/knotmeter/internal/targets/kube/site"
	"github.com/knotmeter/knotmeter/internal/vault"
)

// Clean removes the leftovers of interrupted experiments on a target's cluster, and in the Vault that the target names,
// and returns their names. A Vault that only pods reach is cleaned from a pod; agents provides its agent if inject=yes.
func Clean(ctx context.Context, spec result.Spec, agents site.Agents, how targets.Cleaning) ([]string, error) {
	o, err := parse(spec)
	if err != nil {
		return nil, err
	}
	c, err := o.Kubeconfig.Connect(ctx)
	if err != nil {
		return nil, err
	}
	removed, err := cleanCluster(ctx, c, o.Namespace, how, leaseDuration)
	// Vault comes after the pods, whose agents would still use it.
	mounts, left := o.Vault.Clean(ctx, vault.Here(), how, func(ctx context.Context, e host.Endpoint) ([]string, error) {
		return cleanFromPod(ctx, newTarget(o, nil, agents), e, how)
	})
	return append(removed, mounts...), errors.Join(err, left)
}

// cleanFromPod removes the leftovers in a Vault from a pod like those of runs.
func cleanFromPod(
	ctx context.Context, k *kubeTarget, e host.Endpoint, how targets.Cleaning,
) (removed []string, err error) {
	defer func() {
		if err = errors.Join(err, k.Close()); err != nil {
			err = fmt.Errorf("from a pod: %w", err)
		}
	}()
	p := targets.Placement{} // a client
	k.plan.Placements = []targets.Placement{p}
	c, err := k.reachForSites(ctx)
	if err != nil {
		return nil, err
	}
	client, err := c.openPart(ctx, p)
	if err != nil {
		return nil, c.markUnavailable(ctx, err)
	}
	task := vault.Task{Endpoint: e, Clean: true, All: how.All, DryRun: true, Timeout: vaultCleanTime} // list first
	outcome, err := client.group.RunVaultTask(ctx, task)
	for _, l := range outcome.Found {
		how.Found(l)
	}
	if task.DryRun = how.DryRun; err == nil && outcome.Error == "" && !task.DryRun {
		outcome, err = client.group.RunVaultTask(ctx, task)
	}
	if outcome.Error != "" {
		err = errors.Join(err, errors.New(outcome.Error))
	}
	return outcome.Removed, errors.Join(err, c.removeAfterError(ctx, []*part{client}))
}

// vaultCleanTime limits the removal of leftovers in a Vault.
const vaultCleanTime = time.Minute
