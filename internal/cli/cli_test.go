package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/knotmeter/knotmeter/internal/all"
)

var update = flag.Bool("update", false, "write the expected output of the scripts anew")

// programVariable in the environment makes the test binary the program.
const programVariable = "KNOTMETER_TEST_PROGRAM"

// TestMain makes the test binary the program too: under its name in scripts, and under the hidden
// commands by which it starts itself again.
func TestMain(m *testing.M) {
	if os.Getenv(programVariable) != "" || len(os.Args) > 1 && slices.Contains([]string{all.AgentCommand, all.HolderCommand}, os.Args[1]) {
		knotmeter()
	}
	testscript.Main(m, map[string]func(){ownName: knotmeter, pluginName: knotmeter, completeName: knotmeter})
}

func knotmeter() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	os.Exit(Main(ctx, StandardStreams(), "test", os.Args[1:]))
}

// program gives scripts the path of the program, for those that take its search path away.
func program(env *testscript.Env) error {
	path, err := exec.LookPath("knotmeter")
	env.Setenv("KNOTMETER", path)
	return err
}

// TestScripts runs the commands as a user would; each script is about one command.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script", UpdateScripts: *update, Setup: program,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits},
	})
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
