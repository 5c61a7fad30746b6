package kube

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/knotmeter/knotmeter/internal/target/kube/diagnosis"
)

// tick is how often what is waited for is looked at without news.
const tick = 500 * time.Millisecond

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

// awaitPods waits until the pods of a site run, and returns them; or says what keeps them from it.
func (s *site) awaitPods(ctx context.Context) (map[string]*corev1.Pod, error) {
	if s.volume != nil {
		return s.awaitVolume(ctx)
	}
	p := diagnosis.NewReadiness(len(s.plan.roles()), time.Now(), func() ([]corev1.Event, error) {
		found, err := s.cluster.CoreV1().Events(s.plan.namespace).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.kind=Pod,type=Warning"})
		if err != nil {
			return nil, err
		}
		return found.Items, nil
	})
	err := s.ward.until(ctx, func() (bool, error) {
		for name, pod := range s.ward.pods {
			if s.ward.gone[name] {
				return false, fmt.Errorf("pod %s: %w", name, diagnosis.ErrGone)
			}
			p.Pods[name] = pod
		}
		return p.Judge(time.Now())
	})
	if err != nil && ctx.Err() != nil {
		return nil, fmt.Errorf("%w (%s)", err, p.State())
	}
	return p.Pods, err
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
		last = diagnosis.OnlyEndpoint(known, want)
		return last == nil, nil
	})
	if err != nil && last != nil {
		return fmt.Errorf("service %s: %w: %w", service, last, err)
	}
	return diagnosis.Explain(err, s.plan.namespace)
}
