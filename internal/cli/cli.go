// Package cli is the command line: one file for each command, each a function from arguments and streams to an error.
// It is the left end of the data flow, and with package registry the only one that knows implementations.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/knotmeter/knotmeter/internal/prose"
)

// Exit statuses, as documented in the help of the root command.
const (
	statusDone        = 0
	statusUsage       = 1
	statusRunFailed   = 2
	statusGateFailed  = 3
	statusGateOpen    = 4
	statusInterrupted = 130
)

// Streams are what a command reads and writes, and what it may know of the terminal.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
	// Terminal says that Err is a terminal; Color that Out may be coloured.
	Terminal bool
	Color    bool
	// caller is as what the program was started.
	caller caller
}

// A statusError is an error that ends the program with a status of its own.
type statusError struct {
	status int
	err    error
}

func (e *statusError) Error() string { return e.err.Error() }
func (e *statusError) Unwrap() error { return e.err }

// Main runs the command that args name, prints its error if there is one, and returns the exit status.
func Main(ctx context.Context, s Streams, version string, args []string) int {
	raw := s
	s = onScreen(s)
	defer func() { _ = errors.Join(s.Out.(*screen).flush(), s.Err.(*screen).flush()) }() // nobody is left to tell
	root := newRoot(s, version)
	root.AddCommand(newInternal(raw)...)
	args = s.caller.args(args)
	root.SetArgs(args)
	warn(s.Err, overridden(root, args)...)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return statusDone
	}
	status := statusUsage
	if e, ok := errors.AsType[*statusError](err); ok {
		status = e.status
	}
	if text := err.Error(); text != "" {
		fmt.Fprintln(s.Err, ownName+": "+strings.ReplaceAll(s.caller.words(root, text), "\n", "\n  "))
	}
	return status
}

const about = `Knotmeter tells how fast a Kubernetes cluster's network really is, what a datapath
really costs, and when the numbers allow no answer.

  knotmeter run --target lab:native --target lab:vxlan --suite network:quick

compares two datapaths of this machine's own kernel; no cluster is needed.

Exit status: 0 done, and every --gate passed; 1 usage or configuration; 2 a run
failed; 3 a gate failed; 4 a gate is open, because the data give no verdict; 130
interrupted. Of several the first of 130, 3, 2, 4 counts: a gate that failed did so
by valid runs, whatever else went wrong.`

func newRoot(s Streams, version string) *cobra.Command {
	root := &cobra.Command{
		Use:           ownName,
		Short:         "Compare network datapaths, with verdicts that hold",
		Long:          about,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetFlagErrorFunc(flagError)
	root.SetIn(s.In)
	root.SetOut(s.Out)
	root.SetErr(s.Err)
	root.AddCommand(
		newRun(s, version),
		newPlan(s, version),
		newCompare(s),
		newReport(s),
		newImport(s, version),
		newAudit(s),
		newDoctor(s),
		newSelftest(s),
		newClean(s),
		newImage(s),
		newList(s),
		newVersion(s, version),
	)
	s.caller.rename(root)
	return root
}

// oneOf refuses a value of a flag that is none of those that it may have.
func oneOf(flag, value string, known []string) error {
	if slices.Contains(known, value) {
		return nil
	}
	return fmt.Errorf("%s: %q is not one of %s", flag, value, prose.Choices(value, known))
}

// warn writes warnings, each a sentence without full stop.
func warn(errs io.Writer, texts ...string) {
	for _, text := range texts {
		fmt.Fprintln(errs, "warning: "+text)
	}
}

// flagError adds to the error about an unknown flag the flag that was probably meant.
func flagError(c *cobra.Command, err error) error {
	unknown, is := errors.AsType[*pflag.NotExistError](err)
	if !is || len(unknown.GetSpecifiedName()) < 2 {
		return err
	}
	var names []string
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, "--"+f.Name)
		}
	})
	return fmt.Errorf("%w%s", err, prose.DidYouMean("--"+unknown.GetSpecifiedName(), names))
}

// StandardStreams are the streams of this process.
func StandardStreams() Streams {
	terminal := func(f *os.File) bool { return term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb" }
	return Streams{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr, caller: callerOf(os.Args[0]),
		Terminal: terminal(os.Stderr), Color: terminal(os.Stdout) && os.Getenv("NO_COLOR") == "",
	}
}
