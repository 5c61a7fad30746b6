package kube

import (
	"context"
	"errors"
	"fmt"

	"github.com/knotmeter/knotmeter/internal/targets"
	"github.com/knotmeter/knotmeter/internal/targets/kube/cleanup"
	"github.com/knotmeter/knotmeter/internal/targets/kube/diagnosis"
)

// A hold is a target's claim on its cluster.
type hold struct {
	text    string // of the claim
	looked  string // where other experiments were looked for, and what was found
	machine *targets.MachineClaim
	lease   *cleanup.Lease // once there is a namespace for it
	busy    error          // another experiment, which began while the claim had lapsed, when it was last looked for
}

// Begin reaches the cluster and claims it, and this machine too where the clients are here.
func (k *kubeTarget) Begin(ctx context.Context, p targets.Plan) ([]string, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	k.settleOn(p)
	if err := k.survey(ctx); err != nil {
		return nil, err
	}
	if err := k.same(ctx, p.Earlier); err != nil {
		return nil, err
	}
	if len(p.Placements) == 0 {
		return nil, nil
	}
	k.hold = &hold{text: p.Claim(k.cluster.Now()).Text()}
	warnings, err := k.claim(ctx)
	if err != nil || !k.options.Here {
		return warnings, err
	}
	machine, more, err := targets.ClaimMachine(ctx, p)
	k.hold.machine = machine
	return append(warnings, more...), err
}

// claim leaves the Lease and looks for those of others, in this order: one of two that begin at the same time sees the
// other.
func (k *kubeTarget) claim(ctx context.Context) (warnings []string, err error) {
	err = k.enter(ctx)
	switch {
	case diagnosis.Denied(err) && k.plan.Share && k.namespace != "":
		warnings = append(warnings, fmt.Sprintf("the cluster was not claimed, and other experiments do not see this one: %v",
			err))
	case diagnosis.Denied(err) && k.namespace != "":
		return nil, fmt.Errorf("%w; or measure without a claim with --share", err)
	case err != nil:
		return nil, err
	default:
		k.hold.lease.Renew(k.renewal)
	}
	found, where, err := cleanup.Claims(ctx, k.cluster, k.namespace, k.cluster.Now())
	if diagnosis.Denied(err) && k.plan.Share {
		k.hold.looked = "not looked for: Leases may not be listed"
		return append(warnings, fmt.Sprintf("other experiments were not looked for: %v", err)), nil
	}
	if err != nil {
		return nil, err
	}
	more, err := k.plan.CheckClaims("the cluster at "+k.cluster.Host(), found)
	if errors.Is(err, targets.ErrBusy) {
		err = fmt.Errorf("%w; one that was killed counts for %.0f minutes more", err, cleanup.LivesFor.Minutes())
	}
	k.hold.looked = "looked for in " + where
	return append(warnings, more...), err
}

// lapse says why others may have taken the experiment for over since it was asked last, and claims the cluster again.
// Those that run there now are an error that Is targets.ErrBusy, unless the plan shares the cluster.
func (k *kubeTarget) lapse(ctx context.Context) (why string, err error) {
	if k.hold == nil {
		return "", nil
	}
	if why = k.hold.lease.Lapsed(); why == "" && k.hold.busy == nil {
		return "", nil
	}
	ctx, cancel := context.WithTimeout(ctx, surveyTime)
	defer cancel()
	again := k.hold.lease.Again(ctx) // before the look at others, as at the beginning
	found, _, err := cleanup.Claims(ctx, k.cluster, k.namespace, k.cluster.Now())
	if err == nil {
		_, err = k.plan.CheckClaims("the cluster at "+k.cluster.Host(), found)
	}
	if k.hold.busy = nil; errors.Is(err, targets.ErrBusy) {
		k.hold.busy = err
		return why, err
	}
	if diagnosis.NamespaceGone(again) {
		again = nil // the next site makes both again, or says why it cannot
	}
	return why, again
}

// held adds to what became of a place that the claim on the cluster lapsed meanwhile.
func (k *kubeTarget) held(health func(context.Context) []string) func(context.Context) []string {
	return func(ctx context.Context) []string {
		var list []string
		why, err := k.lapse(ctx)
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

// claimText is what stands on what is made for the experiment, also before it has begun.
func (k *kubeTarget) claimText() string {
	if k.hold != nil {
		return k.hold.text
	}
	return targets.Plan{}.Claim(k.cluster.Now()).Text()
}

// leaveLease makes the Lease in the namespace that there is now.
func (k *kubeTarget) leaveLease(ctx context.Context) error {
	if k.hold == nil {
		return nil
	}
	if k.hold.lease == nil {
		k.hold.lease = cleanup.NewLease(k.cluster, k.namespace, k.experiment, k.hold.text)
	}
	return k.hold.lease.Make(ctx)
}

// release ends the claim. The Lease stays where something else does.
func (k *kubeTarget) release(ctx context.Context, stays bool) error {
	if k.hold == nil {
		return nil
	}
	_ = k.hold.machine.Close() // the lock ends with the process at the latest
	return k.hold.lease.End(ctx, stays)
}
