package loops

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/knotmeter/knotmeter/internal/agent/program"
	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/family/compute"
	"github.com/knotmeter/knotmeter/internal/family/compute/program/programtest"
	"github.com/knotmeter/knotmeter/internal/family/familytest"
	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/host/remote"
	"github.com/knotmeter/knotmeter/internal/load/computeload"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
)

// commands are those of the agent's program that the test binary has too.
var commands = []string{remote.AgentCommand, remote.NothingCommand, remote.EnterCommand}

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && slices.Contains(commands, os.Args[1]) {
		err := program.Run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// machineAlone returns this machine alone.
func machineAlone(t *testing.T) host.Pair {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return host.Pair{Client: host.NewLocal("here", netip.MustParseAddr("127.0.0.1"), nil, self, remote.AgentCommand)}
}

// TestConformance runs the conformance suite of all tools with a workload of each metric and of each way to use CPUs.
func TestConformance(t *testing.T) {
	var workloads []family.Workload
	for _, name := range []string{"sort", "sha-256:cpus=all", "memory-latency:set=1MiB", "timer", "process-start",
		"futex-wake", "matrix:cpus=core", "sysbench-cpu"} {
		workloads = append(workloads, programtest.Workload(t, name))
	}
	familytest.Suite(t, familytest.Config{Tool: New(), Pair: machineAlone, Workloads: workloads, Running: children})
}

// children lists the processes that this one has started.
func children(t *testing.T) []string {
	t.Helper()
	text, err := exec.Command("pgrep", "-P", fmt.Sprint(os.Getpid()), "-f", remote.AgentCommand).Output()
	var none *exec.ExitError // there are none
	if err != nil && !errors.As(err, &none) {
		t.Fatal(err)
	}
	return strings.Fields(string(text))
}

// TestEveryKindHasALoop checks that every kind that the tool supports is a loop of the engine, and every loop a kind.
func TestEveryKindHasALoop(t *testing.T) {
	var kinds []string
	for _, k := range compute.Kinds() {
		if !k.ByOthers() {
			kinds = append(kinds, string(k))
		}
	}
	slices.Sort(kinds)
	if loops := computeload.Loops(); !slices.Equal(loops, kinds) {
		t.Errorf("the loops are %v, the kinds %v", loops, kinds)
	}
}

// TestCore checks that cpus=core uses all hardware threads of a core, or says that there is one each.
func TestCore(t *testing.T) {
	times := family.Times{Warmup: 20 * time.Millisecond, Window: 100 * time.Millisecond}
	m, err := New().Run(t.Context(), machineAlone(t), programtest.Workload(t, "sort:cpus=core"), times)
	if errors.Is(err, result.ErrNotSupported) {
		if !strings.Contains(err.Error(), "SMT") {
			t.Error(err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	siblings := result.FactOf(m.Facts, "cpu.siblings")
	if used := result.FactOf(m.Facts, "cpu.client"); used != siblings || !strings.Contains(used, ",") {
		t.Errorf("it ran on %s of the threads %s", used, siblings)
	}
	if _, has := (result.Run{Values: m.Values}).Value(metric.Scaling); !has {
		t.Error("there is no scaling efficiency")
	}
}

// TestQuota checks that a limit on CPU time is noticed: threads have no more than it, and runs are valid, with
// warnings. The limit is small, so that threads reach it next to other programs too.
func TestQuota(t *testing.T) {
	w := programtest.Workload(t, "sort:cpus=2")
	times := family.Times{Warmup: 50 * time.Millisecond, Window: time.Second}
	limited := programtest.Limited(t, "50m")
	throttled := func(w result.Warning) bool { return w.Code == result.Throttled }
	var m result.Measurement
	for attempt := 0; attempt < 10 && !slices.ContainsFunc(m.Warnings, throttled); attempt++ {
		var err error // if they do not reach it, other programs had the CPUs for almost all of the window
		if m, err = New().Run(t.Context(), limited, w, times); errors.Is(err, result.ErrNotSupported) {
			t.Skip(err)
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if len(m.Invalid) > 0 || !slices.ContainsFunc(m.Warnings, throttled) {
		t.Fatalf("it is invalid, or no warning says that it was throttled: %v, %v", m.Invalid, m.Warnings)
	}
	// The limit is 0.05 CPUs; a period of it may be at either end of the window.
	if used := value(m, metric.CPUAgents); used > 0.1 {
		t.Errorf("the threads used %g CPUs", used)
	}
}

// TestAccuracyQuota checks that a quota of 95 % is measured as 5 % less, to half a percentage point.
func TestAccuracyQuota(t *testing.T) {
	w := programtest.Workload(t, "sort")
	times := family.Times{Warmup: 100 * time.Millisecond, Window: 2 * time.Second}
	free, limited := machineAlone(t), programtest.Limited(t, "950m")
	var ratios []float64
	for i := range 12 {
		var rates [2]float64
		for k := range 2 {
			of := (i + k) % 2
			m, err := New().Run(t.Context(), []host.Pair{free, limited}[of], w, times)
			if err != nil {
				t.Fatal(err)
			}
			rates[of] = value(m, metric.Rate)
		}
		ratios = append(ratios, rates[1]/rates[0])
	}
	slices.Sort(ratios)
	if median := (ratios[5] + ratios[6]) / 2; median < 0.945 || median > 0.955 {
		t.Errorf("with 95 %% of a CPU it is %.4f times as fast, of %.4f", median, ratios)
	}
}
