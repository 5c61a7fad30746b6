// Package cli implements the command line: one file for each command, each a function from arguments and streams to an
// error. Together with package registry it is the only package that knows implementations.
package cli

import (
	"cmp"
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
	statusClosed      = 141 // 128 + SIGPIPE, as a shell reports a program that the signal ended
)

// Streams are the standard streams of a command and the properties of its terminal.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
	Terminal bool // Err is a terminal
	Color    bool // Out may be coloured
	// OutClosed reports whether the program was started with a closed standard output.
	OutClosed bool
	// Interactive reports whether the user can be asked: In and Err are terminals.
	Interactive bool
	// Width and Height are the size of the terminal in characters; 0 if there is none.
	Width, Height int
	// invocation is the name under which the program was started.
	invocation invocation
}

// A statusError is an error with its own exit status.
type statusError struct {
	status int
	err    error
}

func (e *statusError) Error() string { return e.err.Error() }
func (e *statusError) Unwrap() error { return e.err }

// stopped returns the error about a command that was ended early, by a signal or because its output was closed. The
// consequence is appended to its text.
func stopped(ctx context.Context, consequence string) error {
	if errors.Is(context.Cause(ctx), errClosed) {
		return &statusError{statusClosed, fmt.Errorf("%w%s", errClosed, consequence)}
	}
	return &statusError{statusInterrupted, errors.New("interrupted" + consequence)}
}

// Main runs the command given by args, prints its error, if any, and returns the exit status. The command's context
// ends when the reader of an output closes it.
func Main(ctx context.Context, s Streams, version string, args []string) int {
	if s.OutClosed {
		fmt.Fprintln(s.Err, ownName+
			": standard output is closed, and nothing can be printed; to discard it, use >/dev/null")
		return statusUsage
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	raw := s
	out := &outputWriter{to: s.Out, onClose: cancel}
	s.Out, s.Err = out, &outputWriter{to: s.Err, onClose: cancel}
	s = sanitized(s)
	defer func() { _ = s.Err.(*sanitizer).flush() }() // no stream is left to report it
	root := newRoot(s, version)
	root.AddCommand(newHidden(raw)...)
	args = s.invocation.args(args)
	root.SetArgs(args)
	warn(s.Err, overridden(root, args)...)
	err := root.ExecuteContext(ctx)
	if unknown := unknownCommand(root, args); err != nil && unknown != nil {
		err = unknown
	}
	_, known := errors.AsType[*statusError](err)
	if err != nil && !known && ctx.Err() != nil && !errors.Is(context.Cause(ctx), errClosed) {
		err = stopped(ctx, ": "+err.Error()) // a wait that ended with the context
	}
	err = cmp.Or(err, s.Out.(*sanitizer).flush(), out.err) // commands do not check all writes themselves
	closed := errors.Is(err, errClosed) || errors.Is(context.Cause(ctx), errClosed)
	status := statusUsage
	switch e, is := errors.AsType[*statusError](err); {
	case is:
		status = e.status
	case closed:
		return statusClosed // without a message: no reader is left
	case err == nil:
		return statusDone
	}
	if text := err.Error(); text != "" {
		text = s.invocation.rewriter(root)(text)
		fmt.Fprintln(s.Err, ownName+": "+strings.ReplaceAll(text, "\n", "\n  "))
	}
	return status
}

const about = `Knotmeter measures and compares Kubernetes clusters: network datapaths, storage,
API servers and applications. It runs the same cases on every target in random
order, and reports when the data are inconclusive.

  knotmeter run lab:native lab:vxlan --suite network:quick

compares two datapaths of this machine's own kernel; it needs no cluster.`

const statuses = `Exit status: 0 done, and every --gate passed; 1 usage or configuration; 2 a run
failed; 3 a gate failed; 4 a gate is inconclusive; 130 interrupted; 141 the reader
of the output is gone. Of several, the first of 130, 3, 2, 141, 4 counts.`

// The groups of commands in the root command's help.
const (
	toMeasure = "measure"
	toRead    = "read"
	toSetUp   = "set up"
)

func newRoot(s Streams, version string) *cobra.Command {
	var showVersion bool
	root := &cobra.Command{
		Use:           ownName,
		Short:         "Measure and compare Kubernetes clusters: networks, storage, API servers, applications",
		Long:          about + "\n\n" + statuses,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(c *cobra.Command, _ []string) error {
			if showVersion {
				return printVersion(s, version)
			}
			return c.Help()
		},
	}
	root.Flags().BoolVar(&showVersion, "version", false, "print the version")
	root.SetFlagErrorFunc(flagError)
	root.SetIn(s.In)
	root.SetOut(s.Out)
	root.SetErr(s.Err)
	root.CompletionOptions.DisableDefaultCmd = true
	root.AddGroup(&cobra.Group{ID: toMeasure, Title: "Measure:"}, &cobra.Group{ID: toRead, Title: "Work with results:"},
		&cobra.Group{ID: toSetUp, Title: "Find and set up:"})
	addGroup(root, toMeasure, newRun(s, version), newPlan(s, version), newDoctor(s), newSelftest(s), newClean(s))
	addGroup(root, toRead, newCompare(s), newReport(s), newExplain(s, version), newAudit(s), newImport(s, version))
	addGroup(root, toSetUp, newList(s), newImage(s), newVersion(s, version), newHelp())
	if !s.invocation.plugin() {
		addGroup(root, toSetUp, newCompletion())
	}
	arrangeHelp(root)
	completeFlags(root)
	s.invocation.rewriteHelp(root)
	return root
}

func addGroup(root *cobra.Command, group string, commands ...*cobra.Command) {
	for _, c := range commands {
		c.GroupID = group
		root.AddCommand(c)
	}
}

// newHelp returns the help command, which does the same as --help.
func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Show the help of a command",
		ValidArgsFunction: func(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
			of, _, err := c.Root().Find(args)
			if err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return withPrefix(commandNames(of), typed)
		},
		RunE: func(c *cobra.Command, args []string) error {
			if err := unknownCommand(c.Root(), args); err != nil {
				return err
			}
			of, _, err := c.Root().Find(args)
			if err != nil {
				return err
			}
			return of.Help()
		},
	}
}

