package compare

import (
	"testing"

	"github.com/knotmeter/knotmeter/internal/result"
)

// TestUnpacedIsLabelled checks that rows of unpaced streams have the warning.
func TestUnpacedIsLabelled(t *testing.T) {
	for pacing, want := range map[string]bool{"none": true, "1000/s": false} {
		w := newWorld(8, "A", "B")
		w.addCase("pod-pod/other/udp-stream-unpaced", result.Primary, "throughput")
		for block := range 8 {
			for _, target := range []string{"A", "B"} {
				r := w.add(block+1, "pod-pod/other/udp-stream-unpaced", target, throughput(1e9+float64(block)))
				r.Facts = []result.Fact{{Name: "udp.pacing", Value: pacing}}
			}
		}
		c := compare(t, w, nil)
		if len(c.Comparisons) == 0 {
			t.Fatal("nothing is compared")
		}
		for _, r := range c.Comparisons {
			if warned(r.Warnings, Unpaced) != want {
				t.Errorf("pacing %q: warnings %+v", pacing, r.Warnings)
			}
		}
	}
}
