package kube

import (
	"os"
	"testing"
	"time"

	"github.com/knotmeter/knotmeter/internal/targets"
	"github.com/knotmeter/knotmeter/internal/targets/targettest"
)

// TestVolumeConformance checks that storage fulfils the contract of all targets. The test needs some forty volumes, so
// it runs only with 'make e2e-volumes'.
func TestVolumeConformance(t *testing.T) {
	if os.Getenv("KNOTMETER_E2E_VOLUMES") == "" {
		t.Skip("KNOTMETER_E2E_VOLUMES is not set")
	}
	c := admin(t)
	text := withVolumes(t, c, "storage-class=loop-ext4&size=64Mi") + "&namespace=" + namespaceFor(t, c, "restricted")
	targettest.Suite(t, targettest.Config{
		New:     func(t *testing.T) targets.Target { return newTestTarget(t, text) },
		Offers:  []targets.Placement{{Volume: true}},
		Left:    func(t *testing.T) []string { return leftovers(t, c) },
		Place:   hostname,
		Moments: []time.Duration{0, 50 * time.Millisecond, time.Second, 3 * time.Second},
	})
}
