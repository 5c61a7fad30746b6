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

// A PodWatch is what is known of some pods, from their making to their end. One watch is open all the while, so that
// nothing is missed for being short, and a run takes no further requests.
type PodWatch struct {
	want    int // pods
	mu      sync.Mutex
	pods    map[string]*corev1.Pod // as last seen, by name; those that are gone too
	gone    map[string]bool
	changed chan struct{} // holds something if there is news
	err     error         // why there will be no more
	end     context.CancelFunc
}

// Pods begins to watch those that a selector finds, which are to be so many.
func Pods(pods corev1client.PodInterface, selector string, want int) *PodWatch {
	ctx, end := context.WithCancel(context.Background())
	w := newPodWatch(want)
	w.end = end
	which := metav1.ListOptions{LabelSelector: selector}
	first := true
	open := func(ctx context.Context) (watch.Interface, error) {
		if first { // has each pod that there is
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
	go func() { w.fail(keep(ctx, open, w.see, final)) }()
	return w
}

func newPodWatch(want int) *PodWatch {
	return &PodWatch{want: want, pods: map[string]*corev1.Pod{}, gone: map[string]bool{}, changed: make(chan struct{}, 1)}
}

// End ends the watch.
func (w *PodWatch) End() { w.end() }

func (w *PodWatch) see(e watch.Event) {
	p, ok := e.Object.(*corev1.Pod)
	if !ok {
		return
	}
	w.mu.Lock()
	w.pods[p.Name], w.gone[p.Name] = p, e.Type == watch.Deleted
	w.mu.Unlock()
	w.tell()
}

// relist takes what there is after a time without news.
func (w *PodWatch) relist(found []corev1.Pod) {
	w.mu.Lock()
	for name := range w.pods {
		w.gone[name] = true
	}
	for i := range found {
		w.pods[found[i].Name], w.gone[found[i].Name] = &found[i], false
	}
	w.mu.Unlock()
	w.tell()
}

func (w *PodWatch) fail(err error) {
	w.mu.Lock()
	w.err = err
	w.mu.Unlock()
	w.tell()
}

func (w *PodWatch) tell() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// until calls look whenever there is news, and now and then, until it is done or fails, or ctx ends. look has the pods
// to itself meanwhile.
func (w *PodWatch) until(ctx context.Context, look func() (bool, error)) error {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		w.mu.Lock()
		done, err := look()
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

// Running waits until the pods run, and returns them; or says what keeps them from it. If there is a blocked, it is
// asked first, with the pods as they are.
func (w *PodWatch) Running(
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
		return r.Judge(time.Now())
	})
	if err != nil && ctx.Err() != nil {
		return nil, fmt.Errorf("%w (%s)", err, r.State())
	}
	return r.Pods, err
}

// AllGone waits until none of the pods is left. It is false where that is not known: not all were ever seen, or the
// watch is lost, or ctx ends.
func (w *PodWatch) AllGone(ctx context.Context) bool {
	return w.sawAll() && w.until(ctx, w.allGone) == nil
}

// sawAll says whether all pods were ever seen.
func (w *PodWatch) sawAll() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.pods) == w.want && w.err == nil
}

// allGone says whether none of the pods is left, to until.
func (w *PodWatch) allGone() (bool, error) {
	for name := range w.pods {
		if !w.gone[name] {
			return false, nil
		}
	}
	return true, nil
}

// Ailments are what became of pods since they were as before says.
func (w *PodWatch) Ailments(before map[string]*corev1.Pod) []string {
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

// PodWarnings asks for the warnings about the pods of a namespace.
func PodWarnings(ctx context.Context, events corev1client.EventInterface) func() ([]corev1.Event, error) {
	return func() ([]corev1.Event, error) {
		found, err := events.List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.kind=Pod,type=Warning"})
		if err != nil {
			return nil, err
		}
		return found.Items, nil
	}
}
