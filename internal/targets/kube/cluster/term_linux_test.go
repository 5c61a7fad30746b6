package cluster

import (
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/fake"
)

// TestTermWithoutTimeOfDay checks that a clock that is set forward neither ends nor extends a term. In a synctest
// bubble a sleep moves only the time of day, while machine.Uptime advances in real time.
func TestTermWithoutTimeOfDay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		spec := AccountSpec{Namespace: "bench", Experiment: "2026-12-01-a1b2"}
		term, _, err := newTerm(t.Context(), fake.NewClientset(), spec, TermTime, corev1.PodSpec{})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(24 * time.Hour)
		if !term.valid() {
			t.Error("the term is over")
		}
		job, err := term.prolong(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ends := time.Duration(*job.Spec.ActiveDeadlineSeconds) * time.Second
		if ends < TermTime || ends > TermTime+12*time.Hour {
			t.Errorf("the deadline is %v after the start", ends)
		}
	})
}
