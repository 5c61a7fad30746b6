package kube

import (
	"context"
	"errors"
	"fmt"

	"github.com/knotmeter/knotmeter/internal/targets"
	"github.com/knotmeter/knotmeter/internal/targets/kube/diagnosis"
)

// Begin connects to the cluster and claims it, and claims this machine too if it is the client. It returns warnings.
func (k *kubeTarget) Begin(ctx context.Context, p targets.Plan) ([]string, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	k.setPlan(p)
	r, err := k.reach(ctx)
	if err != nil {
		return nil, err
	}
	if err := r.checkIdentity(ctx, p.Earlier); err != nil {
		return nil, err
	}
	if len(p.Placements) == 0 {
		return nil, nil
	}
	c := k.claimedStage(r)
	c.lease = newClaimLease(r.cluster, c.namespace, k.experiment, c.claimText)
	warnings, err := c.claimCluster(ctx)
	if err != nil || !k.options.Here {
		return warnings, err
	}
	machine, more, err := targets.ClaimMachine(ctx, p)
	c.machine = machine
	return append(warnings, more...), err
}

// claimCluster claims the cluster, and returns warnings. It creates the Lease before it looks for those of others, so
// that at least one of two experiments that begin at the same time sees the other.
func (k *claimed) claimCluster(ctx context.Context) (warnings []string, err error) {
	err = k.ensureNamespace(ctx)
	switch {
	case diagnosis.Denied(err) && k.plan.Share && k.exists:
		warnings = append(warnings, fmt.Sprintf("the cluster was not claimed, and other experiments do not see this one: %v",
			err))
	case diagnosis.Denied(err) && k.exists:
		return nil, fmt.Errorf("%w; or measure without a claim with --share", err)
	case err != nil:
		return nil, err
	default:
		k.lease.Renew(k.heartbeat)
	}
	found, where, err := listClaims(ctx, k.cluster, k.namespace, k.cluster.Now())
	if diagnosis.Denied(err) && k.plan.Share {
		k.searchedScope = "not looked for: Leases may not be listed"
		return append(warnings, fmt.Sprintf("other experiments were not looked for: %v", err)), nil
	}
	if err != nil {
		return nil, err
	}
	more, err := k.plan.CheckClaims("the cluster at "+k.cluster.Host(), found)
	if errors.Is(err, targets.ErrBusy) {
		err = fmt.Errorf("%w; one that was killed counts for %.0f minutes more", err, leaseDuration.Minutes())
	}
	k.searchedScope = "looked for in " + where
	return append(warnings, more...), err
}

// renewLapsedClaim claims the cluster again if the claim lapsed. It returns why others may have considered the
// experiment over since the last call; "" if they cannot have. The error Is targets.ErrBusy if others run there now,
// unless the plan shares the cluster.
func (k *claimed) renewLapsedClaim(ctx context.Context) (why string, err error) {
	if why = k.lease.LapseReason(); why == "" && k.errBusy == nil {
		return "", nil
	}
	ctx, cancel := context.WithTimeout(ctx, surveyTime)
	defer cancel()
	reclaimErr := k.lease.Reclaim(ctx) // before looking for others, as in claimCluster
	found, _, err := listClaims(ctx, k.cluster, k.namespace, k.cluster.Now())
	if err == nil {
		_, err = k.plan.CheckClaims("the cluster at "+k.cluster.Host(), found)
	}
	if k.errBusy = nil; errors.Is(err, targets.ErrBusy) {
		k.errBusy = err
		return why, err
	}
	if diagnosis.NamespaceGone(reclaimErr) {
		reclaimErr = nil // the next site creates namespace and Lease again, or fails
	}
	return why, reclaimErr
}

// withClaimHealth returns a health check that calls health, which may be nil, and also reports whether the claim on the
// cluster lapsed.
func (k *claimed) withClaimHealth(health func(context.Context) []string) func(context.Context) []string {
	return func(ctx context.Context) []string {
		var list []string
		why, err := k.renewLapsedClaim(ctx)
		if why != "" {
			list = []string{why + ": another experiment may have disturbed this one"}
		}
		if err != nil {
			list = append(list, err.Error())
		}
		if health != nil {
			list = append(list, health(ctx)...)
		}
		return list
	}
}

// releaseClaim ends the claims on this machine and on the cluster. If stays is set, something else is left and the
// Lease stays too.
func (k *claimed) releaseClaim(ctx context.Context, stays bool) error {
	_ = k.machine.Close() // the lock ends with the process at the latest
	return k.lease.End(ctx, stays)
}
