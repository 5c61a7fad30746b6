package kube

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

// TestSweep checks that an object is removed or kept by the heartbeat of its experiment and by its name. --all removes
// the rest, except the namespace that the user gave.
func TestSweep(t *testing.T) {
	now := time.Date(2026, 12, 1, 8, 0, 0, 0, time.UTC)
	text := targets.Claim{Experiment: "2026-12-01-a1b2", By: "ann@desk", Since: now}.Text()
	leaseOf := func(ago time.Duration) coordinationv1.Lease {
		at := metav1.NewMicroTime(now.Add(-ago))
		return coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{annotationClaim: text}},
			Spec:       coordinationv1.LeaseSpec{RenewTime: &at},
		}
	}
	s := selection{now: now, leaseDuration: leaseDuration, userNamespace: "bench", leases: map[string]coordinationv1.Lease{
		"live": leaseOf(12 * time.Second), "ahead": leaseOf(-time.Minute), "late": leaseOf(leaseDuration - time.Second),
		"over": leaseOf(leaseDuration), "never": {},
	}}
	all := s
	all.all = true
	const namespaces, pods, configs = "/api/v1/namespaces", "/api/v1/pods", "/api/v1/configmaps"
	objectOf := func(collection, name, experiment, run, claimed string) listedObject {
		l := map[string]string{manifest.LabelManaged: manifest.ManagedBy}
		for key, value := range map[string]string{manifest.LabelExperiment: experiment, labelRun: run} {
			if value != "" {
				l[key] = value
			}
		}
		return listedObject{collection, metav1.ObjectMeta{Name: name, Labels: l,
			Annotations: map[string]string{annotationClaim: claimed}}}
	}
	for name, test := range map[string]struct {
		listedObject
		keeps string // a part of the reason; empty: it is removed
		never bool   // not with --all either
	}{
		"running": {objectOf(pods, "knotmeter-live-1-client", "live", "", ""),
			"the experiment 2026-12-01-a1b2 of ann@desk, since 2026-12-01 08:00:00 UTC runs: it was heard of 12 s ago", false},
		"running, clock ahead":  {objectOf(pods, "knotmeter-ahead-1-client", "ahead", "", ""), "heard of 0 s ago", false},
		"running, heard late":   {objectOf(namespaces, "knotmeter-late", "late", "", text), "heard of 119 s ago", false},
		"its namespace":         {objectOf(namespaces, "knotmeter-live", "live", "", text), "runs", false},
		"killed":                {objectOf(pods, "knotmeter-over-1-client", "over", "", ""), "", false},
		"killed, its namespace": {objectOf(namespaces, "knotmeter-over", "over", "", text), "", false},
		"killed at once":        {objectOf(namespaces, "knotmeter-never", "never", "", text), "", false},
		"its Lease":             {objectOf(leaseKind[0], "knotmeter-over", "over", "", text), "", false},
		"its runs' objects":     {objectOf(configs, "knotmeter-r7-12", "over", "r7", ""), "", false},
		"its runs' namespaces":  {objectOf(namespaces, "knotmeter-r7-12", "over", "r7", ""), "", false},
		"no Lease":              {objectOf(pods, "knotmeter-gone-1-client", "gone", "", ""), "no Lease tells", false},
		"label alone":           {objectOf(namespaces, "shop", "", "", ""), "it has our label, and not", false},
		"labels copied":         {objectOf(namespaces, "shop", "over", "", ""), "it has our label, and not", false},
		"name too":              {objectOf(namespaces, "knotmeter-over", "over", "", ""), "it has our label, and not", false},
		"annotation too":        {objectOf(namespaces, "shop", "over", "", text), "it has our label, and not", false},
		"copied object": {objectOf(configs, "knotmeter-overview", "over", "", ""), "it has our label, and not",
			false},
		"copied run":           {objectOf(configs, "shop", "over", "r7", ""), "it has our label, and not", false},
		"the user's namespace": {objectOf(namespaces, "bench", "over", "", text), "it has our label, and not", true},
	} {
		t.Run(name, func(t *testing.T) {
			if why := s.keepReason(test.listedObject); (why == "") != (test.keeps == "") || !strings.Contains(why, test.keeps) {
				t.Errorf("kept: %q, want %q", why, test.keeps)
			}
			if s.removes(test.listedObject) != (test.keeps == "") ||
				all.removes(test.listedObject) == test.never {
				t.Error("what is removed is not what is decided")
			}
			for _, by := range []selection{s, all} {
				selector, err := labels.Parse(by.selector())
				if err != nil {
					t.Fatal(err)
				}
				if by.removes(test.listedObject) && !selector.Matches(labels.Set(test.Labels)) {
					t.Errorf("%s does not find what is removed", by.selector())
				}
			}
		})
	}
}
