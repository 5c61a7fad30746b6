//go:build linux

package paths

import (
	"context"
	"os"
	"slices"
	"testing"

	"github.com/knotmeter/knotmeter/internal/cli"
	"github.com/knotmeter/knotmeter/internal/registry"
)

// TestMain lets the lab start the test binary as the program, by its hidden commands.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && slices.Contains([]string{registry.AgentCommand, registry.HolderCommand}, os.Args[1]) {
		os.Exit(cli.Main(context.Background(), cli.StandardStreams(), "test", os.Args[1:]))
	}
	os.Exit(m.Run())
}
