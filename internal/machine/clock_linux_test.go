package machine

import (
	"testing"
	"time"
)

// TestAsleep checks that the time asleep is not negative and does not decrease.
func TestAsleep(t *testing.T) {
	before := Asleep()
	time.Sleep(50 * time.Millisecond)
	const most = 20 * time.Millisecond // between two readings of clocks
	if d := Asleep() - before; before < -most || d < -most {
		t.Errorf("%v, and %v more", before, d)
	}
}
