package cli

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/targets"
)

// printing are commands that all print something.
var printing = []string{
	"", "--help", "--version", "help list", "version", "completion bash", "plan lab:native lab:vxlan", "clean --dry-run",
	"list targets", "list cases", "list tools", "list formats", "list references", "doctor lab:native", "import --help",
}

// printTo runs the program with an output, and returns its status and what it writes to standard error.
func printTo(t *testing.T, out *os.File, line string) (status int, errs string) {
	t.Helper()
	var b strings.Builder
	cmd := exec.Command(os.Args[0], strings.Fields(line)...)
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), programVariable+"=1", targets.ClaimsVariable+"="+t.TempDir())
	cmd.Stdout, cmd.Stderr = out, &b
	exit, ended := errors.AsType[*exec.ExitError](cmd.Run())
	if !ended {
		return statusDone, b.String()
	}
	return exit.ExitCode(), b.String()
}

// TestOutputClosed checks that a command whose reader has closed the output, as in 'knotmeter list cases | true', ends
// without a message.
func TestOutputClosed(t *testing.T) {
	for _, line := range printing {
		t.Run(line, func(t *testing.T) {
			reader, writer, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer writer.Close()
			reader.Close()
			if status, errs := printTo(t, writer, line); status != statusClosed || errs != "" {
				t.Errorf("status %d, want %d; standard error: %s", status, statusClosed, errs)
			}
		})
	}
}

// TestOutputFull checks that a command reports that its output cannot be written.
func TestOutputFull(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer full.Close()
	for _, line := range printing {
		t.Run(line, func(t *testing.T) {
			status, errs := printTo(t, full, line)
			if status != statusUsage || !strings.Contains(errs, "no space left on device") {
				t.Errorf("status %d, want %d; standard error: %s", status, statusUsage, errs)
			}
		})
	}
}
