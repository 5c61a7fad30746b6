package cleanup

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/knotmeter/knotmeter/internal/targets"
	"github.com/knotmeter/knotmeter/internal/targets/kube/cluster"
	"github.com/knotmeter/knotmeter/internal/targets/kube/diagnosis"
	"github.com/knotmeter/knotmeter/internal/targets/kube/manifest"
)

// A sweep decides what of ours is removed from a cluster.
type sweep struct {
	leases map[string]coordinationv1.Lease // by the label of their experiment
	now    time.Time
	lives  time.Duration // how long an experiment counts as running after a heartbeat
	all    bool
	given  string // the namespace that the options name, which is never removed
}

// keeps says why something is left alone; empty if it is left over.
func (s sweep) keeps(t Thing) string {
	held, told := s.leases[t.Labels[manifest.LabelExperiment]]
	switch {
	case !made(t):
		return "it has our label, and not the name and the annotation of what Knotmeter makes"
	case !told:
		return "no Lease tells whether its experiment runs"
	case alive(held, s.now, s.lives):
		return fmt.Sprintf("%s runs: it was heard of %.0f s ago", owner(held),
			max(0, s.now.Sub(held.Spec.RenewTime.Time).Seconds()))
	}
	return ""
}

// takes is whether something is removed.
func (s sweep) takes(t Thing) bool { return !s.isGiven(t) && (s.all || s.keeps(t) == "") }

// isGiven says whether something is the namespace of the user's own.
func (s sweep) isGiven(t Thing) bool { return t.collection == NamespaceKind[0] && t.Name == s.given }

// selector finds at least what is removed: what is of experiments that do not run any more, or all of ours.
func (s sweep) selector() string {
	if s.all {
		return manifest.ManagedSelector()
	}
	var over []string
	for _, experiment := range slices.Sorted(maps.Keys(s.leases)) {
		if !alive(s.leases[experiment], s.now, s.lives) {
			over = append(over, experiment)
		}
	}
	return manifest.ManagedSelector() + "," + manifest.LabelExperiment + " in (" + strings.Join(over, ",") + ")"
}

// made says whether Knotmeter made something that has its label: it has the name of its experiment, or of its run, and
// a namespace of an experiment the claim of that, too.
func made(t Thing) bool {
	experiment, run := t.Labels[manifest.LabelExperiment], t.Labels[LabelRun]
	if experiment == "" {
		return false
	}
	if run != "" {
		return strings.HasPrefix(t.Name, manifest.ManagedBy+"-"+run+"-")
	}
	own := manifest.ExperimentName(experiment)
	if t.collection == NamespaceKind[0] {
		return t.Name == own && t.Annotations[AnnotationClaim] != ""
	}
	return t.Name == own || strings.HasPrefix(t.Name, own+"-")
}

// owner is whose a Lease is.
func owner(l coordinationv1.Lease) string {
	c, _ := targets.ParseClaim(l.Annotations[AnnotationClaim]) // one that cannot be read says nothing
	return c.String()
}

// ownKinds are the collections of all that is ours.
var ownKinds = slices.Concat(NamespaceKind, ObjectKinds, SiteKinds, volumeKind, ClusterKinds, AccountKinds, leaseKind)

// sweepOf finds everything of ours, and what decides about it. What may not be listed could not be made either, but a
// namespace.
func sweepOf(
	ctx context.Context, c *cluster.Cluster, namespace string, all bool, lives time.Duration,
) (s sweep, found []Thing, err error) {
	for _, collection := range ownKinds {
		selector := manifest.ManagedSelector()
		if collection == NamespaceKind[0] && namespace != "" {
			selector += "," + LabelRun // those of experiments are not made where one is given
		}
		list, err := List(ctx, c, collection, namespace, selector)
		switch {
		case apierrors.IsForbidden(err) && collection == NamespaceKind[0] && namespace == "":
			return s, nil, fmt.Errorf("%w; or give namespace= the one to look in", diagnosis.Explain(err, ""))
		case err != nil && !apierrors.IsForbidden(err):
			return s, nil, diagnosis.Explain(err, namespace)
		}
		found = append(found, list...)
	}
	leases, _, err := leasesOf(ctx, c, namespace)
	if err != nil && !diagnosis.Denied(err) {
		return s, nil, err
	}
	s = sweep{leases: map[string]coordinationv1.Lease{}, now: c.Now(), lives: lives, all: all, given: namespace}
	for _, l := range leases {
		s.leases[l.Labels[manifest.LabelExperiment]] = l
	}
	return s, slices.DeleteFunc(found, s.isGiven), nil
}
