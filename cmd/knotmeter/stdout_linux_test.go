package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestStdoutClosed checks that every command reports a closed standard output and fails, and that /dev/null is not
// taken for one.
func TestStdoutClosed(t *testing.T) {
	if runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64" {
		t.Skip("a closed standard output is not known here")
	}
	const flag = "-E main.entry"
	program := filepath.Join(t.TempDir(), "knotmeter")
	if out, err := exec.Command("go", "build", "-ldflags", flag, "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	run := func(to, line string) (status int, text string) {
		c := exec.Command("sh", "-c", "exec "+program+" "+line+" "+to)
		c.Dir = t.TempDir()
		out, err := c.CombinedOutput()
		if exit, failed := errors.AsType[*exec.ExitError](err); failed {
			return exit.ExitCode(), string(out)
		}
		return 0, string(out)
	}
	for _, line := range []string{
		"", "--help", "--version", "version", "help list", "list targets", "completion bash", "plan lab:native",
		"run lab:native", "doctor lab:native", "selftest", "clean --dry-run", "compare .", "report .",
		"explain .", "audit .",
		"import csv x.csv", "image build",
	} {
		if status, text := run(">&-", line); status != 1 || !strings.Contains(text, "standard output is closed") {
			t.Errorf("%s: status %d: %s", line, status, text)
		}
	}
	for _, to := range []string{">/dev/null", "1<>/dev/null"} {
		if status, text := run(to, "version"); status != 0 || text != "" {
			t.Errorf("%s: status %d: %s", to, status, text)
		}
	}
	for _, name := range []string{"../../Makefile", "../dist/compile.go"} {
		if text, err := os.ReadFile(name); err != nil || !strings.Contains(string(text), flag) {
			t.Errorf("%s does not link with %s: %v", name, flag, err)
		}
	}
}
