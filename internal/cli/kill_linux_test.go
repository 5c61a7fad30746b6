package cli

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/knotmeter/knotmeter/internal/lab/labtest"
	"github.com/knotmeter/knotmeter/internal/registry"
	"github.com/knotmeter/knotmeter/internal/targets"
)

// markVariable is an environment variable that marks a program under test and all processes that it starts.
const markVariable = "KNOTMETER_TEST_MARK"

// A process is the program in the background, with its own directory, temporary files and control groups.
type process struct {
	*exec.Cmd
	output     bytes.Buffer
	mark, temp string
	group      labtest.Group
	before     []string // traces
}

// start starts a program.
func start(t *testing.T, args ...string) *process {
	t.Helper()
	p := prepare(t, args...)
	p.launch(t)
	return p
}

// prepare returns a program that is not started yet.
func prepare(t *testing.T, args ...string) *process {
	t.Helper()
	p := &process{temp: t.TempDir(), group: labtest.NewGroup(t), before: traces(t)}
	p.mark = markVariable + "=" + p.temp
	p.Cmd = exec.Command(os.Args[0], args...)
	p.Dir = t.TempDir()
	p.Env = append(os.Environ(), programVariable+"=1", p.mark, "TMPDIR="+p.temp,
		targets.ClaimsVariable+"="+t.TempDir())
	p.Stdout, p.Stderr = &p.output, &p.output
	p.group.Place(p.Cmd)
	return p
}

func (p *process) launch(t *testing.T) {
	t.Helper()
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
}

// kill kills only the program; the processes that it started must end by themselves.
func (p *process) kill(t *testing.T, moment string) {
	t.Helper()
	if err := p.Process.Kill(); err != nil {
		t.Fatalf("%s: %v\n%s", moment, err, &p.output)
	}
	_ = p.Wait() // it was killed
}

// processes returns the program and the processes that it started.
func (p *process) processes(t *testing.T) []labtest.Process {
	t.Helper()
	return labtest.Marked(t, p.mark)
}

// awaitProcess waits until the program has started a process with this argument.
func (p *process) awaitProcess(t *testing.T, argument string) labtest.Process {
	t.Helper()
	for deadline := time.Now().Add(timeout); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		for _, one := range p.processes(t) {
			if slices.Contains(strings.Fields(one.Args), argument) {
				return one
			}
		}
	}
	t.Fatalf("no %s within %v\n%s", argument, timeout, &p.output)
	return labtest.Process{}
}

// awaitRuns waits until that many runs are in the results directory.
func (p *process) awaitRuns(t *testing.T, runs int) {
	t.Helper()
	for deadline := time.Now().Add(timeout); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		lines, err := os.ReadFile(filepath.Join(p.Dir, "out", "runs.ndjson"))
		if err == nil && bytes.Count(lines, []byte{'\n'}) >= runs {
			return
		}
	}
	t.Fatalf("no %d runs within %v\n%s", runs, timeout, &p.output)
}

// timeout is how long tests wait for a program to reach a state.
const timeout = 30 * time.Second

// mustLeaveNothing waits up to two seconds until only the results are left of the program.
func (p *process) mustLeaveNothing(t *testing.T, moment string) {
	t.Helper()
	left := p.left(t)
	for deadline := time.Now().Add(2 * time.Second); len(left) > 0 && time.Now().Before(deadline); left = p.left(t) {
		time.Sleep(10 * time.Millisecond)
	}
	if len(left) > 0 {
		t.Fatalf("%s, and two seconds later there is still %s", moment, strings.Join(left, ", "))
	}
	onlyResults(t, p.Dir)
}

// left lists what is left of the program: processes, control groups, temporary files, and traces that the machine did
// not have before.
func (p *process) left(t *testing.T) []string {
	t.Helper()
	left := p.group.Left(t)
	for _, one := range p.processes(t) {
		left = append(left, one.String())
	}
	for _, name := range slices.Concat(traces(t), entries(t, p.temp)) {
		if !slices.Contains(p.before, name) {
			left = append(left, name)
		}
	}
	return left
}

// traces lists what the program could leave on the machine: network interfaces, names of network namespaces, shared
// memory, except that of browsers, which comes from other tests.
func traces(t *testing.T) []string {
	t.Helper()
	names, err := labtest.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"/run/netns", "/dev/shm"} {
		names = append(names, entries(t, dir)...)
	}
	return slices.DeleteFunc(names, func(name string) bool { return strings.Contains(name, ".org.chromium.") })
}

