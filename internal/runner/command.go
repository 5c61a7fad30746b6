package runner

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"

	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
)

// mostOutput is how much is kept of what a command of the user's prints, in bytes.
const mostOutput = 64 << 10

// shownLines is how many of the last lines of its output an error of a command shows.
const shownLines = 3

// command runs a command of the user's for a target, and kills it with its children when its time is over or ctx ends.
// It is the only place where such commands run.
func (s *session) command(ctx context.Context, c result.Command, name string) (output string, err error) {
	limit := seconds(c.Limit)
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	kept := host.Tail{Keep: mostOutput}
	err = host.Exec(limited, host.Cmd{Args: commandArgs(c, s.environment(name)), Stdout: &kept, Stderr: &kept})
	output = kept.String()
	switch {
	case err == nil || ctx.Err() != nil:
		return output, err
	case errors.Is(err, exec.ErrWaitDelay): // it ended well; what it left running holds its output open
		return output, nil
	case limited.Err() != nil:
		err = fmt.Errorf("it took longer than %v and was killed", limit)
	}
	lines := strings.Split(output, "\n")
	if lines = lines[max(0, len(lines)-shownLines):]; output != "" {
		err = fmt.Errorf("%w; it printed at last: %s", err, strings.Join(lines, " | "))
	}
	return output, fmt.Errorf("%s: %w", c.Text, err)
}

// environment is what a command learns of the target that it is run for.
func (s *session) environment(name string) []string {
	list := []string{"KNOTMETER_TARGET=" + name}
	if t, is := s.targets[name].(targets.Switched); is {
		list = append(list, t.Environment()...)
	}
	return list
}

// commandArgs is the command line of a command in its directory, with an environment besides that of this program.
func commandArgs(c result.Command, environment []string) []string {
	const within = `cd -- "$1" && shift && exec env "$@"`
	return slices.Concat([]string{"sh", "-c", within, "sh", c.Directory}, environment, []string{"sh", "-c", c.Text})
}
