package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
)

// maxOutput is the most output of a user's command that is kept, in bytes.
const maxOutput = 64 << 10

// shownLines is the number of last lines of output in the error of a command.
const shownLines = 3

// runCommand runs a user's command for a target and returns its combined output. It kills the command and its children
// at the command's time limit or when ctx ends; if this program is killed, the guard in [commandArgs] kills them. All
// user commands run here.
func (s *session) runCommand(ctx context.Context, c result.Command, name string) (output string, err error) {
	limit := seconds(c.Limit)
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	kept := host.Tail{Keep: maxOutput}
	alive, end := io.Pipe() // the guard reads it
	defer end.Close()
	err = host.Exec(limited,
		host.Cmd{Args: commandArgs(c, s.environment(name)), Stdin: alive, Stdout: &kept, Stderr: &kept})
	if left := s.endCommands(ctx); left != nil {
		return kept.String(), left
	}
	output = kept.String()
	switch {
	case err == nil || ctx.Err() != nil:
		return output, err
	case errors.Is(err, exec.ErrWaitDelay): // it succeeded, but a process that it left running holds its output open
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

// environment returns the variables that a command for a target gets in addition to those of this program.
func (s *session) environment(name string) []string {
	list := []string{"KNOTMETER_TARGET=" + name, host.Mark(s.e.ID)}
	if t, is := s.targets[name].(targets.Switched); is {
		list = append(list, t.Environment()...)
	}
	return list
}

// endCommands ends processes that commands of the experiment started and that left their process group, as those of
// timeout(1) do, or that outlived the program.
func (s *session) endCommands(ctx context.Context) error {
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime)
	defer cancel()
	return host.KillMarked(limited, s.e.ID)
}

// endTime is how long killed processes get to end: those that wait for a disk end late.
const endTime = 10 * time.Second

// commandArgs returns the arguments that run a command in its directory with additional environment variables and
// without input. The standard input that they are given must end with this program, and not before the command: a guard
// in the command's process group then kills that group. A control group or a process namespace would end the services
// too that a switch is to leave behind.
func commandArgs(c result.Command, environment []string) []string {
	const within = `exec 3<&0 </dev/null
({ trap '' HUP INT TERM; read -r _ <&3; kill -KILL 0; } >/dev/null 2>&1 &)
exec 3<&-
cd -- "$1" && shift && exec env "$@"`
	return slices.Concat([]string{"sh", "-c", within, "sh", c.Directory}, environment, []string{"sh", "-c", c.Text})
}
