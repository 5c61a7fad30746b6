package diagnosis

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/knotmeter/knotmeter/internal/targets/kube/inspection"
)

// How long a pod may be in trouble that may pass, and without news, before its events are asked; and how long they may
// say that there was trouble which the node tries to overcome, as the kubelet does every ten seconds (backOffPeriod).
const (
	trouble   = 5 * time.Second
	silence   = 8 * time.Second
	endurance = 20 * time.Second
)

// A Readiness is what is known of pods that should run, and since when.
type Readiness struct {
	Pods   map[string]*corev1.Pod // as they are now
	want   int
	since  map[string]time.Time // of the trouble
	warned map[string]time.Time // when events first told of trouble
	asked  time.Time            // when events were
	events func() ([]corev1.Event, error)
}

// NewReadiness is that of so many pods from now on, whose events can be asked for.
func NewReadiness(want int, now time.Time, events func() ([]corev1.Event, error)) *Readiness {
	return &Readiness{want: want, Pods: map[string]*corev1.Pod{}, since: map[string]time.Time{},
		warned: map[string]time.Time{}, asked: now, events: events}
}

// Judge says whether all pods run, or what is wrong if it has been long enough.
func (r *Readiness) Judge(now time.Time) (bool, error) {
	running := 0
	for name, pod := range r.Pods {
		if inspection.Runs(pod) {
			running++
			continue
		}
		problem := diagnose(pod)
		if problem == nil {
			delete(r.since, name)
			continue
		}
		if r.since[name].IsZero() {
			r.since[name] = now
		}
		if problem.final || now.Sub(r.since[name]) >= max(trouble, problem.patient) {
			return false, r.because(pod, problem)
		}
	}
	if running == r.want {
		return true, nil
	}
	return false, r.ask(now)
}

// because is a problem, or what is behind it according to the events. Only pods that name secrets can lack one.
func (r *Readiness) because(pod *corev1.Pod, found *Problem) error {
	if len(pod.Spec.ImagePullSecrets) == 0 {
		return found
	}
	events, err := r.events()
	if err != nil {
		return found // what is known will have to do
	}
	if behind := missingSecret(pod, events); behind != nil {
		return behind
	}
	return found
}

// ask looks at the events when there is no other news.
func (r *Readiness) ask(now time.Time) error {
	if now.Sub(r.asked) < silence {
		return nil
	}
	r.asked = now
	events, err := r.events()
	if err != nil {
		return nil // the status will have to do
	}
	for name, pod := range r.Pods {
		problem := fromEvents(pod, events)
		if problem == nil || inspection.Runs(pod) {
			continue
		}
		if r.warned[name].IsZero() {
			r.warned[name] = now
		}
		if problem.final || now.Sub(r.warned[name]) >= endurance {
			return r.because(pod, problem)
		}
	}
	return nil
}

// State describes the pods as they are: what keeps each from running, or how far it has come.
func (r *Readiness) State() string {
	var words []string
	for name, pod := range r.Pods {
		text := progress(pod)
		if problem := diagnose(pod); problem != nil {
			text = problem.Error()
		}
		words = append(words, name+": "+text)
	}
	slices.Sort(words)
	if len(words) == 0 {
		return "nothing was heard of the pods"
	}
	return strings.Join(words, "; ")
}
