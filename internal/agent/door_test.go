package agent

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// Nobody waits for another's silence; the oldest leaves when there are too many, and all when the door is closed.
func TestDoor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d Door
		var in, out atomic.Int64
		silent := func() (said chan struct{}, left *atomic.Bool) {
			said, left = make(chan struct{}), new(atomic.Bool)
			leave := func() { left.Store(true); close(said) }
			then := func() {
				if left.Load() {
					out.Add(1)
				} else {
					in.Add(1)
				}
			}
			d.Await(func() { <-said }, leave, then)
			synctest.Wait()
			return said, left
		}
		first, gone := silent()
		second, stays := silent()
		close(second)
		synctest.Wait()
		if in.Load() != 1 || stays.Load() || gone.Load() {
			t.Errorf("%d are in", in.Load())
		}
		for range DoorMost {
			silent()
		}
		if !gone.Load() || out.Load() != 1 {
			t.Errorf("the oldest stays; %d had to leave", out.Load())
		}
		d.Close()
		if out.Load() != DoorMost+1 {
			t.Errorf("%d of %d have left", out.Load(), DoorMost+1)
		}
		if _, left := silent(); !left.Load() {
			t.Error("a closed door is open")
		}
		<-first
		d.Close()
	})
}

// Who came last is not the oldest, however late the goroutines of those before it begin.
func TestDoorOrder(t *testing.T) {
	for range 100 {
		var d Door
		var left [2 * DoorMost]atomic.Bool
		for i := range left {
			said := make(chan struct{})
			d.Await(func() { <-said }, func() { left[i].Store(true); close(said) }, func() {})
		}
		for i := range left {
			if left[i].Load() != (i < DoorMost) {
				t.Fatalf("the connection that came as number %d: had to leave: %t", i, left[i].Load())
			}
		}
		d.Close()
	}
}