func entries(t *testing.T, dir string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// begin starts an experiment in a lab with Services, with more blocks than it gets time for.
func begin(t *testing.T) *process {
	t.Helper()
	return start(t, "run", "--target", "lab:native", "--target", "lab:vxlan", "--case", "pod-svc/other/tcp-crr",
		"--duration", "100ms", "--warmup", "20ms", "--blocks", "20", "--out", "out", "--progress", "none")
}

// TestKillLeavesNothing kills the program at each stage of an experiment and checks that nothing is left.
func TestKillLeavesNothing(t *testing.T) {
	experiments(t)
	for _, stage := range []struct {
		name  string
		await func(t *testing.T, p *process)
	}{
		{"killed at once", func(*testing.T, *process) {}},
		{"killed with its first lab", func(t *testing.T, p *process) { p.awaitProcess(t, registry.HolderCommand) }},
		{"killed while it measures", func(t *testing.T, p *process) { p.awaitProcess(t, registry.AgentCommand) }},
		{"killed with its first run", func(t *testing.T, p *process) { p.awaitRuns(t, 1) }},
		{"killed between blocks", func(t *testing.T, p *process) { p.awaitRuns(t, 2) }},
		{"killed in its second block", func(t *testing.T, p *process) { p.awaitRuns(t, 3) }},
	} {
		t.Run(stage.name, func(t *testing.T) {
			p := begin(t)
			stage.await(t, p)
			p.kill(t, stage.name)
			p.mustLeaveNothing(t, stage.name)
		})
	}
}

// TestStressKills kills the program at random moments of an experiment.
func TestStressKills(t *testing.T) {
	const kills = 100
	random := rand.New(rand.NewPCG(1, 2))
	for range kills {
		moment := time.Duration(random.Int64N(int64(900 * time.Millisecond)))
		name := fmt.Sprintf("killed after %v", moment)
		t.Run(name, func(t *testing.T) {
			p := begin(t)
			time.Sleep(moment)
			p.kill(t, name)
			p.mustLeaveNothing(t, name)
		})
	}
}

// onlyResults checks that dir contains nothing but a readable results directory.
func onlyResults(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() != "out" {
			t.Errorf("it left %s", e.Name())
		}
	}
	out := filepath.Join(dir, "out")
	if _, err := os.Stat(filepath.Join(out, "experiment.json")); errors.Is(err, os.ErrNotExist) {
		return // killed before there was anything to keep
	}
	if _, err := (resultOptions{}).load(out); err != nil {
		t.Errorf("results of a killed experiment: %v", err)
	}
}

// endless returns an experiment that a test must end early.
func endless(t *testing.T) *process {
	t.Helper()
	experiments(t)
	return prepare(t, "run", "--target", "lab:native", "--target", "lab:native?label=again",
		"--case", "pod-pod/other/tcp-rr", "--duration", "400ms", "--warmup", "20ms", "--blocks", "500", "--out", "out",
		"--progress", "plain")
}

// TestInterrupt ends an experiment by SIGINT: the results so far are compared, and it can be resumed.
func TestInterrupt(t *testing.T) {
	p := endless(t)
	p.launch(t)
	p.awaitRuns(t, 2)
	p.interrupt(t)
	p.mustEndInOrder(t)
}

// mustEndInOrder checks that an experiment that was ended early is compared, can be resumed, and has left nothing.
func (p *process) mustEndInOrder(t *testing.T) {
	t.Helper()
	for _, want := range []string{"1 primary comparison", "resume with: knotmeter run --resume out"} {
		if !strings.Contains(p.output.String(), want) {
			t.Errorf("the output has no %q:\n%s", want, &p.output)
		}
	}
	p.mustHaveReport(t)
	p.mustLeaveNothing(t, "ended early")
}

func (p *process) mustHaveReport(t *testing.T) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(p.Dir, "out", "report.html")); err != nil {
		t.Error(err)
	}
}

// interrupt ends the program by SIGINT and checks its exit status.
func (p *process) interrupt(t *testing.T) {
	t.Helper()
	if err := p.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	p.mustExit(t, statusInterrupted)
}

// mustExit waits for the end of the program and checks its exit status.
func (p *process) mustExit(t *testing.T, status int) {
	t.Helper()
	err := p.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != status {
		t.Fatalf("ended with %v, want status %d\n%s", err, status, &p.output)
	}
}

// TestHangup ends an experiment as a closing terminal does: by SIGHUP, more than once.
func TestHangup(t *testing.T) {
	p := endless(t)
	p.launch(t)
	p.awaitRuns(t, 2)
	go func() {
		for p.Process.Signal(syscall.SIGHUP) == nil {
			time.Sleep(time.Millisecond)
		}
	}()
	p.mustExit(t, statusInterrupted)
	p.mustEndInOrder(t)
}

