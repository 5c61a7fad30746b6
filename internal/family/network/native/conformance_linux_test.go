package native

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/knotmeter/knotmeter/internal/family/familytest"
	"github.com/knotmeter/knotmeter/internal/host"
)

// TestConformance runs the conformance suite of all tools.
func TestConformance(t *testing.T) {
	familytest.Suite(t, familytest.Config{
		Tool:    New(),
		Pair:    func(t *testing.T) host.Pair { return pair(t, "127.0.0.1") },
		Running: agentProcesses,
	})
}

// agentProcesses returns the running agents that this process started.
func agentProcesses(t *testing.T) []string {
	t.Helper()
	names, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, name := range names {
		pid := filepath.Base(filepath.Dir(name))
		line, err := os.ReadFile(name)
		if err != nil || !bytes.Contains(line, []byte("\x00"+agentArgument+"\x00")) {
			continue
		}
		status, err := os.ReadFile("/proc/" + pid + "/status")
		if err == nil && bytes.Contains(status, []byte("\nPPid:\t"+strconv.Itoa(os.Getpid())+"\n")) {
			found = append(found, pid)
		}
	}
	return found
}
