// Package remote runs commands at the far end of three streams, such as an exec into a pod: a host that
// is no child process. It stands between a target's hosts, which know how to connect the streams, and the
// agent's program, which serves the far end.
//
// Such streams alone do not make a host: closing them leaves the command running, a status cannot be told
// from a lost connection, and a missing program looks like any other failure. So the far end is a small
// supervisor. Standard input reaches it in frames, and the end of the frames ends the command with all
// its children; its last words, on standard error, are how the command ended.
//
// This is a transport, not a second protocol of agents: it carries the bytes of any command, be it fio or an
// agent, unread, and several commands at once have a supervisor each. The agent's protocol runs inside it.
package remote

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/knotmeter/knotmeter/internal/host"
)

// Commands of the agent's program that a far end needs, as its first argument.
const (
	ExecCommand  = "exec"  // the supervisor, followed by the command
	WaitCommand  = "wait"  // the first process of a container: it waits for its end
	AgentCommand = "agent" // one side of a run
	// RespondCommand answers the probes of a run, with its arguments, until the container is to end.
	RespondCommand = "respond"
	// DigestCommand prints the SHA-256 of the agent's program itself, so that a copy of it can be checked where
	// there is nothing else to do that with.
	DigestCommand = "digest"
)

// AgentPath is the agent's program in a container that is made for it.
const AgentPath = "/knotmeter-agent"

// An Exec starts args at the far end with these streams, and returns when all of them have ended. When ctx
// ends it lets go of them.
type Exec func(ctx context.Context, args []string, s Streams) error

// Streams are those of a command at the far end.
type Streams struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
}

// A Host runs commands at one far end.
type Host struct {
	Name  string // of the host, for errors
	Agent string // path of the agent's program there
	Exec  Exec
	// Patience is how long a command that was told to end may take for it; 0 is 5 s.
	Patience time.Duration
}

// ErrLost is what a command ends with that did not say how it ended: its connection was cut, or the far end
// was removed.
var ErrLost = errors.New("the connection ended before the command did")

// Run does what a [host.Host]'s Run does. It may return before a read from c.Stdin does.
func (h Host) Run(ctx context.Context, c host.Cmd) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if len(c.Args) == 0 {
		return fmt.Errorf("on %s: %w: the command is empty", h.Name, host.ErrNoCommand)
	}
	args := slices.Concat([]string{h.Agent, ExecCommand}, c.Argv(h.Agent, AgentCommand))
	stderr := newVerdictReader(c.Stderr)
	err := h.connect(ctx, args, Streams{Stdin: c.Stdin, Stdout: orDiscard(c.Stdout), Stderr: stderr})
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	v, ok := stderr.verdict()
	switch {
	case !ok && err != nil:
		return fmt.Errorf("on %s: %s: %w: %w", h.Name, c, ErrLost, err)
	case !ok:
		return fmt.Errorf("on %s: %s: %w", h.Name, c, ErrLost)
	}
	return v.err(h.Name, c, stderr.last.String())
}

func orDiscard(w io.Writer) io.Writer {
	if w == nil {
		return io.Discard
	}
	return w
}

// connect carries the streams until they end. When ctx ends it says so to the far end by ending the
// frames, and lets go of a far end that does not answer that.
func (h Host) connect(ctx context.Context, args []string, s Streams) error {
	framed, frames := io.Pipe()
	go frame(frames, s.Stdin)
	held, letGo := context.WithCancel(context.WithoutCancel(ctx))
	defer letGo()
	s.Stdin = framed
	ended := make(chan error, 1)
	go func() { ended <- h.Exec(held, args, s) }()
	defer frames.Close() // which ends both sides of the pipe
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	_ = frames.Close()
	patience := time.NewTimer(cmp.Or(h.Patience, 5*time.Second))
	defer patience.Stop()
	select {
	case err := <-ended:
		return err
	case <-patience.C:
		letGo()
		return <-ended
	}
}

// frameSize is the most that a frame carries, in bytes.
const frameSize = 32 << 10

// frame writes what in has as frames, each with its length before it, and an empty one at its end.
func frame(out io.Writer, in io.Reader) {
	buffer := make([]byte, 4+frameSize)
	for {
		n, err := 0, io.EOF
		if in != nil {
			n, err = in.Read(buffer[4:])
		}
		if n > 0 {
			binary.BigEndian.PutUint32(buffer, uint32(n))
			if _, err := out.Write(buffer[:4+n]); err != nil {
				return
			}
		}
		if err != nil {
			_, _ = out.Write(make([]byte, 4))
			return
		}
	}
}

// A verdict is how a command ended.
type verdict struct {
	Status  int    `json:"status"`            // -1 when a signal ended it
	Missing bool   `json:"missing,omitempty"` // there is no such program
	Error   string `json:"error,omitempty"`   // it could not be started, or waited for
}

func (v verdict) err(name string, c host.Cmd, stderr string) error {
	switch {
	case v.Missing:
		return fmt.Errorf("on %s: %s: %w", name, c.Args[0], host.ErrNoCommand)
	case v.Error != "":
		return fmt.Errorf("on %s: %s: %s", name, c, v.Error)
	case v.Status != 0:
		return &host.ExitError{Command: c.String(), Host: name, Status: v.Status, Stderr: stderr}
	}
	return nil
}

// marker comes before the verdict on standard error: a character that separates records, which no
// program writes for people.
const marker = "\x1eknotmeter-exec "

func (v verdict) write(w io.Writer) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, marker+string(text)+"\n")
	return err
}

// verdictKept is the most bytes that a verdict has.
const verdictKept = 4 << 10

// A verdictReader passes standard error on up to the verdict, and keeps its end.
type verdictReader struct {
	to   io.Writer
	held []byte // from what may be the marker on
	last host.Tail
}

func newVerdictReader(to io.Writer) *verdictReader {
	r := &verdictReader{}
	r.to = r.last.Beneath(to)
	return r
}

func (r *verdictReader) Write(b []byte) (int, error) {
	r.held = append(r.held, b...)
	if strings.HasPrefix(string(r.held), marker) {
		r.held = r.held[:min(len(r.held), verdictKept)]
		return len(b), nil
	}
	pass := len(r.held) - partial(r.held)
	if i := strings.Index(string(r.held), marker); i >= 0 {
		pass = i
	}
	text := r.held[:pass]
	r.held = slices.Clone(r.held[pass:])
	if len(text) == 0 {
		return len(b), nil
	}
	_, err := r.to.Write(text)
	return len(b), err
}

// partial is how many bytes at the end of b may begin the marker.
func partial(b []byte) int {
	for n := min(len(b), len(marker)-1); n > 0; n-- {
		if strings.HasPrefix(marker, string(b[len(b)-n:])) {
			return n
		}
	}
	return 0
}

// verdict is what came after the marker, if it is whole.
func (r *verdictReader) verdict() (v verdict, ok bool) {
	text, ok := strings.CutPrefix(string(r.held), marker)
	if !ok || !strings.HasSuffix(text, "\n") {
		return v, false
	}
	return v, json.Unmarshal([]byte(text), &v) == nil
}
