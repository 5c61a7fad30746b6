package program

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/load/computeload"
	"github.com/knotmeter/knotmeter/internal/result"
)

// grace is how much longer than planned a command may take.
const grace = 20 * time.Second

// maxOutput limits what a command may print, in bytes. A window of a day with a line for each second has some 5 MB.
const maxOutput = 32 << 20

// A run runs the commands of one run on a host, and keeps them with their outputs.
type run struct {
	program  string
	host     host.Host
	cpuLimit string // of the user's; empty: none
	// readCPUs reads what the host's CPUs have done.
	readCPUs func(context.Context) (computeload.Reading, error)
	commands strings.Builder
	outputs  []result.File
}

// output runs one command, which is meant to take as long as takes, and returns what it printed on standard output and
// then what it printed on standard error. name is that of its evidence. The error wraps result.ErrNotSupported if the
// host lacks the program.
func (r *run) output(ctx context.Context, name string, takes time.Duration, args []string) ([]byte, error) {
	bounded, cancel := context.WithTimeout(ctx, takes+grace)
	defer cancel()
	stdout := family.Printout{Program: r.program, MaxBytes: maxOutput}
	stderr := stdout
	c := host.Cmd{Args: append([]string{r.program}, args...), Stdout: &stdout, Stderr: &stderr}
	err := r.host.Run(bounded, c)
	fmt.Fprintf(&r.commands, "%s: %s\n", r.host.Name(), c)
	for _, f := range []result.File{{Name: name + ".stdout", Data: stdout.Bytes()},
		{Name: name + ".stderr", Data: stderr.Bytes()}} {
		if len(f.Data) > 0 {
			r.outputs = append(r.outputs, f)
		}
	}
	var status *host.ExitError
	switch {
	case err == nil:
		return slices.Concat(stdout.Bytes(), stderr.Bytes()), nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case bounded.Err() != nil:
		return nil, fmt.Errorf("%s on %s was not done %s after it should have been: %w", r.program, r.host.Name(), grace,
			bounded.Err())
	case errors.Is(err, host.ErrNoCommand):
		return nil, result.NotSupported(host.Missing(r.program, r.host.Name()))
	case errors.As(err, &status) && status.Stderr == "": // sysbench prints errors on standard output
		return nil, fmt.Errorf("%w: %s", err, errorLine(stdout.String()))
	}
	return nil, err
}

// errorLine returns the line of an output that is about an error, else the last one.
func errorLine(text string) string {
	last := "it printed nothing"
	for line := range strings.Lines(text) {
		line = strings.ToValidUTF8(strings.TrimSpace(line), "?")
		if strings.Contains(line, "FATAL") {
			return line
		}
		if line != "" {
			last = line
		}
	}
	return last
}

// evidence returns the commands and what they printed.
func (r *run) evidence() []result.File {
	return append([]result.File{{Name: "commands.txt", Data: []byte(r.commands.String())}}, r.outputs...)
}
