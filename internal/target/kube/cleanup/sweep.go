package cleanup

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/knotmeter/knotmeter/internal/target/claim"
	"github.com/knotmeter/knotmeter/internal/target/kube/diagnosis"
	"github.com/knotmeter/knotmeter/internal/target/kube/lease"
	"github.com/knotmeter/knotmeter/internal/target/kube/manifest"
)

// A thing is an object of the API server that has our label.
type thing struct {
	collection string // that it is in
	metav1.ObjectMeta
}

func (t thing) String() string {
	return strings.TrimSuffix(path.Base(t.collection), "s") + " " + strings.TrimPrefix(t.Namespace+"/"+t.Name, "/")
}

// takes says whether an object of a collection is removed.
type takes func(collection string, o metav1.ObjectMeta) bool

// All is what is removed where a selector says all.
func All(string, metav1.ObjectMeta) bool { return true }

// A sweep decides what of ours is removed from a cluster.
type sweep struct {
	leases map[string]coordinationv1.Lease // by the label of their experiment
	now    time.Time
	lives  time.Duration // how long an experiment counts as running after a heartbeat
	all    bool
	given  string // the namespace that the options name, which is never removed
}

// keeps says why something is left alone; empty if it is left over.
func (s sweep) keeps(t thing) string {
	held, told := s.leases[t.Labels[manifest.LabelExperiment]]
	switch {
	case !made(t):
		return "it has our label, and not the name and the annotation of what Knotmeter makes"
	case !told:
		return "no Lease tells whether its experiment runs"
	case lease.Alive(held, s.now, s.lives):
		return fmt.Sprintf("%s runs: it was heard of %.0f s ago", owner(held),
			max(0, s.now.Sub(held.Spec.RenewTime.Time).Seconds()))
	}
	return ""
}

// takes is whether something is removed.
func (s sweep) takes(collection string, o metav1.ObjectMeta) bool {
	t := thing{collection, o}
	return !s.isGiven(t) && (s.all || s.keeps(t) == "")
}

// isGiven says whether something is the namespace of the user's own.
func (s sweep) isGiven(t thing) bool { return t.collection == NamespaceKind[0] && t.Name == s.given }

// selector finds at least what is removed: what is of experiments that do not run any more, or all of ours.
func (s sweep) selector() string {
	if s.all {
		return manifest.OurSelector()
	}
	var over []string
	for _, experiment := range slices.Sorted(maps.Keys(s.leases)) {
		if !lease.Alive(s.leases[experiment], s.now, s.lives) {
			over = append(over, experiment)
		}
	}
	return manifest.OurSelector() + "," + manifest.LabelExperiment + " in (" + strings.Join(over, ",") + ")"
}

// made says whether Knotmeter made something that has its label: it has the name of its experiment, or of its run, and
// a namespace of an experiment the claim of that, too.
func made(t thing) bool {
	experiment, run := t.Labels[manifest.LabelExperiment], t.Labels[LabelRun]
	if experiment == "" {
		return false
	}
	if run != "" {
		return strings.HasPrefix(t.Name, manifest.ManagedBy+"-"+run+"-")
	}
	own := manifest.ManagedBy + "-" + experiment
	if t.collection == NamespaceKind[0] {
		return t.Name == own && t.Annotations[lease.AnnotationClaim] != ""
	}
	return t.Name == own || strings.HasPrefix(t.Name, own+"-")
}

// owner is whose a Lease is.
func owner(l coordinationv1.Lease) string {
	c, _ := claim.Parse(l.Annotations[lease.AnnotationClaim]) // one that cannot be read says nothing
	return c.String()
}

var leaseKind = []string{"/apis/coordination.k8s.io/v1/leases"}

// volumeKind are the claims of volumes.
var volumeKind = []string{"/api/v1/persistentvolumeclaims"}

// sweepOf finds everything of ours, and what decides about it. What may not be listed could not be made either, but a
// namespace.
func sweepOf(
	ctx context.Context, api kubernetes.Interface, namespace string, all bool, now time.Time, lives time.Duration,
) (s sweep, found []thing, err error) {
	for _, collection := range slices.Concat(NamespaceKind, ObjectKinds, OwnKinds, volumeKind, AccountKinds(), leaseKind) {
		selector := manifest.OurSelector()
		if collection == NamespaceKind[0] && namespace != "" {
			selector += "," + LabelRun // those of experiments are not made where one is given
		}
		list, err := ListObjects(ctx, api, collection, namespace, selector)
		switch {
		case apierrors.IsForbidden(err) && collection == NamespaceKind[0] && namespace == "":
			return s, nil, fmt.Errorf("%w; or give namespace= the one to look in", diagnosis.Explain(err, ""))
		case apierrors.IsForbidden(err):
			continue
		case err != nil:
			return s, nil, diagnosis.Explain(err, namespace)
		}
		for _, item := range list {
			found = append(found, thing{collection, item.ObjectMeta})
		}
	}
	leases, _, err := lease.List(ctx, api, namespace)
	if err != nil && !diagnosis.Denied(err) {
		return s, nil, err
	}
	s = sweep{leases: map[string]coordinationv1.Lease{}, now: now, lives: lives, all: all, given: namespace}
	for _, l := range leases {
		s.leases[l.Labels[manifest.LabelExperiment]] = l
	}
	return s, slices.DeleteFunc(found, s.isGiven), nil
}
