package machine

import (
	"testing"
	"time"
)

// A machine that is awake never has slept for less than no time, or for less than a moment before.
func TestAsleep(t *testing.T) {
	before := Asleep()
	time.Sleep(50 * time.Millisecond)
	const most = 20 * time.Millisecond // between two readings of clocks
	if d := Asleep() - before; before < -most || d < -most {
		t.Errorf("%v, and %v more", before, d)
	}
}
