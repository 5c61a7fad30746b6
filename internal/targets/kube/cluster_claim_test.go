package kube

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
	"github.com/knotmeter/knotmeter/internal/targets/kube/cluster"
	"github.com/knotmeter/knotmeter/internal/targets/kube/manifest"
)

func testPlan(experiment string, share bool) targets.Plan {
	return targets.Plan{Experiment: experiment, Version: "test", Share: share,
		Placements: []targets.Placement{{Path: result.PodPodOther}}}
}

func closeTarget(t *testing.T, k *kubeTarget) {
	t.Helper()
	if err := k.Close(); err != nil {
		t.Error(err)
	}
}

// TestClaim checks that two experiments on one cluster see each other in whatever namespaces they are, and that targets
// of one experiment do not conflict.
func TestClaim(t *testing.T) {
	c := admin(t)
	given := namespaceFor(t, c, "")
	before := leftovers(t, c)
	a, again := newTestTarget(t, realCluster(t)), newTestTarget(t, realCluster(t)+"&namespace="+given)
	for _, k := range []*kubeTarget{a, again} {
		if warnings, err := k.Begin(t.Context(), testPlan("a", false)); err != nil || len(warnings) != 0 {
			t.Fatalf("%q, %v", warnings, err)
		}
	}
	name := manifest.ExperimentName(a.experiment)
	held, err := c.CoordinationV1().Leases(a.claimed.namespace).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if said, err := targets.ParseClaim(held.Annotations[annotationClaim]); err != nil || said.Experiment != "a" ||
		*held.Spec.HolderIdentity != said.By || c.Now().Sub(held.Spec.RenewTime.Time) > leaseDuration {
		t.Errorf("%+v, %v", held, err)
	}
	refused := newTestTarget(t, realCluster(t)+"&namespace="+given)
	if _, err := refused.Begin(t.Context(), testPlan("b", false)); !errors.Is(err, targets.ErrBusy) ||
		!strings.Contains(err.Error(), "the experiment a of ") {
		t.Errorf("%v", err)
	}
	closeTarget(t, refused)
	sharing := newTestTarget(t, realCluster(t)+"&namespace="+given)
	if warnings, err := sharing.Begin(t.Context(), testPlan("b", true)); err != nil || len(warnings) != 1 ||
		!strings.Contains(warnings[0], "was shared with the experiment a of") {
		t.Errorf("%q, %v", warnings, err)
	}
	if looked := "looked for in the whole cluster"; sharing.claimed.searchedScope != looked {
		t.Errorf("%q, want %q", sharing.claimed.searchedScope, looked)
	}
	for _, k := range []*kubeTarget{a, again} {
		closeTarget(t, k)
	}
	third := newTestTarget(t, realCluster(t)+"&namespace="+given)
	if _, err := third.beginAndClose(t, "c"); !errors.Is(err, targets.ErrBusy) {
		t.Errorf("one that shares is not seen: %v", err)
	}
	closeTarget(t, sharing)
	if left := leftovers(t, c); len(left) != len(before) {
		t.Errorf("left: %v", left)
	}
}