// parentCommand sets up a command that only groups its subcommands.
func parentCommand(c *cobra.Command) *cobra.Command {
	c.Args = operands(0, 0) // Main reports unknown subcommands
	c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
	return c
}

// unknownCommand returns an error about a command that does not exist, with a suggestion, else nil.
func unknownCommand(root *cobra.Command, args []string) error {
	c, rest, _ := root.Find(args)
	if len(rest) == 0 || strings.HasPrefix(rest[0], "-") || !c.HasAvailableSubCommands() {
		return nil
	}
	return fmt.Errorf("%s has no command %q%s; '%s --help' lists them",
		c.CommandPath(), rest[0], prose.DidYouMean(rest[0], commandNames(c)), c.CommandPath())
}

// commandNames returns the names of the visible subcommands.
func commandNames(c *cobra.Command) []string {
	var names []string
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	return names
}

// operands returns a check of the number of arguments; a negative most allows any number.
func operands(least, most int) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return fmt.Errorf("an argument is missing; usage: %s", usageLine(c))
		case most >= 0 && len(args) > most:
			return fmt.Errorf("unexpected argument %q; usage: %s", args[most], usageLine(c))
		}
		return nil
	}
}

// oneOf returns an error unless the value of a flag is one of the known values.
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

// flagError adds a suggestion to the error about an unknown flag.
func flagError(c *cobra.Command, err error) error {
	if errors.Is(err, pflag.ErrHelp) {
		return pflag.ErrHelp
	}
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
	hint := cmp.Or(movedFlag(unknown.GetSpecifiedName()), prose.DidYouMean("--"+unknown.GetSpecifiedName(), names))
	return fmt.Errorf("%w%s", err, hint)
}

// StandardStreams returns the standard streams of this process.
func StandardStreams() Streams {
	terminal := func(f *os.File) bool { return term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb" }
	width, height := 0, 0
	for _, f := range []*os.File{os.Stdout, os.Stderr} {
		if w, h, err := term.GetSize(int(f.Fd())); err == nil && width == 0 {
			width, height = w, h
		}
	}
	return Streams{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr, invocation: invocationOf(os.Args[0]),
		Terminal: terminal(os.Stderr), Color: terminal(os.Stdout) && os.Getenv("NO_COLOR") == "",
		Interactive: term.IsTerminal(int(os.Stdin.Fd())) && term.IsTerminal(int(os.Stderr.Fd())),
		Width:       width, Height: height,
	}
}
