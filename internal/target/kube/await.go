package kube

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// How long a pod may be in trouble that may pass, and without news, before its events are asked.
const (
	trouble = 5 * time.Second
	silence = 8 * time.Second
	tick    = 500 * time.Millisecond
)

// follow calls see with each object of a watch until it says that it is done, or fails. A nil object is a
// tick of the clock. A watch that ends early is begun again, and tells what there is first.
func follow(ctx context.Context, open func(context.Context) (watch.Interface, error), see func(watch.Event) (bool, error)) error {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		w, err := open(ctx)
		if err != nil {
			return err
		}
		done, err := followOnce(ctx, w, ticker.C, see)
		w.Stop()
		if done || err != nil {
			return err
		}
	}
}

func followOnce(ctx context.Context, w watch.Interface, ticks <-chan time.Time, see func(watch.Event) (bool, error)) (bool, error) {
	for {
		var e watch.Event
		select {
		case <-ctx.Done():
			return false, context.Cause(ctx)
		case <-ticks:
		case next, ok := <-w.ResultChan():
			if !ok || next.Type == watch.Error {
				return false, pause(ctx, tick)
			}
			e = next
		}
		if done, err := see(e); done || err != nil {
			return done, err
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}

// A patience is what is known of pods that should run, and since when.
type patience struct {
	want   int // pods
	pods   map[string]*corev1.Pod
	since  map[string]time.Time // of the trouble
	asked  time.Time            // when events were
	events func() ([]corev1.Event, error)
}

// awaitPods waits until the pods of a site run, and returns them; or says what keeps them from it.
func (s *site) awaitPods(ctx context.Context) (map[string]*corev1.Pod, error) {
	if s.volume != nil {
		return s.awaitVolume(ctx)
	}
	now := time.Now()
	p := &patience{want: len(s.plan.roles()), pods: map[string]*corev1.Pod{}, since: map[string]time.Time{}, asked: now, events: func() ([]corev1.Event, error) {
		found, err := s.cluster.CoreV1().Events(s.plan.namespace).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.kind=Pod,type=Warning"})
		if err != nil {
			return nil, err
		}
		return found.Items, nil
	}}
	err := s.ward.until(ctx, func() (bool, error) {
		for name, pod := range s.ward.pods {
			if s.ward.gone[name] {
				return false, fmt.Errorf("pod %s: %w", name, errGone)
			}
			p.pods[name] = pod
		}
		return p.judge(time.Now())
	})
	if err != nil && ctx.Err() != nil {
		return nil, fmt.Errorf("%w (%s)", err, p.state())
	}
	return p.pods, err
}

// judge says whether all pods run, or what is wrong if it has been long enough.
func (p *patience) judge(now time.Time) (bool, error) {
	running := 0
	for name, pod := range p.pods {
		if runs(pod) {
			running++
			continue
		}
		problem := diagnose(pod)
		if problem == nil {
			delete(p.since, name)
			continue
		}
		if p.since[name].IsZero() {
			p.since[name] = now
		}
		if problem.final || now.Sub(p.since[name]) >= max(trouble, problem.patient) {
			return false, p.because(pod, problem)
		}
	}
	if running == p.want {
		return true, nil
	}
	return false, p.ask(now)
}

// because is a problem, or what is behind it according to the events. Only pods that name secrets can lack one.
func (p *patience) because(pod *corev1.Pod, found *problem) error {
	if len(pod.Spec.ImagePullSecrets) == 0 {
		return found
	}
	events, err := p.events()
	if err != nil {
		return found // what is known will have to do
	}
	if behind := missingSecret(pod, events); behind != nil {
		return behind
	}
	return found
}

// ask looks at the events when there is no other news.
func (p *patience) ask(now time.Time) error {
	if now.Sub(p.asked) < silence {
		return nil
	}
	p.asked = now
	events, err := p.events()
	if err != nil {
		return nil // the status will have to do
	}
	for _, pod := range p.pods {
		if problem := fromEvents(pod, events); problem != nil && !runs(pod) {
			return problem
		}
	}
	return nil
}

func (p *patience) state() string {
	var words []string
	for name, pod := range p.pods {
		text := string(pod.Status.Phase)
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

// runs says whether the agent's container runs and has an address.
func runs(p *corev1.Pod) bool {
	return p.DeletionTimestamp == nil && p.Status.Phase == corev1.PodRunning && p.Status.PodIP != "" &&
		ownStatus(p) != nil && ownStatus(p).State.Running != nil
}

// awaitEndpoint waits until the Service has exactly the endpoint that is meant.
func (s *site) awaitEndpoint(ctx context.Context, service string, want netip.AddrPort) error {
	endpoints := s.cluster.DiscoveryV1().EndpointSlices(s.plan.namespace)
	known := map[string]*discoveryv1.EndpointSlice{}
	open := func(ctx context.Context) (watch.Interface, error) {
		return endpoints.Watch(ctx, metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + service})
	}
	var last error
	err := follow(ctx, open, func(e watch.Event) (bool, error) {
		if slice, ok := e.Object.(*discoveryv1.EndpointSlice); ok {
			known[slice.Name] = slice
			if e.Type == watch.Deleted {
				delete(known, slice.Name)
			}
		}
		last = onlyEndpoint(known, want)
		return last == nil, nil
	})
	if err != nil && last != nil {
		return fmt.Errorf("service %s: %w: %w", service, last, err)
	}
	return explain(err, s.plan.namespace)
}

// onlyEndpoint says how the endpoints of a Service differ from the one that is meant, for TCP and UDP.
func onlyEndpoint(known map[string]*discoveryv1.EndpointSlice, want netip.AddrPort) error {
	var found []string
	for _, slice := range known {
		for _, e := range slice.Endpoints {
			if e.Conditions.Ready != nil && !*e.Conditions.Ready {
				continue
			}
			for _, p := range slice.Ports {
				if p.Port == nil || p.Protocol == nil {
					continue
				}
				for _, address := range e.Addresses {
					found = append(found, fmt.Sprintf("%s %s port %d", *p.Protocol, address, *p.Port))
				}
			}
		}
	}
	slices.Sort(found)
	wanted := []string{fmt.Sprintf("TCP %s port %d", want.Addr(), want.Port()), fmt.Sprintf("UDP %s port %d", want.Addr(), want.Port())}
	if !slices.Equal(found, wanted) {
		return fmt.Errorf("its endpoints are %s, not %s", list(found), list(wanted))
	}
	return nil
}
