package iperf3

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/result"
)

// maxOutput limits the output of one side, in bytes. iperf3 prints some 400 to 700 bytes for each flow and step.
const maxOutput = 64 << 20

// A side is the client or the server of a run.
type side struct {
	role   string
	host   host.Host
	args   []string
	stdout family.Printout
	stderr family.Printout
	output output // set when run returns nil
}

func newSide(role string, h host.Host, args []string) *side {
	printout := family.Printout{Program: program, MaxBytes: maxOutput}
	return &side{role: role, host: h, args: args, stdout: printout, stderr: printout}
}

// run runs the command once and reads its output. With -J, iperf3 often exits with status 0 after an error, so the
// error in its output takes precedence.
func (s *side) run(ctx context.Context) error {
	s.stdout.Reset()
	s.stderr.Reset()
	err := s.host.Run(ctx, host.Cmd{Args: s.args, Stdout: &s.stdout, Stderr: &s.stderr})
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	if errors.Is(err, host.ErrNoCommand) {
		return result.NotSupported(host.Missing(program, s.host.Name()))
	}
	var status *host.ExitError
	if err != nil && !errors.As(err, &status) {
		return fmt.Errorf("iperf3 %s on %s: %w", s.role, s.host.Name(), err)
	}
	out, parseErr := parse(s.stdout.Bytes())
	switch {
	case parseErr == nil && out.Error != "":
		return &reportedError{role: s.role, host: s.host.Name(), text: out.Error, cause: err}
	case err != nil && errorLine(s.stderr.String()) != "":
		return &reportedError{role: s.role, host: s.host.Name(), text: errorLine(s.stderr.String()), cause: err}
	case err != nil:
		return fmt.Errorf("iperf3 %s: %w", s.role, err)
	case parseErr != nil:
		return fmt.Errorf("iperf3 %s on %s: %w", s.role, s.host.Name(), parseErr)
	}
	s.output = out
	return nil
}

// files returns the commands and their outputs as raw files.
func files(sides ...*side) []result.File {
	var commands strings.Builder
	var files []result.File
	for _, s := range sides {
		fmt.Fprintf(&commands, "%s: %s\n", s.host.Name(), host.Cmd{Args: s.args})
		if s.stdout.Len() > 0 {
			files = append(files, result.File{Name: "iperf3-" + s.role + ".json", Data: bytes.Clone(s.stdout.Bytes())})
		}
		if s.stderr.Len() > 0 {
			files = append(files, result.File{Name: "iperf3-" + s.role + ".stderr", Data: bytes.Clone(s.stderr.Bytes())})
		}
	}
	return append([]result.File{{Name: "commands.txt", Data: []byte(commands.String())}}, files...)
}

// A reportedError is an error that iperf3 printed.
type reportedError struct {
	role, host, text string
	cause            error // exit error; nil: status 0
}

func (e *reportedError) Error() string {
	return fmt.Sprintf("the iperf3 %s on %s says: %s", e.role, e.host, strings.TrimPrefix(e.text, "error - "))
}

func (e *reportedError) Unwrap() error { return e.cause }

// notListening reports whether the client found no server, so that no test has begun.
func (e *reportedError) notListening() bool {
	return strings.HasPrefix(strings.TrimPrefix(e.text, "error - "), "unable to connect to server")
}

// errorLine returns the line of iperf3's stderr with the error, without the program's name; the usage may follow it. ""
// means none.
func errorLine(stderr string) string {
	for line := range strings.Lines(stderr) {
		rest, ok := strings.CutPrefix(strings.TrimSpace(line), "iperf3: ")
		if ok && rest != "exiting" {
			return strings.TrimRight(rest, ": ")
		}
	}
	return ""
}
