package diagnosis

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/knotmeter/knotmeter/internal/targets/kube/inspection"
)

const (
	problemGrace = 5 * time.Second // how long a temporary problem in a pod's status may last
	quietTime    = 8 * time.Second // between two reads of the pods' events
	// eventGrace is how long a temporary problem in events may last. The kubelet retries every 10 s (backOffPeriod).
	eventGrace = 20 * time.Second
)

// A Readiness decides whether pods run or have a lasting problem.
type Readiness struct {
	Pods         map[string]*corev1.Pod // current pods by name
	want         int                    // number of pods that must run
	problemSince map[string]time.Time   // when the status of a pod first showed a problem
	warnedSince  map[string]time.Time   // when events first showed a problem
	eventsRead   time.Time
	events       func() ([]corev1.Event, error)
}

// NewReadiness returns the Readiness of want pods, beginning now. events reads the events about the pods.
func NewReadiness(want int, now time.Time, events func() ([]corev1.Event, error)) *Readiness {
	return &Readiness{want: want, Pods: map[string]*corev1.Pod{}, problemSince: map[string]time.Time{},
		warnedSince: map[string]time.Time{}, eventsRead: now, events: events}
}

// AllRunning reports whether all pods run. It returns an error if a problem is final or has lasted too long.
func (r *Readiness) AllRunning(now time.Time) (bool, error) {
	running := 0
	for name, pod := range r.Pods {
		if inspection.Runs(pod) {
			running++
			continue
		}
		problem := diagnose(pod)
		if problem == nil {
			delete(r.problemSince, name)
			continue
		}
		if r.problemSince[name].IsZero() {
			r.problemSince[name] = now
		}
		if problem.final || now.Sub(r.problemSince[name]) >= max(problemGrace, problem.grace) {
			return false, r.explain(pod, problem)
		}
	}
	if running == r.want {
		return true, nil
	}
	return false, r.checkEvents(now)
}

// explain returns a problem, or its cause if events show that an image pull secret is missing.
func (r *Readiness) explain(pod *corev1.Pod, found *Problem) error {
	if len(pod.Spec.ImagePullSecrets) == 0 {
		return found
	}
	events, err := r.events()
	if err != nil {
		return found // without events the cause stays unknown
	}
	if cause := missingSecret(pod, events); cause != nil {
		return cause
	}
	return found
}

// checkEvents reads the events, at most once in quietTime, and returns a problem that is final or has lasted too long.
func (r *Readiness) checkEvents(now time.Time) error {
	if now.Sub(r.eventsRead) < quietTime {
		return nil
	}
	r.eventsRead = now
	events, err := r.events()
	if err != nil {
		return nil // the pods' status decides
	}
	for name, pod := range r.Pods {
		problem := fromEvents(pod, events)
		if problem == nil || inspection.Runs(pod) {
			continue
		}
		if r.warnedSince[name].IsZero() {
			r.warnedSince[name] = now
		}
		if problem.final || now.Sub(r.warnedSince[name]) >= eventGrace {
			return r.explain(pod, problem)
		}
	}
	return nil
}

// State describes the problem or the progress of each pod.
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
