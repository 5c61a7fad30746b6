package cli

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/knotmeter/knotmeter/internal/golden"
	"github.com/knotmeter/knotmeter/internal/registry"
	"github.com/knotmeter/knotmeter/internal/targets"
)

// programVariable in the environment makes the test binary the program.
const programVariable = "KNOTMETER_TEST_PROGRAM"

// TestMain makes the test binary the program too: under its name in scripts, and under the hidden
// commands by which it starts itself again.
func TestMain(m *testing.M) {
	if os.Getenv(programVariable) != "" || len(os.Args) > 1 &&
		slices.Contains([]string{registry.AgentCommand, registry.HolderCommand}, os.Args[1]) {
		knotmeter()
	}
	testscript.Main(alone{m}, map[string]func(){ownName: knotmeter, pluginName: knotmeter, completeName: knotmeter})
}

// alone runs tests with claims and a state directory of their own: what else measures on this machine is none of their
// business.
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

// program gives scripts the path of the program, for those that take its search path away, and a directory for its
// state.
func program(env *testscript.Env) error {
	path, err := exec.LookPath("knotmeter")
	env.Setenv("KNOTMETER", path)
	env.Setenv("XDG_STATE_HOME", filepath.Join(env.WorkDir, ".state"))
	env.Setenv(targets.ClaimsVariable, env.WorkDir) // scripts run side by side, and are about other things
	return err
}

// TestScripts runs the commands as a user would; each script is about one command.
func TestScripts(t *testing.T) { runScripts(t, "testdata/script") }

// TestAccuracyScripts are scripts that measure something known, for which nothing else may run.
func TestAccuracyScripts(t *testing.T) { runScripts(t, "testdata/accuracy") }

// experiments leaves a test that carries out experiments to longer runs than those of -short.
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

// waitFor is the command of scripts that waits until something is in a file: waitfor FILE
func waitFor(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: waitfor FILE")
	}
	const patience, again = time.Minute, 20 * time.Millisecond
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(again) {
		if info, err := os.Stat(ts.MkAbs(args[0])); err == nil && info.Size() > 0 {
			return
		}
	}
	ts.Fatalf("nothing is in %s", args[0])
}

// exits is the command of scripts that runs another and wants one exit status: exits 3 knotmeter run …
func exits(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: exits STATUS COMMAND [ARGUMENT…]")
	}
	status := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		exit, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			ts.Fatalf("%v", err)
		}
		status = exit.ExitCode()
	}
	if fmt.Sprint(status) != args[0] {
		ts.Fatalf("ended with status %d, want %s", status, args[0])
	}
}