// TestHangupIgnored checks that an experiment continues under nohup.
func TestHangupIgnored(t *testing.T) {
	p := endless(t)
	p.Path, p.Args = "/bin/sh", append([]string{"sh", "-c", `trap "" HUP; exec "$0" "$@"`}, p.Args...)
	p.launch(t)
	p.awaitRuns(t, 1)
	if err := p.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	p.awaitRuns(t, 3)
	p.interrupt(t)
	p.mustEndInOrder(t)
}

// TestProgressClosed checks that the experiment ends in order if the reader of the progress closes it, as with 2>&1 |
// head -1.
func TestProgressClosed(t *testing.T) {
	p := endless(t)
	p.Stdout, p.Stderr = nil, nil
	errs, err := p.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.Stdout = p.Stderr // the same pipe
	p.launch(t)
	p.awaitRuns(t, 2)
	if err := errs.Close(); err != nil {
		t.Fatal(err)
	}
	p.mustExit(t, statusClosed)
	p.mustHaveReport(t)
	p.mustLeaveNothing(t, "without a reader")
}

// TestInterruptClosed checks that an experiment ends in order by Ctrl-C even if that has also ended the reader of its
// output, such as tee.
func TestInterruptClosed(t *testing.T) {
	p := endless(t)
	p.Stdout = nil
	out, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.launch(t)
	p.awaitRuns(t, 2)
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	p.interrupt(t)
	if want := "the output was closed; the results are in out"; !strings.Contains(p.output.String(), want) {
		t.Errorf("the output has no %q:\n%s", want, &p.output)
	}
	p.mustHaveReport(t)
	p.mustLeaveNothing(t, "interrupted without a reader")
}

// TestHolderGone kills the lab's holder during an experiment, which must end with an error and keep its results.
func TestHolderGone(t *testing.T) {
	experiments(t)
	p := start(t, "run", "--target", "lab:native", "--case", "pod-pod/other/tcp-rr",
		"--duration", "100ms", "--warmup", "20ms", "--blocks", "500", "--out", "out", "--progress", "none")
	p.awaitRuns(t, 2)
	if err := syscall.Kill(p.awaitProcess(t, registry.HolderCommand).PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := p.Wait(); err == nil {
		t.Errorf("ended with status 0:\n%s", &p.output)
	}
	if !strings.Contains(p.output.String(), "holder") {
		t.Errorf("the output does not say what happened:\n%s", &p.output)
	}
}

// TestKilledImport kills an import: clean names and removes what it left, but not while it runs, and the next import of
// the same name replaces it.
func TestKilledImport(t *testing.T) {
	dir := t.TempDir()
	table := "target,case,metric,unit,value\n" + strings.Repeat("a,pod-pod/other/x,throughput,Gbit/s,9.41\n", 200_000)
	if err := os.WriteFile(filepath.Join(dir, "large.csv"), []byte(table), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "small.csv"), []byte(table[:194]), 0o600); err != nil {
		t.Fatal(err)
	}
	claims := targets.ClaimsVariable + "=" + t.TempDir()
	program := func(args ...string) *exec.Cmd {
		cmd := exec.Command(os.Args[0], args...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), programVariable+"=1", claims)
		return cmd
	}
	killed := program("import", "csv", "large.csv", "--out", "results/own")
	if err := killed.Start(); err != nil {
		t.Fatal(err)
	}
	partial := filepath.Join("results", ".own.partial")
	for deadline := time.Now().Add(timeout); ; time.Sleep(time.Millisecond) {
		if info, err := os.Stat(filepath.Join(dir, partial, "runs.ndjson")); err == nil && info.Size() > 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the import writes no runs")
		}
	}
	if err := killed.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	must := func(want string, args ...string) {
		t.Helper()
		output, err := program(args...).CombinedOutput()
		if err != nil || !strings.Contains(string(output), want) {
			t.Errorf("%v: %v, and no %q in\n%s", args, err, want, output)
		}
	}
	must("kept: "+partial+": a running import writes it\n", "clean")
	if err := killed.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = killed.Wait() // it was killed
	must("leftover: "+partial+"\n", "clean", "--dry-run")
	left := filepath.Join(dir, partial)
	again := filepath.Join(dir, "results", ".other.partial")
	if err := os.CopyFS(again, os.DirFS(left)); err != nil {
		t.Fatal(err)
	}
	must("results/other: ", "import", "csv", "small.csv", "--out", "results/other")
	must("removed "+partial+"\n", "clean")
	for _, path := range []string{left, again} {
		if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is there: %v", path, err)
		}
	}
}
