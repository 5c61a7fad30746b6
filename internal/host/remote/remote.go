// Package remote runs commands at the far end of three streams, such as an exec into a pod. A target's hosts connect
// the streams; the agent's program serves the far end.
//
// An exec alone does not make a host: closing the streams leaves the command running, and neither a lost connection nor
// a missing program can be distinguished from a command that failed. So the far end is a supervisor. It receives
// standard input in frames and ends the command with all its children when the frames end; how the command ended is the
// last thing that it writes to standard error.
//
// The package is a transport for the streams of any command, such as fio or an agent. It does not read the agent's
// protocol inside them. Each of several concurrent commands has its own supervisor.
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

// Commands of the agent's program at the far end, as its first argument.
const (
	ExecCommand  = "exec"  // the supervisor; the command follows
	WaitCommand  = "wait"  // the first process of a container
	AgentCommand = "agent" // an agent, which generates load
	// RespondCommand responds to the probes of a run, as its arguments say, until the container ends.
	RespondCommand = "respond"
	// DigestCommand prints the SHA-256 of the agent's program itself, to check a copy in a container without such a
	// tool.
	DigestCommand = "digest"
	// NothingCommand ends at once: runs measure how long that takes.
	NothingCommand = "nothing"
	// EnterCommand becomes another command, the second and later arguments, in the control group of the first one.
	EnterCommand = "enter"
)

// AgentPath is the path of the agent's program in images that this program builds.
const AgentPath = "/knotmeter-agent"

// An Exec runs args at the far end with these streams, and returns when all of them have ended. When ctx ends, it
// closes the streams and returns.
type Exec func(ctx context.Context, args []string, s Streams) error

// Streams are the standard streams of a command at the far end.
type Streams struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
}

// A Host runs commands at one far end.
type Host struct {
	Name  string // of the host, for errors
	Agent string // path of the agent's program there
	Exec  Exec
	// KillTimeout is how long a command may take to end after its context has ended; 0: 5 s.
	KillTimeout time.Duration
}

// ErrLost is the error of a command whose end was not reported, because the connection was lost or the far end was
// removed.
var ErrLost = errors.New("the connection ended before the command did")

// Run runs a command as [host.Host] describes. It may return before a read from c.Stdin does.
func (h Host) Run(ctx context.Context, c host.Cmd) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if len(c.Args) == 0 {
		return fmt.Errorf("on %s: %w: the command is empty", h.Name, host.ErrNoCommand)
	}
	args := slices.Concat([]string{h.Agent, ExecCommand}, c.Argv(h.Agent, AgentCommand))
	stderr := newStatusReader(c.Stderr)
	err := h.connect(ctx, args, Streams{Stdin: c.Stdin, Stdout: orDiscard(c.Stdout), Stderr: stderr})
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	v, ok := stderr.status()
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

// connect carries the streams until they end. When ctx ends, it ends the frames, which makes the far end kill the
// command; it abandons a far end that does not end in time.
func (h Host) connect(ctx context.Context, args []string, s Streams) error {
	framed, frames := io.Pipe()
	go frame(frames, s.Stdin)
	running, abandon := context.WithCancel(context.WithoutCancel(ctx))
	defer abandon()
	s.Stdin = framed
	ended := make(chan error, 1)
	go func() { ended <- h.Exec(running, args, s) }()
	defer frames.Close() // closes both sides of the pipe
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	_ = frames.Close()
	timeout := time.NewTimer(cmp.Or(h.KillTimeout, 5*time.Second))
	defer timeout.Stop()
	select {
	case err := <-ended:
		return err
	case <-timeout.C:
		abandon()
		return <-ended
	}
}

// frameSize is the most data of a frame, in bytes.
const frameSize = 32 << 10

// frame copies in to out in frames, each with its length before it, and an empty frame at the end.
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

// An exitStatus reports how a command ended.
type exitStatus struct {
	Status  int    `json:"status"`            // -1 when a signal ended it
	Missing bool   `json:"missing,omitempty"` // the program does not exist
	Error   string `json:"error,omitempty"`   // why it could not be started or waited for
}

func (v exitStatus) err(name string, c host.Cmd, stderr string) error {
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

// marker precedes the exit status on standard error. It begins with a record separator, which programs do not write in
// messages.
const marker = "\x1eknotmeter-exec "

func (v exitStatus) write(w io.Writer) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, marker+string(text)+"\n")
	return err
}

// maxStatus is the largest size of an exit status, in bytes.
const maxStatus = 4 << 10

// A statusReader passes standard error on up to the exit status, and keeps the end of what it passed on.
type statusReader struct {
	to   io.Writer
	held []byte // from the first byte that may be part of the marker
	last host.Tail
}

func newStatusReader(to io.Writer) *statusReader {
	r := &statusReader{}
	r.to = r.last.Tee(to)
	return r
}

func (r *statusReader) Write(b []byte) (int, error) {
	r.held = append(r.held, b...)
	if strings.HasPrefix(string(r.held), marker) {
		r.held = r.held[:min(len(r.held), maxStatus)]
		return len(b), nil
	}
	pass := len(r.held) - markerPrefix(r.held)
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

// markerPrefix returns how many bytes at the end of b may be the beginning of the marker.
func markerPrefix(b []byte) int {
	for n := min(len(b), len(marker)-1); n > 0; n-- {
		if strings.HasPrefix(marker, string(b[len(b)-n:])) {
			return n
		}
	}
	return 0
}

// status returns the exit status after the marker; ok reports whether it is complete.
func (r *statusReader) status() (v exitStatus, ok bool) {
	text, ok := strings.CutPrefix(string(r.held), marker)
	if !ok || !strings.HasSuffix(text, "\n") {
		return v, false
	}
	return v, json.Unmarshal([]byte(text), &v) == nil
}
