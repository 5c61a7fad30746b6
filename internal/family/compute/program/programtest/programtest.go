// Package programtest tests the tools that use programs of other projects, on this machine and with the real programs.
package programtest

import (
	"context"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/agentprogram"
	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/family/compute"
	"github.com/knotmeter/knotmeter/internal/family/familytest"
	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/host/remote"
	"github.com/knotmeter/knotmeter/internal/result"
)

// Main is TestMain of packages that use [Here]: it runs the tests, or the agent that hosts start as this program.
func Main(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == remote.AgentCommand {
		if err := agentprogram.Run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr); err != nil {
			panic(err)
		}
		return
	}
	m.Run()
}

// Workload parses a workload.
func Workload(t testing.TB, text string) compute.Workload {
	t.Helper()
	w, err := compute.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// Here returns this machine with an agent. It skips the test if the machine lacks a program.
func Here(t *testing.T, program string) *host.Local {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		t.Skip(host.Missing(program, "this machine"))
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return host.NewLocal("here", netip.MustParseAddr("127.0.0.1"), nil, self, remote.AgentCommand)
}

// Suite runs the conformance suite of tools with these workloads on this machine.
func Suite(t *testing.T, tool family.Tool, texts ...string) {
	var list []family.Workload
	for _, text := range texts {
		list = append(list, Workload(t, text))
	}
	dir := t.TempDir()
	t.Chdir(dir)
	familytest.Suite(t, familytest.Config{
		Tool: tool, Workloads: list,
		Pair:    func(t *testing.T) host.Pair { return host.Pair{Client: Here(t, tool.Program(list[0]))} },
		Running: func(t *testing.T) []string { return running(t, dir) },
	})
}

// running lists the other processes that work in a directory. stress-ng's children keep that and their process group of
// what they inherit, and clear their environment.
func running(t *testing.T, dir string) []string {
	t.Helper()
	links, err := filepath.Glob("/proc/[0-9]*/cwd")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, link := range links {
		process := filepath.Dir(link)
		if at, _ := os.Readlink(link); at == dir && process != "/proc/"+strconv.Itoa(os.Getpid()) {
			command, _ := os.ReadFile(process + "/cmdline") // empty if it has just ended
			found = append(found, strings.ReplaceAll(string(command), "\x00", " "))
		}
	}
	return found
}

// Reasons checks which workloads a tool supports: for each text, empty or a part of the reason why not.
func Reasons(t *testing.T, tool family.Tool, reasons map[string]string) {
	for text, want := range reasons {
		err := tool.Supports(Workload(t, text))
		switch {
		case want == "" && err != nil:
			t.Errorf("%s: %v", text, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v does not say %q", text, err, want)
		}
	}
}

// Value returns the number of the metric that verdicts on w are about.
func Value(t *testing.T, w family.Workload, m result.Measurement) float64 {
	t.Helper()
	v, has := result.Run{Values: m.Values}.Value(w.Traits().Metric)
	if !has {
		t.Fatalf("%s: there is no %s", w, w.Traits().Metric)
	}
	return v.Number
}
