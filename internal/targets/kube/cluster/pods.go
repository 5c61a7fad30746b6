package cluster

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/knotmeter/knotmeter/internal/targets/kube/diagnosis"
)

// A PodWatch tracks some pods from creation to removal. A single watch stays open all the time, so that it misses no
// short event and runs cause no further requests.
type PodWatch struct {
	want    int // number of pods
	mu      sync.Mutex
	pods    map[string]*corev1.Pod // latest state by name, including removed pods
	gone    map[string]bool        // removed pods
	changed chan struct{}          // holds a value after a change
	err     error                  // why the watch ended
	end     context.CancelFunc
}

// WatchPods starts to watch the pods that a selector finds; want is the number of pods that will be created.
func WatchPods(pods corev1client.PodInterface, selector string, want int) *PodWatch {
	ctx, end := context.WithCancel(context.Background())
	w := newPodWatch(want)
	w.end = end
	which := metav1.ListOptions{LabelSelector: selector}
	first := true
	open := func(ctx context.Context) (watch.Interface, error) {
		if first { // this watch begins with the pods that exist
			opened, err := pods.Watch(ctx, which)
			first = err != nil
			return opened, err
		}
		found, err := pods.List(ctx, which)
		if err != nil {
			return nil, err
		}
		w.relist(found.Items)
		from := which
		from.ResourceVersion = found.ResourceVersion
		return pods.Watch(ctx, from)
	}
	final := func(err error) bool { return first || apierrors.IsForbidden(err) || apierrors.IsNotFound(err) }
	go func() { w.fail(watchUntilFinal(ctx, open, w.record, final)) }()
	return w
}

func newPodWatch(want int) *PodWatch {
	return &PodWatch{want: want, pods: map[string]*corev1.Pod{}, gone: map[string]bool{}, changed: make(chan struct{}, 1)}
}

// End ends the watch.
func (w *PodWatch) End() { w.end() }

func (w *PodWatch) record(e watch.Event) {
	p, ok := e.Object.(*corev1.Pod)
	if !ok {
		return
	}
	w.mu.Lock()
	w.pods[p.Name], w.gone[p.Name] = p, e.Type == watch.Deleted
	w.mu.Unlock()
	w.notify()
}

// relist replaces the state of all pods after an interruption of the watch.
func (w *PodWatch) relist(found []corev1.Pod) {
	w.mu.Lock()
	for name := range w.pods {
		w.gone[name] = true
	}
	for i := range found {
		w.pods[found[i].Name], w.gone[found[i].Name] = &found[i], false
	}
	w.mu.Unlock()
	w.notify()
}

func (w *PodWatch) fail(err error) {
	w.mu.Lock()
	w.err = err
	w.mu.Unlock()
	w.notify()
}

func (w *PodWatch) notify() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// until calls check, with the pods locked, at once and after each change and each tick. It returns when check returns
// true or an error, the watch fails, or ctx ends.
func (w *PodWatch) until(ctx context.Context, check func() (bool, error)) error {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		w.mu.Lock()
		done, err := check()
		if err == nil {
			err = w.err
		}
		w.mu.Unlock()
		if done || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-w.changed:
		case <-ticker.C:
		}
	}
}

// AwaitRunning waits until the pods run, and returns them. The error explains what prevents it. If blocked is not nil,
// it is called before each check, and its error ends the wait.
func (w *PodWatch) AwaitRunning(
	ctx context.Context, r *diagnosis.Readiness, blocked func(map[string]*corev1.Pod) error,
) (map[string]*corev1.Pod, error) {
	err := w.until(ctx, func() (bool, error) {
		for name, pod := range w.pods {
			if w.gone[name] {
				return false, fmt.Errorf("pod %s: %w", name, diagnosis.ErrGone)
			}
			r.Pods[name] = pod
		}
		if blocked != nil {
			if err := blocked(r.Pods); err != nil {
				return false, err
			}
		}
		return r.AllRunning(time.Now())
	})
	if err != nil && ctx.Err() != nil {
		return nil, fmt.Errorf("%w (%s)", err, r.State())
	}
	return r.Pods, err
}

// AwaitGone waits until all pods are removed. It returns false if that is unknown: not all pods were seen, the watch
// failed, or ctx ended.
func (w *PodWatch) AwaitGone(ctx context.Context) bool {
	w.mu.Lock()
	sawAll := len(w.pods) == w.want && w.err == nil
	w.mu.Unlock()
	return sawAll && w.until(ctx, w.allGone) == nil
}

// allGone reports whether all pods are removed. Its error is always nil.
func (w *PodWatch) allGone() (bool, error) {
	for name := range w.pods {
		if !w.gone[name] {
			return false, nil
		}
	}
	return true, nil
}

// Problems returns, sorted, what happened to the pods in before since they were in the states that it holds.
func (w *PodWatch) Problems(before map[string]*corev1.Pod) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var list []string
	for name, then := range before {
		if why := diagnosis.PodDisruption(then, w.pods[name], w.gone[name]); why != "" {
			list = append(list, why)
		}
	}
	slices.Sort(list)
	return list
}

// PodWarnings returns a function that lists the warning events about the pods of a namespace.
func PodWarnings(ctx context.Context, events corev1client.EventInterface) func() ([]corev1.Event, error) {
	return func() ([]corev1.Event, error) {
		found, err := events.List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.kind=Pod,type=Warning"})
		if err != nil {
			return nil, err
		}
		return found.Items, nil
	}
}
