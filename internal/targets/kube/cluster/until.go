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

// tick is the interval of checks between events.
const tick = 500 * time.Millisecond

// Until calls see with each event of a watch until see returns true or an error, or ctx ends. see is also called at
// each tick, with an event without an object. A watch that ends early is opened again, and begins with the objects that
// exist.
//
// client-go's tools/watch does not suffice. UntilWithSync needs the right to list what it watches, which users need not
// have for endpoint slices and nodes, and without a right it waits on. Until ends when a resource version is too old.
// Neither has ticks, by which see limits how long a temporary problem may last.
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
		done, err := untilWatchEnds(ctx, w, ticker.C, see)
		w.Stop()
		if done || err != nil {
			return err
		}
	}
}

// untilWatchEnds is Until for a single watch. It returns false without an error if the watch ended early.
func untilWatchEnds(
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

// watchRetryPause is the pause before a failed watch is opened again.
const watchRetryPause = time.Second

// watchUntilFinal calls see with each event until ctx ends. It reopens a watch that failed, unless final reports that
// the error is permanent.
func watchUntilFinal(
	ctx context.Context, open func(context.Context) (watch.Interface, error), see func(watch.Event),
	final func(error) bool,
) error {
	for {
		err := Until(ctx, open, func(e watch.Event) (bool, error) { see(e); return false, nil })
		if ctx.Err() != nil || final(err) || Pause(ctx, watchRetryPause) != nil {
			return err
		}
	}
}

// Pause waits for d and returns nil. If ctx ends first, Pause returns its cause.
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

// Every calls do at intervals until stop is called. stop waits for a call in progress.
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

// ByName returns options that select one object.
func ByName(name string) metav1.ListOptions {
	return metav1.ListOptions{FieldSelector: "metadata.name=" + name}
}

// A list is a list of objects of the API server.
type list interface {
	runtime.Object
	metav1.ListInterface
}

// errNothingLeft ends the wait of AwaitGone when list returns no objects.
var errNothingLeft = errors.New("nothing left")

// AwaitGone waits until list returns no objects, or until all objects that it returned are deleted. begin starts a
// watch.
func AwaitGone[L list](ctx context.Context, which metav1.ListOptions,
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
			return nil, errNothingLeft
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
	if errors.Is(err, errNothingLeft) {
		return nil
	}
	return err
}

// key returns the namespace and name of an object.
func key(o runtime.Object) string {
	m, err := meta.Accessor(o)
	if err != nil {
		return "" // impossible: all objects of the API server have metadata
	}
	return m.GetNamespace() + "/" + m.GetName()
}
