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
)

// markVariable is in the environment of a program under test and so of all that it starts.
const markVariable = "KNOTMETER_TEST_MARK"

// start starts the program in the background, in a directory of its own.
func start(t *testing.T, mark string, args ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	cmd := exec.Command(os.Args[0], args...)
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), programVariable+"=1", markVariable+"="+mark)
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, &output
}

// TestKillLeavesNothing kills the program at random moments of an experiment, and looks.
func TestKillLeavesNothing(t *testing.T) {
	const kills = 100
	random := rand.New(rand.NewPCG(1, 2))
	before := traces(t)
	for i := range kills {
		mark := fmt.Sprintf("kill-%d-%d", os.Getpid(), i)
		cmd, output := start(t, mark, "run", "--target", "lab:native", "--target", "lab:vxlan", "--case", "pod-svc/other/tcp-crr",
			"--duration", "100ms", "--warmup", "20ms", "--blocks", "20", "--out", "out", "--progress", "none")
		moment := time.Duration(random.Int64N(int64(900 * time.Millisecond)))
		time.Sleep(moment)
		if err := cmd.Process.Kill(); err != nil {
			t.Fatalf("after %v: %v\n%s", moment, err, output)
		}
		_ = cmd.Wait() // it was killed
		if left := awaitNothing(t, mark, before); left != "" {
			t.Fatalf("killed after %v, and two seconds later there is still %s", moment, left)
		}
		onlyResults(t, cmd.Dir)
	}
}

// awaitNothing waits up to two seconds until nothing is left, and says what is.
func awaitNothing(t *testing.T, mark string, before []string) string {
	t.Helper()
	deadline := time.Now().Add(2 * time.Second)
	for {
		var left []string
		for _, p := range marked(t, mark) {
			left = append(left, p.String())
		}
		for _, name := range traces(t) {
			if !slices.Contains(before, name) {
				left = append(left, name)
			}
		}
		if len(left) == 0 || time.Now().After(deadline) {
			return strings.Join(left, ", ")
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// marked are the processes that bear the mark.
func marked(t *testing.T, mark string) []labtest.Process {
	t.Helper()
	return labtest.Marked(t, markVariable+"="+mark)
}

// traces is what the program could leave outside its results: interfaces of this machine's own
// network, names of network namespaces, control groups, temporary files.
func traces(t *testing.T) []string {
	t.Helper()
	names, err := labtest.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, pattern := range []string{"/run/netns/*", "/sys/fs/cgroup/knotmeter*", "/sys/fs/cgroup/*/knotmeter*", "/tmp/knotmeter*", "/dev/shm/*"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, found...)
	}
	return names
}

// onlyResults fails if there is anything in dir but a results directory, which must be readable.
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
	if _, err := (judgement{}).load(out); err != nil {
		t.Errorf("results of a killed experiment: %v", err)
	}
}

// TestInterrupt ends an experiment by SIGINT: what was measured is compared, and can go on.
func TestInterrupt(t *testing.T) {
	before := traces(t)
	mark := fmt.Sprintf("interrupt-%d", os.Getpid())
	cmd, output := start(t, mark, "run", "--target", "lab:native", "--target", "lab:native?label=again", "--case", "pod-pod/other/tcp-rr",
		"--duration", "100ms", "--warmup", "20ms", "--blocks", "500", "--out", "out", "--progress", "none")
	out := filepath.Join(cmd.Dir, "out")
	awaitRuns(t, out, 5)
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	err := cmd.Wait()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != statusInterrupted {
		t.Fatalf("ended with %v, want status %d\n%s", err, statusInterrupted, output)
	}
	for _, want := range []string{"pod-pod/other/tcp-rr", "go on with: knotmeter run --resume out"} {
		if !strings.Contains(output.String(), want) {
			t.Errorf("the output has no %q:\n%s", want, output)
		}
	}
	if _, err := os.Stat(filepath.Join(out, "report.html")); err != nil {
		t.Error(err)
	}
	if left := awaitNothing(t, mark, before); left != "" {
		t.Errorf("two seconds after its end there is still %s", left)
	}
}

// TestHolderGone kills the lab's holder under an experiment, which must end with an error and its results.
func TestHolderGone(t *testing.T) {
	mark := fmt.Sprintf("holder-%d", os.Getpid())
	cmd, output := start(t, mark, "run", "--target", "lab:native", "--case", "pod-pod/other/tcp-rr",
		"--duration", "100ms", "--warmup", "20ms", "--blocks", "500", "--out", "out", "--progress", "none")
	awaitRuns(t, filepath.Join(cmd.Dir, "out"), 2)
	killed := false
	for _, p := range marked(t, mark) {
		if strings.Contains(p.Args, registry.HolderCommand) {
			killed = syscall.Kill(p.PID, syscall.SIGKILL) == nil
		}
	}
	if !killed {
		t.Fatal("found no holder to kill")
	}
	if err := cmd.Wait(); err == nil {
		t.Errorf("ended with status 0:\n%s", output)
	}
	if !strings.Contains(output.String(), "holder") {
		t.Errorf("the output does not say what happened:\n%s", output)
	}
}

// awaitRuns waits until that many runs are in the results directory.
func awaitRuns(t *testing.T, dir string, runs int) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		lines, err := os.ReadFile(filepath.Join(dir, "runs.ndjson"))
		if err == nil && bytes.Count(lines, []byte{'\n'}) >= runs {
			return
		}
	}
	t.Fatalf("no %d runs within 30 s", runs)
}
