package cli

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/knotmeter/knotmeter/internal/golden"
	"github.com/knotmeter/knotmeter/internal/lab/mesh"
	"github.com/knotmeter/knotmeter/internal/registry"
	"github.com/knotmeter/knotmeter/internal/targets"
)

// programVariable is the environment variable with which the test binary runs as the program.
const programVariable = "KNOTMETER_TEST_PROGRAM"

// TestMain lets the test binary run as the program too: under its name in scripts, and for the hidden commands by which
// the program starts itself again.
func TestMain(m *testing.M) {
	if os.Getenv(programVariable) != "" || len(os.Args) > 1 &&
		slices.Contains([]string{registry.AgentCommand, registry.HolderCommand, mesh.Command}, os.Args[1]) {
		knotmeter()
	}
	testscript.Main(alone{m}, map[string]func(){ownName: knotmeter, pluginName: knotmeter, completionName: knotmeter})
}

// alone runs tests with their own claims and state directory, so that other measurements on this machine do not matter.
type alone struct{ *testing.M }

func (a alone) Run() int {
	dir, err := os.MkdirTemp("", "knotmeter-claims-")
	if err == nil {
		err = errors.Join(os.Setenv(targets.ClaimsVariable, dir), os.Setenv("XDG_STATE_HOME", dir))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	return a.M.Run()
}

func knotmeter() {
	os.Exit(Main(Signals(), StandardStreams(), "test", os.Args[1:]))
}

// program sets the program's path, for scripts that clear the search path, and its own directories for state and
// claims.
func program(env *testscript.Env) error {
	path, err := exec.LookPath("knotmeter")
	env.Setenv("KNOTMETER", path)
	env.Setenv("XDG_STATE_HOME", filepath.Join(env.WorkDir, ".state"))
	env.Setenv(targets.ClaimsVariable, env.WorkDir) // scripts run in parallel
	return err
}

// TestScripts runs the commands as a user would; each script is about one command.
func TestScripts(t *testing.T) { runScripts(t, "testdata/script") }

// TestAccuracyScripts runs scripts that measure something known, during which nothing else may run.
func TestAccuracyScripts(t *testing.T) { runScripts(t, "testdata/accuracy") }

// experiments skips a test with -short, because it carries out experiments.
func experiments(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("it carries out experiments")
	}
}

func runScripts(t *testing.T, dir string) {
	t.Helper()
	testscript.Run(t, testscript.Params{
		Dir: dir, UpdateScripts: golden.Update(), Setup: program,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits, "waitfor": waitFor},
	})
}

// waitFor implements the script command waitfor FILE, which waits until a file is not empty.
func waitFor(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: waitfor FILE")
	}
	const timeout, interval = time.Minute, 20 * time.Millisecond
	for end := time.Now().Add(timeout); time.Now().Before(end); time.Sleep(interval) {
		if info, err := os.Stat(ts.MkAbs(args[0])); err == nil && info.Size() > 0 {
			return
		}
	}
	ts.Fatalf("nothing is in %s", args[0])
}

// exits implements the script command exits STATUS COMMAND, which runs a command and checks its exit status. An
// experiment that a busy machine watched too late begins anew, without its results.
func exits(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: exits STATUS COMMAND [ARGUMENT…]")
	}
	const most = 10
	for n := 1; ; n++ {
		status := 0
		if err := ts.Exec(args[1], args[2:]...); err != nil {
			exit, ok := errors.AsType[*exec.ExitError](err)
			if !ok {
				ts.Fatalf("%v", err)
			}
			status = exit.ExitCode()
		}
		if fmt.Sprint(status) == args[0] {
			return
		}
		out := slices.Index(args, "--out") + 1
		if n == most || out == 0 || !strings.Contains(ts.ReadFile("stderr"), "could not watch its window") {
			ts.Fatalf("ended with status %d, want %s", status, args[0])
		}
		ts.Check(os.RemoveAll(ts.MkAbs(args[out])))
	}
}
