package cleanup

import (
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/knotmeter/knotmeter/internal/targets"
	"github.com/knotmeter/knotmeter/internal/targets/kube/manifest"
)

// What is removed is decided by the heartbeat of its experiment and by whether it was made here; --all removes the
// rest, but never the namespace that the user gave.
func TestSweep(t *testing.T) {
	now := time.Date(2026, 12, 1, 8, 0, 0, 0, time.UTC)
	text := targets.Claim{Experiment: "2026-12-01-a1b2", By: "ann@desk", Since: now}.Text()
	heard := func(ago time.Duration) coordinationv1.Lease {
		at := metav1.NewMicroTime(now.Add(-ago))
		return coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{AnnotationClaim: text}},
			Spec:       coordinationv1.LeaseSpec{RenewTime: &at},
		}
	}
	s := sweep{now: now, lives: LivesFor, given: "bench", leases: map[string]coordinationv1.Lease{
		"live": heard(12 * time.Second), "ahead": heard(-time.Minute), "late": heard(LivesFor - time.Second),
		"over": heard(LivesFor), "never": {},
	}}
	all := s
	all.all = true
	const namespaces, pods, configs = "/api/v1/namespaces", "/api/v1/pods", "/api/v1/configmaps"
	thingOf := func(collection, name, experiment, run, claimed string) Thing {
		l := map[string]string{manifest.LabelManaged: manifest.ManagedBy}
		for key, value := range map[string]string{manifest.LabelExperiment: experiment, LabelRun: run} {
			if value != "" {
				l[key] = value
			}
		}
		return Thing{collection, metav1.ObjectMeta{Name: name, Labels: l,
			Annotations: map[string]string{AnnotationClaim: claimed}}}
	}
	for name, test := range map[string]struct {
		Thing
		keeps string // a part of the reason; empty: it is removed
		never bool   // not with --all either
	}{
		"running": {thingOf(pods, "knotmeter-live-1-client", "live", "", ""),
			"the experiment 2026-12-01-a1b2 of ann@desk, since 2026-12-01 08:00:00 UTC runs: it was heard of 12 s ago", false},
		"running, clock ahead":  {thingOf(pods, "knotmeter-ahead-1-client", "ahead", "", ""), "heard of 0 s ago", false},
		"running, heard late":   {thingOf(namespaces, "knotmeter-late", "late", "", text), "heard of 119 s ago", false},
		"its namespace":         {thingOf(namespaces, "knotmeter-live", "live", "", text), "runs", false},
		"killed":                {thingOf(pods, "knotmeter-over-1-client", "over", "", ""), "", false},
		"killed, its namespace": {thingOf(namespaces, "knotmeter-over", "over", "", text), "", false},
		"killed at once":        {thingOf(namespaces, "knotmeter-never", "never", "", text), "", false},
		"its Lease":             {thingOf(leaseKind[0], "knotmeter-over", "over", "", text), "", false},
		"its runs' objects":     {thingOf(configs, "knotmeter-r7-12", "over", "r7", ""), "", false},
		"its runs' namespaces":  {thingOf(namespaces, "knotmeter-r7-12", "over", "r7", ""), "", false},
		"no Lease":              {thingOf(pods, "knotmeter-gone-1-client", "gone", "", ""), "no Lease tells", false},
		"label alone":           {thingOf(namespaces, "shop", "", "", ""), "it has our label, and not", false},
		"labels copied":         {thingOf(namespaces, "shop", "over", "", ""), "it has our label, and not", false},
		"name too":              {thingOf(namespaces, "knotmeter-over", "over", "", ""), "it has our label, and not", false},
		"annotation too":        {thingOf(namespaces, "shop", "over", "", text), "it has our label, and not", false},
		"copied object":         {thingOf(configs, "knotmeter-overview", "over", "", ""), "it has our label, and not", false},
		"copied run":            {thingOf(configs, "shop", "over", "r7", ""), "it has our label, and not", false},
		"the user's namespace":  {thingOf(namespaces, "bench", "over", "", text), "it has our label, and not", true},
	} {
		t.Run(name, func(t *testing.T) {
			if why := s.keeps(test.Thing); (why == "") != (test.keeps == "") || !strings.Contains(why, test.keeps) {
				t.Errorf("kept: %q, want %q", why, test.keeps)
			}
			if s.takes(test.Thing) != (test.keeps == "") ||
				all.takes(test.Thing) == test.never {
				t.Error("what is removed is not what is decided")
			}
			for _, by := range []sweep{s, all} {
				selector, err := labels.Parse(by.selector())
				if err != nil {
					t.Fatal(err)
				}
				if by.takes(test.Thing) && !selector.Matches(labels.Set(test.Labels)) {
					t.Errorf("%s does not find what is removed", by.selector())
				}
			}
		})
	}
}
