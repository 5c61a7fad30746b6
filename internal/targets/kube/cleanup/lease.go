package cleanup

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

// An experiment claims a cluster by a Lease in its namespace, which it renews for as long as it runs. By that, others
// learn of it, and `knotmeter clean` leaves what belongs to it alone.

const (
	// AnnotationClaim has the claim on what is made for a whole experiment: its namespace and its Lease.
	AnnotationClaim = "knotmeter.dev/claim"

	Renewal = 30 * time.Second // between two heartbeats
	// LivesFor is how long an experiment counts as running after its last heartbeat: four may be lost.
	LivesFor = 2 * time.Minute
)

// A Lease is that of an experiment of this program.
type Lease struct {
	cluster *cluster.Cluster
	leases  coordinationclient.LeaseInterface
	meta    metav1.ObjectMeta
	stop    func() // of the heartbeat; nil: there is none

	mu     sync.Mutex
	last   time.Time // of the last heartbeat that arrived, by the clock that goes on while the machine sleeps
	lapsed string    // why others may have taken the experiment for over since it was asked last
}

// NewLease is that of an experiment in a namespace, with the text of its claim. It is not made yet.
func NewLease(c *cluster.Cluster, namespace, experiment, text string) *Lease {
	return &Lease{cluster: c, leases: c.CoordinationV1().Leases(namespace), meta: metav1.ObjectMeta{
		Name: manifest.ExperimentName(experiment), Namespace: namespace, Labels: manifest.ExperimentLabels(experiment),
		Annotations: map[string]string{AnnotationClaim: text},
	}}
}

// Make makes the Lease, unless it is there.
func (l *Lease) Make(ctx context.Context) error {
	at := metav1.NewMicroTime(l.cluster.Now())
	said, _ := targets.ParseClaim(l.meta.Annotations[AnnotationClaim]) // our own
	_, err := l.leases.Create(ctx, &coordinationv1.Lease{ObjectMeta: l.meta, Spec: coordinationv1.LeaseSpec{
		HolderIdentity: &said.By, LeaseDurationSeconds: new(int32(LivesFor.Seconds())), AcquireTime: &at, RenewTime: &at,
	}}, metav1.CreateOptions{})
	if err = diagnosis.IgnoreAlreadyExists(err); err == nil {
		l.mu.Lock()
		l.last = time.Now().Round(0)
		l.mu.Unlock()
	}
	return diagnosis.Explain(err, l.meta.Namespace)
}

// Renew renews the Lease at intervals until it ends. A heartbeat that is lost is made up for by the next.
func (l *Lease) Renew(interval time.Duration) {
	l.stop = cluster.Every(interval, func(ctx context.Context) {
		l.beat(l.heard(ctx, new(metav1.NewMicroTime(l.cluster.Now()))))
	})
}

// beat takes what became of a heartbeat.
func (l *Lease) beat(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now().Round(0)
	silent := now.Sub(l.last)
	switch {
	case apierrors.IsNotFound(err):
		l.lapsed = "the Lease of the experiment was removed"
	case !l.last.IsZero() && silent >= LivesFor:
		l.lapsed = fmt.Sprintf("the Lease of the experiment was not renewed for %.0f s, and counts for %.0f s",
			silent.Seconds(), LivesFor.Seconds())
	}
	if err == nil {
		l.last = now
	}
}

// Lapsed says why others may have taken the experiment for over since it was asked last; empty if they cannot have.
// They may have begun meanwhile.
func (l *Lease) Lapsed() string {
	if l == nil || l.stop == nil {
		return ""
	}
	l.mu.Lock()
	late := time.Now().Round(0).Sub(l.last) >= LivesFor
	l.mu.Unlock()
	if late { // the heartbeat is still to come
		l.beat(errLate)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	why := l.lapsed
	l.lapsed = ""
	return why
}

// Again makes or renews a Lease that lapsed.
func (l *Lease) Again(ctx context.Context) error {
	if err := l.Make(ctx); err != nil {
		return err
	}
	return diagnosis.Explain(l.heard(ctx, new(metav1.NewMicroTime(l.cluster.Now()))), l.meta.Namespace)
}

// errLate is a heartbeat that did not arrive yet.
var errLate = errors.New("late")

// heard writes when the experiment was heard of last; nil: it is over.
func (l *Lease) heard(ctx context.Context, at *metav1.MicroTime) error {
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"renewTime": at}})
	if err == nil {
		_, err = l.leases.Patch(ctx, l.meta.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	}
	return err
}

// End ends a Lease that was renewed. It stays where something else does, which Clean then knows to be left over: at
// once, or when the last heartbeat is long enough ago, if it can no longer be told.
func (l *Lease) End(ctx context.Context, stays bool) error {
	if l == nil || l.stop == nil {
		return nil
	}
	l.stop()
	end := func() error { return l.heard(ctx, nil) }
	if !stays {
		end = func() error { return l.leases.Delete(ctx, l.meta.Name, metav1.DeleteOptions{}) }
	}
	if err := diagnosis.IgnoreNotFound(end()); err != nil {
		return fmt.Errorf("its Lease could not be ended, so clean leaves it alone for %v: %w", LivesFor,
			diagnosis.Explain(err, l.meta.Namespace))
	}
	return nil
}

// Claims are those of the experiments that run on the cluster, as far as their Leases may be listed, and where that is.
func Claims(
	ctx context.Context, api kubernetes.Interface, namespace string, now time.Time,
) (found []targets.Claim, where string, err error) {
	leases, where, err := leasesOf(ctx, api, namespace)
	for _, l := range leases {
		if alive(l, now, LivesFor) {
			one, _ := targets.ParseClaim(l.Annotations[AnnotationClaim]) // one that cannot be read says nothing
			found = append(found, one)
		}
	}
	return found, where, err
}

// leasesOf are the Leases of experiments: of the whole cluster, or of one namespace where no others may be listed.
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

// alive says whether the experiment of a Lease runs: it was heard of lately.
func alive(l coordinationv1.Lease, now time.Time, lives time.Duration) bool {
	return l.Spec.RenewTime != nil && now.Sub(l.Spec.RenewTime.Time) < lives
}