// TestIdentity checks that a cluster is identified by the UID of kube-system, or by its address for users who may not
// list that namespace.
func TestIdentity(t *testing.T) {
	k := newTestTarget(t, realCluster(t))
	defer closeTarget(t, k)
	if _, err := k.reach(t.Context()); err != nil {
		t.Fatal(err)
	}
	system, err := admin(t).CoreV1().Namespaces().Get(t.Context(), metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	facts := k.reached.identity(t.Context())
	if uid := result.FactOf(facts, clusterFact); uid != string(system.UID) {
		t.Errorf("%q, want %q", uid, system.UID)
	}
	given := namespaceFor(t, admin(t), "restricted")
	stranger := newTestTarget(t, asUser(t, "knotmeter-test-identity")+"&namespace="+given+
		"&client-node=node-1&server-node=node-2")
	defer closeTarget(t, stranger)
	if _, err := stranger.reach(t.Context()); err != nil {
		t.Fatal(err)
	}
	if uid := result.FactOf(stranger.reached.identity(t.Context()), clusterFact); uid != result.Unknown {
		t.Errorf("a user without rights sees %q", uid)
	}
	if err := stranger.reached.checkIdentity(t.Context(), facts); err != nil {
		t.Error(err)
	}
}

func (k *kubeTarget) beginAndClose(t *testing.T, experiment string) (warnings []string, err error) {
	t.Helper()
	defer closeTarget(t, k)
	return k.Begin(t.Context(), testPlan(experiment, false))
}

// TestClaimWithFewRights checks that a user with rights in one namespace sees other experiments only there, which a
// fact states, and that without rights on Leases --share is needed.
func TestClaimWithFewRights(t *testing.T) {
	c := admin(t)
	given := namespaceFor(t, c, "restricted")
	const user = "knotmeter-test-claim"
	text := asUser(t, user) + "&namespace=" + given + "&client-node=node-1&server-node=node-2"
	role := cluster.Roles(parseOptions(t, text).need(allNeeds()))[0].(rbacv1.Role)
	undo := grant(t, c, user, []any{role})
	k := newTestTarget(t, text)
	if warnings, err := k.Begin(t.Context(), testPlan("a", false)); err != nil || len(warnings) != 0 {
		t.Errorf("%q, %v", warnings, err)
	}
	facts, err := k.Facts(t.Context())
	if seen := result.FactOf(facts, "other-experiments"); err != nil || !strings.Contains(seen, "the namespace "+
		""+given+" alone") {
		t.Errorf("%q, %v", seen, err)
	}
	if _, err := newTestTarget(t, text).beginAndClose(t, "b"); !errors.Is(err, targets.ErrBusy) {
		t.Errorf("%v", err)
	}
	closeTarget(t, k)
	undo()

	role.Rules = cluster.SiteRules
	defer grant(t, c, user, []any{role})()
	if _, err := newTestTarget(t, text).beginAndClose(t, "b"); err == nil ||
		!strings.Contains(err.Error(), "may not create leases") || !strings.Contains(err.Error(), "--share") {
		t.Errorf("%v", err)
	}
	k = newTestTarget(t, text)
	if warnings, err := k.Begin(t.Context(), testPlan("b", true)); err != nil || len(warnings) != 2 {
		t.Errorf("%q, %v", warnings, err)
	}
	closeTarget(t, k)
}

// TestReleaseWithLeftovers checks that an experiment that ends with leftovers leaves its Lease, marked as over, so that
// clean removes both at once.
func TestReleaseWithLeftovers(t *testing.T) {
	c := admin(t)
	given := namespaceFor(t, c, "")
	k := newTestTarget(t, realCluster(t)+"&namespace="+given)
	if _, err := k.Begin(t.Context(), testPlan("left", true)); err != nil {
		t.Fatal(err)
	}
	if err := k.claimed.releaseClaim(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	name := manifest.ExperimentName(k.experiment)
	held, err := c.CoordinationV1().Leases(given).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil || held.Spec.RenewTime != nil {
		t.Errorf("%+v, %v", held, err)
	}
	removed, err := cleanCluster(t.Context(), c, given, targets.Cleaning{Found: func(targets.Leftover) {}},
		leaseDuration)
	if err != nil || !slices.Equal(removed, []string{"lease " + given + "/" + name}) {
		t.Errorf("%v, %v", removed, err)
	}
}

// TestCleanLeavesWhatRuns checks that clean keeps everything of a running experiment, and removes everything of a
// killed one once its last heartbeat is old enough. Clean also keeps objects that have only our label. A dry run
// removes nothing.
func TestCleanLeavesWhatRuns(t *testing.T) {
	c := admin(t)
	given := namespaceFor(t, c, "")
	const lives = 10 * time.Second
	begun := func(options, experiment string, renewal time.Duration) *kubeTarget {
		k := newTestTarget(t, realCluster(t)+options)
		k.heartbeat = renewal
		if _, err := k.Begin(t.Context(), testPlan(experiment, true)); err != nil {
			t.Fatal(err)
		}
		if _, err := targets.OpenOne(t.Context(), k, targets.Placement{Path: result.PodSvcOther}); err != nil {
			t.Fatal(err)
		}
		return k
	}
	running := begun("", "running", 500*time.Millisecond)
	defer closeTarget(t, running)
	var killed []*kubeTarget
	for _, options := range []string{"", "&namespace=" + given} {
		killed = append(killed, begun(options, "killed", time.Hour)) // sends no further heartbeat
	}
	labelled, err := c.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "test-", Labels: manifest.ExperimentLabels(killed[0].experiment), // as in a copied manifest
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := removeNamespace(context.Background(), c, labelled.Name); err != nil {
			t.Error(err)
		}
	})
	left := func(k *kubeTarget) (n int) {
		for _, name := range leftovers(t, c) {
			if strings.Contains(name, k.experiment) {
				n++
			}
		}
		return n
	}
	o := parseOptions(t, realCluster(t))
	var found []targets.Leftover
	clean := func(dry bool, lives time.Duration) []string {
		t.Helper()
		found = nil
		removed, err := cleanCluster(t.Context(), c, o.Namespace,
			targets.Cleaning{DryRun: dry, Found: func(l targets.Leftover) { found = append(found, l) }}, lives)
		if err != nil {
			t.Fatal(err)
		}
		return removed
	}
	if removed := clean(false, leaseDuration); len(removed) != 0 || len(found) < 3*4+2 {
		t.Errorf("what was heard of lately is removed: %v, of %+v", removed, found)
	}
	before := leftovers(t, c)
	taken := func() int {
		clean(true, lives)
		return len(slices.DeleteFunc(slices.Clone(found), func(l targets.Leftover) bool { return !l.Removable }))
	}
	// Of the first a namespace, two pods, a Service and a Lease; of the other all but the namespace.
	for n := 0; taken() < 9 && n < 60; n++ {
		time.Sleep(time.Second)
	}
	time.Sleep(time.Second) // API servers tell their time in whole seconds
	if n := taken(); n != 9 || !slices.Equal(before, leftovers(t, c)) {
		t.Fatalf("a dry run would remove %d of %+v, and there is %v of %v", n, found, leftovers(t, c), before)
	}
	removed := clean(false, lives)
	if left(killed[0]) != 0 || left(killed[1]) != 0 || left(running) != 5 {
		t.Errorf("removed %v, and there is %v", removed, leftovers(t, c))
	}
	if now := leftovers(t, c); !slices.Contains(now, "namespace "+labelled.Name) {
		t.Errorf("%s is gone: %v", labelled.Name, now)
	}
}
