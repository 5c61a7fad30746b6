// Package lease tells by Leases which experiments use a cluster.
package lease

import (
	"context"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/knotmeter/knotmeter/internal/target/claim"
	"github.com/knotmeter/knotmeter/internal/target/kube/diagnosis"
	"github.com/knotmeter/knotmeter/internal/target/kube/manifest"
)

// An experiment claims a cluster by a Lease in its namespace, which it renews for as long as it runs. By that, others
// learn of it, and `knotmeter clean` leaves what belongs to it alone.

const (
	// annotationClaim has the claim on what is made for a whole experiment: its namespace and its Lease.
	AnnotationClaim = "knotmeter.dev/claim"

	Renewal = 30 * time.Second // between two heartbeats
	// livesFor is how long an experiment counts as running after its last heartbeat: four may be lost.
	LivesFor = 2 * time.Minute
)

// claims are those of the experiments that run on the cluster, as far as their Leases may be listed, and where that is.
func Claims(
	ctx context.Context, api kubernetes.Interface, namespace string, now time.Time,
) (found []claim.Claim, where string, err error) {
	leases, where, err := List(ctx, api, namespace)
	if err != nil {
		return nil, "", err
	}
	for _, l := range leases {
		if !Alive(l, now, LivesFor) {
			continue
		}
		one, _ := claim.Parse(l.Annotations[AnnotationClaim]) // one that cannot be read says nothing
		found = append(found, one)
	}
	return found, where, nil
}

// leases are the Leases of experiments: of the whole cluster, or of one namespace where no others may be listed.
func List(
	ctx context.Context, api kubernetes.Interface, namespace string,
) (_ []coordinationv1.Lease, where string, err error) {
	which := metav1.ListOptions{LabelSelector: manifest.OurSelector()}
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

// Alive says whether the experiment of a Lease runs: it was heard of lately.
func Alive(l coordinationv1.Lease, now time.Time, lives time.Duration) bool {
	return l.Spec.RenewTime != nil && now.Sub(l.Spec.RenewTime.Time) < lives
}
