package agent

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// TestAdmission checks that a silent connection delays no other, that the oldest is evicted when there are too many,
// and that Close evicts all.
func TestAdmission(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q Admission
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
			q.Add(func() { <-said }, leave, then)
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
		for range AdmissionCapacity {
			silent()
		}
		if !gone.Load() || out.Load() != 1 {
			t.Errorf("the oldest stays; %d had to leave", out.Load())
		}
		q.Close()
		if out.Load() != AdmissionCapacity+1 {
			t.Errorf("%d of %d have left", out.Load(), AdmissionCapacity+1)
		}
		if _, left := silent(); !left.Load() {
			t.Error("a closed queue accepts connections")
		}
		<-first
		q.Close()
	})
}

// TestEvictionOrder checks that the oldest connections are evicted, whatever the order in which their goroutines begin.
func TestEvictionOrder(t *testing.T) {
	for range 100 {
		var q Admission
		var left [2 * AdmissionCapacity]atomic.Bool
		for i := range left {
			said := make(chan struct{})
			q.Add(func() { <-said }, func() { left[i].Store(true); close(said) }, func() {})
		}
		for i := range left {
			if left[i].Load() != (i < AdmissionCapacity) {
				t.Fatalf("the connection that came as number %d: had to leave: %t", i, left[i].Load())
			}
		}
		q.Close()
	}
}
