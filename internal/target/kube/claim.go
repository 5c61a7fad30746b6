package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/knotmeter/knotmeter/internal/target"
	"github.com/knotmeter/knotmeter/internal/target/claim"
	"github.com/knotmeter/knotmeter/internal/target/kube/diagnosis"
	"github.com/knotmeter/knotmeter/internal/target/kube/lease"
	"github.com/knotmeter/knotmeter/internal/target/kube/manifest"
	"github.com/knotmeter/knotmeter/internal/target/kube/watching"
)

// A hold is a target's claim on its cluster.
type hold struct {
	text    string // of the claim
	looked  string // where other experiments were looked for, and what was found
	machine *claim.Machine
	end     func() // of the heartbeat; nil: there is none
}

// Begin reaches the cluster and claims it, and this machine too where the clients are here.
func (k *kubeTarget) Begin(ctx context.Context, p target.Plan) ([]string, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	k.plan = &p
	if err := k.survey(ctx); err != nil {
		return nil, err
	}
	if len(p.Placements) == 0 {
		return nil, nil
	}
	k.hold = &hold{text: claim.Of(p, k.cluster.Now()).Text()}
	warnings, err := k.claim(ctx)
	if err != nil || !k.options.Here {
		return warnings, err
	}
	machine, more, err := claim.OnMachine(ctx, p, claim.Dir())
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
		k.heartbeat()
	}
	found, where, err := lease.Claims(ctx, k.cluster, k.namespace, k.cluster.Now())
	if diagnosis.Denied(err) && k.plan.Share {
		k.hold.looked = "not looked for: Leases may not be listed"
		return append(warnings, fmt.Sprintf("other experiments were not looked for: %v", err)), nil
	}
	if err != nil {
		return nil, err
	}
	more, err := claim.Judge(*k.plan, "the cluster at "+k.cluster.Host(), found)
	if errors.Is(err, claim.ErrBusy) {
		err = fmt.Errorf("%w; one that was killed counts for %.0f minutes more", err, lease.LivesFor.Minutes())
	}
	k.hold.looked = "looked for in " + where
	return append(warnings, more...), err
}

// claimText is what stands on what is made for the experiment, also before it has begun.
func (k *kubeTarget) claimText() string {
	if k.hold != nil {
		return k.hold.text
	}
	return claim.Of(target.Plan{}, k.cluster.Now()).Text()
}

// leaseName is that of the experiment's Lease.
func (k *kubeTarget) leaseName() string { return manifest.ManagedBy + "-" + k.experiment }

// lease claims the cluster from now on.
func (k *kubeTarget) lease(now time.Time) *coordinationv1.Lease {
	at := metav1.NewMicroTime(now)
	c, _ := claim.Parse(k.hold.text) // our own
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Name: k.leaseName(), Namespace: k.namespace, Labels: manifest.ExperimentLabels(k.experiment),
			Annotations: map[string]string{lease.AnnotationClaim: k.hold.text},
		},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: &c.By, LeaseDurationSeconds: new(int32(lease.LivesFor.Seconds())), AcquireTime: &at, RenewTime: &at,
		},
	}
}

// leaveLease makes the Lease in the namespace that there is now.
func (k *kubeTarget) leaveLease(ctx context.Context) error {
	if k.hold == nil {
		return nil
	}
	_, err := k.cluster.CoordinationV1().Leases(k.namespace).Create(ctx, k.lease(k.cluster.Now()), metav1.CreateOptions{})
	return diagnosis.Explain(diagnosis.IgnoreThere(err), k.namespace)
}

// heartbeat renews the Lease until the target is closed.
func (k *kubeTarget) heartbeat() {
	leases, name, c := k.cluster.CoordinationV1().Leases(k.namespace), k.leaseName(), k.cluster
	k.hold.end = watching.Every(k.renewal, func(ctx context.Context) {
		patch, _ := json.Marshal(map[string]any{"spec": map[string]any{"renewTime": metav1.NewMicroTime(c.Now())}})
		// One that is lost is made up for by the next.
		_, _ = leases.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
	})
}

// release ends the claim. The Lease stays where something else does, which clean then knows to be left over: at once,
// or when the last heartbeat is long enough ago, if it can no longer be told.
func (k *kubeTarget) release(ctx context.Context, stays bool) error {
	if k.hold == nil {
		return nil
	}
	_ = k.hold.machine.Close() // the lock ends with the process at the latest
	if k.hold.end == nil {
		return nil
	}
	k.hold.end()
	leases := k.cluster.CoordinationV1().Leases(k.namespace)
	if stays {
		over := []byte(`{"spec":{"renewTime":null}}`)
		_, err := leases.Patch(ctx, k.leaseName(), types.MergePatchType, over, metav1.PatchOptions{})
		if err = diagnosis.IgnoreGone(err); err != nil {
			return fmt.Errorf("its Lease could not be ended, so clean leaves it alone for %v: %w", lease.LivesFor,
				diagnosis.Explain(err, k.namespace))
		}
		return nil
	}
	return diagnosis.Explain(diagnosis.IgnoreGone(leases.Delete(ctx, k.leaseName(), metav1.DeleteOptions{})), k.namespace)
}
