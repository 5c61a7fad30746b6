//go:build unix

// Package programtest tests the tools that use programs of other projects, on this machine and with the real programs.
// Tests of this program's own loops use its workloads and limited machine too.
package programtest

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	agentprogram "github.com/knotmeter/knotmeter/internal/agent/program"
	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/family/compute"
	"github.com/knotmeter/knotmeter/internal/family/compute/program"
	"github.com/knotmeter/knotmeter/internal/family/familytest"
	"github.com/knotmeter/knotmeter/internal/golden"
	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/host/remote"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
	"github.com/knotmeter/knotmeter/internal/targets/local"
)

// Main is TestMain of packages that use [Here]: it runs the tests, or the agent that hosts start as this program.
func Main(m *testing.M) {
	if len(os.Args) > 1 && slices.Contains([]string{remote.AgentCommand, remote.EnterCommand}, os.Args[1]) {
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

// CommandLines compares the command lines of all kinds that a tool carries out, on one CPU and on four, with
// testdata/commands.golden.
func CommandLines(t *testing.T, tool *program.Tool) {
	var text strings.Builder
	for _, kind := range slices.Sorted(slices.Values(compute.Kinds())) {
		m, ok := tool.Method(kind)
		if !ok {
			continue
		}
		for _, cpus := range []int{1, 4} {
			args := append([]string{m.Program}, m.Command(cpus, 3)...)
			fmt.Fprintf(&text, "%s on %d for 3 s: %s\n", kind, cpus, host.Cmd{Args: args})
		}
	}
	golden.Check(t, "testdata/commands.golden", text.String())
}

// Recorded returns what a program printed, from testdata/NAME.txt.
func Recorded(t testing.TB, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	return text
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

// Quota checks that half of a CPU is measured as half as fast, and that runs with it say that they were throttled. It
// compares the best of some runs, because others who use the CPU only make a run slower.
func Quota(t *testing.T, tool family.Tool, text string) {
	w := Workload(t, text)
	pairs := []host.Pair{{Client: Here(t, tool.Program(w))}, Limited(t, "500m")}
	best := make([]float64, len(pairs))
	for range 4 {
		for i, p := range pairs {
			m, err := tool.Run(t.Context(), p, w, family.Times{Window: 2 * time.Second})
			if err != nil {
				t.Fatal(err)
			}
			if throttled := func(w result.Warning) bool { return w.Code == result.Throttled }; slices.ContainsFunc(
				m.Warnings, throttled) != (p.CPULimit != "") || slices.ContainsFunc(m.Invalid, throttled) {
				t.Errorf("with a limit of %q: invalid %v, warnings %v", p.CPULimit, m.Invalid, m.Warnings)
			}
			v, _ := result.Run{Values: m.Values}.Value(w.Traits().Metric)
			best[i] = max(best[i], v.Number)
		}
	}
	// A window may have one more or one less of the 20 halves of a period of 100 ms.
	if ratio := best[1] / best[0]; ratio < 0.46 || ratio > 0.54 {
		t.Errorf("with half of a CPU it is %.3f times as fast: %g and %g", ratio, best[1], best[0])
	}
}

// Limited returns this machine with a limit on CPU time. It skips the test if there can be none.
func Limited(t *testing.T, limit string) host.Pair {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	spec, err := result.ParseSpec("local:?cpu-limit=" + limit)
	if err != nil {
		t.Fatal(err)
	}
	target, err := local.New(spec, self, remote.AgentCommand)
	if err != nil {
		t.Fatal(err)
	}
	site, err := targets.OpenOne(t.Context(), target, targets.Placement{Machine: true})
	if errors.Is(err, result.ErrNotSupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(site.Close(context.Background()), target.Close()); err != nil {
			t.Error(err)
		}
	})
	return site.Pair
}
