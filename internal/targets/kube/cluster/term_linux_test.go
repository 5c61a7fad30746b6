package cluster

import (
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/fake"
)

// A clock that is set forward neither ends a term nor prolongs it. In the bubble the time of day is a day later at
// once, while the machine's own clock goes on as ever.
func TestTermWithoutTimeOfDay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		home := Home{Namespace: "bench", Experiment: "2026-12-01-a1b2"}
		term, _, err := newTerm(t.Context(), fake.NewClientset(), home, TermTime, corev1.PodSpec{})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(24 * time.Hour)
		if !term.runs() {
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
