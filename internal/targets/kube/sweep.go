package kube

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

// A selection decides which objects with our label are removed.
type selection struct {
	leases        map[string]coordinationv1.Lease // by their experiment label
	now           time.Time
	leaseDuration time.Duration // how long an experiment counts as running after a heartbeat
	all           bool
	userNamespace string // namespace that the options name; it is never removed
}

// keepReason returns why an object is kept; "" if it is a leftover.
func (s selection) keepReason(t listedObject) string {
	lease, known := s.leases[t.Labels[manifest.LabelExperiment]]
	switch {
	case !madeByKnotmeter(t):
		return "it has our label, and not the name and the annotation of what Knotmeter makes"
	case !known:
		return "no Lease tells whether its experiment runs"
	case isAlive(lease, s.now, s.leaseDuration):
		return fmt.Sprintf("%s runs: it was heard of %.0f s ago", owner(lease),
			max(0, s.now.Sub(lease.Spec.RenewTime.Time).Seconds()))
	}
	return ""
}

// removes reports whether an object is removed.
func (s selection) removes(t listedObject) bool {
	return !s.isUserNamespace(t) && (s.all || s.keepReason(t) == "")
}

// isUserNamespace reports whether an object is the namespace that the options name.
func (s selection) isUserNamespace(t listedObject) bool {
	return t.collection == namespaceKind[0] && t.Name == s.userNamespace
}

// selector returns a label selector that finds all objects to remove, and possibly others.
func (s selection) selector() string {
	if s.all {
		return manifest.ManagedSelector()
	}
	var over []string
	for _, experiment := range slices.Sorted(maps.Keys(s.leases)) {
		if !isAlive(s.leases[experiment], s.now, s.leaseDuration) {
			over = append(over, experiment)
		}
	}
	return manifest.ManagedSelector() + "," + manifest.LabelExperiment + " in (" + strings.Join(over, ",") + ")"
}

// madeByKnotmeter reports whether Knotmeter created an object with its label. It checks that the name is that of the
// experiment or run, or begins with it, and that the namespace of an experiment has a claim.
func madeByKnotmeter(t listedObject) bool {
	experiment, run := t.Labels[manifest.LabelExperiment], t.Labels[labelRun]
	if experiment == "" {
		return false
	}
	if run != "" {
		return strings.HasPrefix(t.Name, manifest.ManagedBy+"-"+run+"-")
	}
	own := manifest.ExperimentName(experiment)
	if t.collection == namespaceKind[0] {
		return t.Name == own && t.Annotations[annotationClaim] != ""
	}
	return t.Name == own || strings.HasPrefix(t.Name, own+"-")
}

// owner describes the experiment of a Lease.
func owner(l coordinationv1.Lease) string {
	c, _ := targets.ParseClaim(l.Annotations[annotationClaim]) // unreadable claims are empty
	return c.String()
}

// ownKinds are the collections of all objects with our label.
var ownKinds = slices.Concat(namespaceKind, runCollections, siteKinds, volumeKind, clusterKinds,
	accountKinds, leaseKind)

// selectObjects returns everything with our label, and the selection that decides about it. Apart from namespaces, a
// collection that may not be listed counts as empty, since the user could not have created objects in it.
func selectObjects(
	ctx context.Context, c *cluster.Cluster, namespace string, all bool, lives time.Duration,
) (s selection, found []listedObject, err error) {
	for _, collection := range ownKinds {
		selector := manifest.ManagedSelector()
		if collection == namespaceKind[0] && namespace != "" {
			selector += "," + labelRun // experiments create no namespace if the user gives one
		}
		list, err := listObjects(ctx, c, collection, namespace, selector)
		switch {
		case apierrors.IsForbidden(err) && collection == namespaceKind[0] && namespace == "":
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
	s = selection{leases: map[string]coordinationv1.Lease{}, now: c.Now(), leaseDuration: lives, all: all,
		userNamespace: namespace}
	for _, l := range leases {
		s.leases[l.Labels[manifest.LabelExperiment]] = l
	}
	return s, slices.DeleteFunc(found, s.isUserNamespace), nil
}
