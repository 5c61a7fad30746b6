package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"github.com/knotmeter/knotmeter/internal/targets"
	"github.com/knotmeter/knotmeter/internal/targets/kube/cluster"
	"github.com/knotmeter/knotmeter/internal/targets/kube/diagnosis"
	"github.com/knotmeter/knotmeter/internal/targets/kube/manifest"
)

// An experiment claims a cluster by a Lease in its namespace, which it renews for as long as it runs. The Lease shows
// other experiments that the cluster is in use, and makes `knotmeter clean` keep the experiment's objects.

const (
	// annotationClaim is the annotation with the claim, on the namespace and the Lease of an experiment.
	annotationClaim = "knotmeter.dev/claim"

	renewInterval = 30 * time.Second // between heartbeats
	// leaseDuration is how long an experiment counts as running after its last heartbeat; two in a row may be lost.
	leaseDuration = 2 * time.Minute
)

// A claimLease is the Lease of an experiment of this process.
type claimLease struct {
	cluster *cluster.Cluster
	leases  coordinationclient.LeaseInterface
	meta    metav1.ObjectMeta
	stop    func() // stops the heartbeat; nil if none was started

	mu     sync.Mutex
	last   time.Time // time of day of the last successful heartbeat, so that time asleep counts
	lapsed string    // why others may have considered the experiment over since the last LapseReason, or ""
}

// newClaimLease returns the Lease of an experiment with the text of its claim. Create creates it on the cluster.
func newClaimLease(c *cluster.Cluster, namespace, experiment, text string) *claimLease {
	return &claimLease{cluster: c, leases: c.CoordinationV1().Leases(namespace), meta: metav1.ObjectMeta{
		Name: manifest.ExperimentName(experiment), Namespace: namespace, Labels: manifest.ExperimentLabels(experiment),
		Annotations: map[string]string{annotationClaim: text},
	}}
}

// Create creates the Lease on the cluster, unless it exists. An experiment that makes no claim has none.
func (l *claimLease) Create(ctx context.Context) error {
	if l == nil {
		return nil
	}
	at := metav1.NewMicroTime(l.cluster.Now())
	claim, _ := targets.ParseClaim(l.meta.Annotations[annotationClaim]) // our own
	_, err := l.leases.Create(ctx, &coordinationv1.Lease{ObjectMeta: l.meta, Spec: coordinationv1.LeaseSpec{
		HolderIdentity: &claim.By, LeaseDurationSeconds: new(int32(leaseDuration.Seconds())),
		AcquireTime: &at, RenewTime: &at,
	}}, metav1.CreateOptions{})
	if err = diagnosis.IgnoreAlreadyExists(err); err == nil {
		l.mu.Lock()
		l.last = time.Now().Round(0)
		l.mu.Unlock()
	}
	return diagnosis.Explain(err, l.meta.Namespace)
}

// Renew starts to renew the Lease at intervals until End. The next heartbeat makes up for a lost one.
func (l *claimLease) Renew(interval time.Duration) {
	l.stop = cluster.Every(interval, func(ctx context.Context) {
		l.recordHeartbeat(l.writeRenewTime(ctx, new(metav1.NewMicroTime(l.cluster.Now()))))
	})
}

// recordHeartbeat takes the error of a heartbeat, nil for a success, and notes whether the Lease lapsed.
func (l *claimLease) recordHeartbeat(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now().Round(0)
	silent := now.Sub(l.last)
	switch {
	case apierrors.IsNotFound(err):
		l.lapsed = "the Lease of the experiment was removed"
	case !l.last.IsZero() && silent >= leaseDuration:
		l.lapsed = fmt.Sprintf("the Lease of the experiment was not renewed for %.0f s, and counts for %.0f s",
			silent.Seconds(), leaseDuration.Seconds())
	}
	if err == nil {
		l.last = now
	}
}

// LapseReason returns why others may have considered the experiment over since the last call, and may have begun
// meanwhile; "" if they cannot have.
func (l *claimLease) LapseReason() string {
	if l == nil || l.stop == nil {
		return ""
	}
	l.mu.Lock()
	late := time.Now().Round(0).Sub(l.last) >= leaseDuration
	l.mu.Unlock()
	if late { // the next heartbeat has not been sent yet
		l.recordHeartbeat(errLate)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	why := l.lapsed
	l.lapsed = ""
	return why
}

// Reclaim creates or renews a Lease that lapsed.
func (l *claimLease) Reclaim(ctx context.Context) error {
	if err := l.Create(ctx); l == nil || err != nil {
		return err
	}
	return diagnosis.Explain(l.writeRenewTime(ctx, new(metav1.NewMicroTime(l.cluster.Now()))), l.meta.Namespace)
}

// errLate stands for a heartbeat that is overdue.
var errLate = errors.New("late")

// writeRenewTime sets the time of the last heartbeat; nil marks the experiment as over.
func (l *claimLease) writeRenewTime(ctx context.Context, at *metav1.MicroTime) error {
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"renewTime": at}})
	if err == nil {
		_, err = l.leases.Patch(ctx, l.meta.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	}
	return err
}

// End ends the heartbeat and deletes the Lease. If stays is set, something else of the experiment is left: then End
// keeps the Lease and clears its renew time, so that clean may remove what is left at once. If the renew time cannot be
// cleared, clean waits for leaseDuration after the last heartbeat.
func (l *claimLease) End(ctx context.Context, stays bool) error {
	if l == nil || l.stop == nil {
		return nil
	}
	l.stop()
	end := func() error { return l.writeRenewTime(ctx, nil) }
	if !stays {
		end = func() error { return l.leases.Delete(ctx, l.meta.Name, metav1.DeleteOptions{}) }
	}
	if err := diagnosis.IgnoreNotFound(end()); err != nil {
		return fmt.Errorf("its Lease could not be ended, so clean leaves it alone for %v: %w", leaseDuration,
			diagnosis.Explain(err, l.meta.Namespace))
	}
	return nil
}

// listClaims returns the claims of running experiments whose Leases the user may list, and in words where it looked.
func listClaims(
	ctx context.Context, api kubernetes.Interface, namespace string, now time.Time,
) (found []targets.Claim, where string, err error) {
	leases, where, err := leasesOf(ctx, api, namespace)
	for _, l := range leases {
		if isAlive(l, now, leaseDuration) {
			one, _ := targets.ParseClaim(l.Annotations[annotationClaim]) // unreadable claims are empty
			found = append(found, one)
		}
	}
	return found, where, err
}

// leasesOf returns the Leases of experiments: of the whole cluster, or of one namespace if no others may be listed.
func leasesOf(
	ctx context.Context, api kubernetes.Interface, namespace string,
) (_ []coordinationv1.Lease, where string, err error) {
	which := metav1.ListOptions{LabelSelector: manifest.ManagedSelector()}
	where = "the whole cluster"
	found, err := api.CoordinationV1().Leases(metav1.NamespaceAll).List(ctx, which)
	if apierrors.IsForbidden(err) && namespace != "" {
		where = "the namespace " + namespace + " alone: Leases of others may not be listed"
		found, err = api.CoordinationV1().Leases(namespace).List(ctx, which)
	}
	if err != nil {
		return nil, "", diagnosis.Explain(err, namespace)
	}
	return found.Items, where, nil
}

// isAlive reports whether the experiment of a Lease counts as running: whether its last heartbeat is more recent than
// lives.
func isAlive(l coordinationv1.Lease, now time.Time, lives time.Duration) bool {
	return l.Spec.RenewTime != nil && now.Sub(l.Spec.RenewTime.Time) < lives
}
