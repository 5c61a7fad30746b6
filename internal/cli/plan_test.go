package cli

import (
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/registry"
)

// TestInterruptedPilot checks that an interrupted pilot ends with the status of an interruption and leaves nothing
// behind.
func TestInterruptedPilot(t *testing.T) {
	p := start(t, "plan", "--pilot", "--target", "lab:native", "--target", "lab:vxlan", "--case", "pod-pod/other/tcp-rr",
		"--duration", "30s", "--progress", "none")
	p.awaitProcess(t, registry.AgentCommand) // the pilot has begun
	p.interrupt(t)
	if !strings.Contains(p.output.String(), "nothing is kept of a pilot") {
		t.Errorf("it says:\n%s", &p.output)
	}
	p.mustLeaveNothing(t, "interrupted")
	if files := entries(t, p.Dir); len(files) > 0 {
		t.Errorf("it left %v", files)
	}
}
