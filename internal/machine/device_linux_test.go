package machine

import (
	"testing"

	"github.com/knotmeter/knotmeter/internal/result"
)

// TestFormatSpeed checks that a constant of the kernel is not reported as a speed.
func TestFormatSpeed(t *testing.T) {
	for of, want := range map[[2]string]string{
		{"ena", "25000"}: "25000 Mbit/s", {"virtio_net", "-1"}: result.Unknown, {"veth", "10000"}: result.Unknown,
		{"tun", "10"}: result.Unknown, {"dummy", result.Unknown}: result.Unknown, {"bonding", "0"}: result.Unknown,
	} {
		if got := formatSpeed(of[0], of[1]); got != want {
			t.Errorf("%v: %q, want %q", of, got, want)
		}
	}
}
