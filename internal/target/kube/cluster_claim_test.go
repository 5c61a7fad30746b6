package kube

import (
	"errors"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/target"
	"github.com/knotmeter/knotmeter/internal/target/claim"
)

func planned(experiment string, share bool) target.Plan {
	return target.Plan{Experiment: experiment, Version: "test", Share: share, Placements: []target.Placement{{Path: target.PodPodOther}}}
}

func closeTarget(t *testing.T, k *kubeTarget) {
	t.Helper()
	if err := k.Close(); err != nil {
		t.Error(err)
	}
}

// Two experiments on one cluster learn of each other, whatever their namespaces; the targets of one do not mind each other.
func TestClaim(t *testing.T) {
	c := admin(t)
	given := namespaceFor(t, c, "")
	before := leftIn(t, c)
	a, again := open(t, realCluster(t)), open(t, realCluster(t)+"&namespace="+given)
	for _, k := range []*kubeTarget{a, again} {
		if warnings, err := k.Begin(t.Context(), planned("a", false)); err != nil || len(warnings) != 0 {
			t.Fatalf("%q, %v", warnings, err)
		}
	}
	lease, err := c.CoordinationV1().Leases(a.namespace).Get(t.Context(), a.leaseName(), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if said, err := claim.Parse(lease.Annotations[annotationClaim]); err != nil || said.Experiment != "a" || *lease.Spec.HolderIdentity != said.By || !alive(*lease, c.now()) {
		t.Errorf("%+v, %v", lease, err)
	}
	refused := open(t, realCluster(t)+"&namespace="+given)
	if _, err := refused.Begin(t.Context(), planned("b", false)); !errors.Is(err, claim.ErrBusy) || !strings.Contains(err.Error(), "the experiment a of ") {
		t.Errorf("%v", err)
	}
	closeTarget(t, refused)
	sharing := open(t, realCluster(t)+"&namespace="+given)
	if warnings, err := sharing.Begin(t.Context(), planned("b", true)); err != nil || len(warnings) != 1 || !strings.Contains(warnings[0], "was shared with the experiment a of") {
		t.Errorf("%q, %v", warnings, err)
	}
	if looked := "looked for in the whole cluster"; sharing.hold.looked != looked {
		t.Errorf("%q, want %q", sharing.hold.looked, looked)
	}
	for _, k := range []*kubeTarget{a, again} {
		closeTarget(t, k)
	}
	if _, err := open(t, realCluster(t)+"&namespace="+given).claimed(t, "c"); !errors.Is(err, claim.ErrBusy) {
		t.Errorf("one that shares is not seen: %v", err)
	}
	closeTarget(t, sharing)
	if left := leftIn(t, c); len(left) != len(before) {
		t.Errorf("left: %v", left)
	}
}

// claimed begins and closes a target.
func (k *kubeTarget) claimed(t *testing.T, experiment string) (warnings []string, err error) {
	t.Helper()
	defer closeTarget(t, k)
	return k.Begin(t.Context(), planned(experiment, false))
}

// With rights in one namespace, others are looked for there, which is said; without any on Leases, --share is needed.
func TestClaimWithFewRights(t *testing.T) {
	c := admin(t)
	given := namespaceFor(t, c, "restricted")
	const user = "knotmeter-test-claim"
	text := as(t, user) + "&namespace=" + given + "&client-node=node-1&server-node=node-2"
	role := documents(read(t, text))[0].(rbacv1.Role)
	undo := grant(t, c, user, []any{role})
	k := open(t, text)
	if warnings, err := k.Begin(t.Context(), planned("a", false)); err != nil || len(warnings) != 0 {
		t.Errorf("%q, %v", warnings, err)
	}
	facts, err := k.Facts(t.Context())
	if seen := result.FactOf(facts, "other-experiments"); err != nil || !strings.Contains(seen, "the namespace "+given+" alone") {
		t.Errorf("%q, %v", seen, err)
	}
	if _, err := open(t, text).claimed(t, "b"); !errors.Is(err, claim.ErrBusy) {
		t.Errorf("%v", err)
	}
	closeTarget(t, k)
	undo()

	role.Rules = siteRules()
	defer grant(t, c, user, []any{role})()
	if _, err := open(t, text).claimed(t, "b"); err == nil || !strings.Contains(err.Error(), "may not create leases") || !strings.Contains(err.Error(), "--share") {
		t.Errorf("%v", err)
	}
	k = open(t, text)
	if warnings, err := k.Begin(t.Context(), planned("b", true)); err != nil || len(warnings) != 2 {
		t.Errorf("%q, %v", warnings, err)
	}
	closeTarget(t, k)
}
