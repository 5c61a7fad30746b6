package kube

import (
	"os"
	"testing"
	"time"

	"github.com/knotmeter/knotmeter/internal/targets"
	"github.com/knotmeter/knotmeter/internal/targets/targettest"
)

// Storage is held to the contract of all targets. It takes some forty volumes, and so is not among the tests that every
// change takes: 'make e2e-volumes' has it.
func TestVolumeConformance(t *testing.T) {
	if os.Getenv("KNOTMETER_E2E_VOLUMES") == "" {
		t.Skip("KNOTMETER_E2E_VOLUMES is not set")
	}
	c := admin(t)
	text := withVolumes(t, c, "storage-class=loop-ext4&size=64Mi") + "&namespace=" + namespaceFor(t, c, "restricted")
	targettest.Suite(t, targettest.Config{
		New:     func(t *testing.T) targets.Target { return open(t, text) },
		Offers:  []targets.Placement{{Volume: true}},
		Left:    func(t *testing.T) []string { return leftIn(t, c) },
		Place:   hostname,
		Moments: []time.Duration{0, 50 * time.Millisecond, time.Second, 3 * time.Second},
	})
}
