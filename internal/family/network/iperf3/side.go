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

// maxOutput bounds what one side may print: 128 flows for a day come to less.
const maxOutput = 64 << 20

// A side is the client or the server of a run.
type side struct {
	role   string
	host   host.Host
	args   []string
	stdout family.Printout
	stderr family.Printout
	output output // after run returned nil
}

func newSide(role string, h host.Host, args []string) *side {
	printout := family.Printout{Program: program, Most: maxOutput}
	return &side{role: role, host: h, args: args, stdout: printout, stderr: printout}
}

// run runs the command once and reads its output. iperf3 with -J often ends with status 0 after an
// error, so what it says counts more than how it ends.
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
		return &saidError{role: s.role, host: s.host.Name(), text: out.Error, cause: err}
	case err != nil && told(s.stderr.String()) != "":
		return &saidError{role: s.role, host: s.host.Name(), text: told(s.stderr.String()), cause: err}
	case err != nil:
		return fmt.Errorf("iperf3 %s: %w", s.role, err)
	case parseErr != nil:
		return fmt.Errorf("iperf3 %s on %s: %w", s.role, s.host.Name(), parseErr)
	}
	s.output = out
	return nil
}

// files are the commands and what came of them, as evidence.
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

// A saidError is an error in iperf3's own words.
type saidError struct {
	role, host, text string
	cause            error // how it ended; nil is status 0
}

func (e *saidError) Error() string {
	return fmt.Sprintf("the iperf3 %s on %s says: %s", e.role, e.host, strings.TrimPrefix(e.text, "error - "))
}

func (e *saidError) Unwrap() error { return e.cause }

// notListening says whether the client found nobody to connect to, so that no test has begun.
func (e *saidError) notListening() bool {
	return strings.HasPrefix(strings.TrimPrefix(e.text, "error - "), "unable to connect to server")
}

// told is the line of iperf3's stderr that says what is wrong: it begins with the program's name, and
// may have its usage after it. "" is none.
func told(stderr string) string {
	for line := range strings.Lines(stderr) {
		rest, ok := strings.CutPrefix(strings.TrimSpace(line), "iperf3: ")
		if ok && rest != "exiting" {
			return strings.TrimRight(rest, ": ")
		}
	}
	return ""
}
