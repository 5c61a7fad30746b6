package cluster

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// tick is how often what is waited for is looked at without news.
const tick = 500 * time.Millisecond

// Until calls see with each event of a watch until see reports that it is done, or fails, or ctx ends. An event without
// an object is a tick of the clock. A watch that ends early is opened again, and begins with the objects that exist.
//
// client-go's tools/watch does not suffice: UntilWithSync needs the right to list what it watches, which users need not
// have for endpoint slices and nodes, and waits on when a right is missing; Until ends when a resource version is too
// old; and neither has a clock, which decides how long passing trouble may last.
func Until(
	ctx context.Context, open func(context.Context) (watch.Interface, error), see func(watch.Event) (bool, error),
) error {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		w, err := open(ctx)
		if err != nil {
			return err
		}
		done, err := once(ctx, w, ticker.C, see)
		w.Stop()
		if done || err != nil {
			return err
		}
	}
}

// once is Until for as long as one watch lasts.
func once(
	ctx context.Context, w watch.Interface, ticks <-chan time.Time, see func(watch.Event) (bool, error),
) (bool, error) {
	for {
		var e watch.Event
		select {
		case <-ctx.Done():
			return false, context.Cause(ctx)
		case <-ticks:
		case next, ok := <-w.ResultChan():
			if !ok || next.Type == watch.Error {
				return false, Pause(ctx, tick)
			}
			e = next
		}
		if done, err := see(e); done || err != nil {
			return done, err
		}
	}
}

// again is how long a watch that failed rests.
const again = time.Second

// keep is Until for as long as ctx lasts: what fails is tried again, unless that is final.
func keep(
	ctx context.Context, open func(context.Context) (watch.Interface, error), see func(watch.Event),
	final func(error) bool,
) error {
	for {
		err := Until(ctx, open, func(e watch.Event) (bool, error) { see(e); return false, nil })
		if ctx.Err() != nil || final(err) || Pause(ctx, again) != nil {
			return err
		}
	}
}

// Pause waits for so long, or until ctx ends, whose cause it returns then.
func Pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}

// Every does something at intervals until stop is called, which returns when it is over.
func Every(interval time.Duration, do func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for Pause(ctx, interval) == nil {
			do(ctx)
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}

// Named selects one object.
func Named(name string) metav1.ListOptions {
	return metav1.ListOptions{FieldSelector: "metadata.name=" + name}
}

// A list is one of the API server's.
type list interface {
	runtime.Object
	metav1.ListInterface
}

// errOver says that nothing is left to wait for.
var errOver = errors.New("over")

// Gone waits until nothing is left of what a list shows.
func Gone[L list](ctx context.Context, which metav1.ListOptions,
	list func(context.Context, metav1.ListOptions) (L, error),
	begin func(context.Context, metav1.ListOptions) (watch.Interface, error),
) error {
	left := map[string]bool{}
	err := Until(ctx, func(ctx context.Context) (watch.Interface, error) {
		found, err := list(ctx, which)
		if err != nil {
			return nil, err
		}
		if meta.LenList(found) == 0 {
			return nil, errOver
		}
		clear(left)
		if err := meta.EachListItem(found, func(o runtime.Object) error { left[key(o)] = true; return nil }); err != nil {
			return nil, err
		}
		from := which
		from.ResourceVersion = found.GetResourceVersion()
		return begin(ctx, from)
	}, func(e watch.Event) (bool, error) {
		if e.Type == watch.Deleted {
			delete(left, key(e.Object))
		}
		return len(left) == 0, nil
	})
	if errors.Is(err, errOver) {
		return nil
	}
	return err
}

// key is what an object is known by among others of its kind.
func key(o runtime.Object) string {
	m, err := meta.Accessor(o)
	if err != nil {
		return "" // everything of the API server has a name
	}
	return m.GetNamespace() + "/" + m.GetName()
}
