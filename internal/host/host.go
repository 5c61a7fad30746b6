// Package host is where code runs: this machine, a network namespace of the lab, or a pod. Targets make hosts, tools
// run commands on them; neither knows the other.
package host

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"
)

// Agent as the first argument of a Cmd means this program's agent of the same version, in whatever way the host carries
// it.
const Agent = "knotmeter-agent"

// A Cmd is a command to run, in the host's environment. Secrets go into Stdin, never into Args, because process lists
// show those.
type Cmd struct {
	Args   []string
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
}

// String is the command as it can be pasted into a shell.
func (c Cmd) String() string {
	quoted := make([]string, len(c.Args))
	for i, a := range c.Args {
		quoted[i] = a
		if a == "" || strings.ContainsAny(a, " \t\n'\"\\$&|;<>()*?[]{}~#!`") || i == 0 && special(a) {
			quoted[i] = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
	}
	return strings.Join(quoted, " ")
}

var shellKeywords = []string{
	"case", "do", "done", "elif", "else", "esac", "fi", "for", "function", "if", "in", "select", "then", "time", "until",
	"while",
}

// Argv is the command line to start, in which agent stands for [Agent].
func (c Cmd) Argv(agent ...string) []string {
	if len(c.Args) > 0 && c.Args[0] == Agent {
		return slices.Concat(agent, c.Args[1:])
	}
	return c.Args
}

// special says whether a shell takes a first word for something else than a program's name.
func special(word string) bool {
	return strings.Contains(word, "=") || slices.Contains(shellKeywords, word)
}

// A Host is where code runs. It is safe for concurrent use.
type Host interface {
	// Name is unique in a place: "node1", "node2/pod1".
	Name() string
	// Addr is the host's own address, to listen on.
	Addr() netip.Addr
	// CPUs are those that work on this host is to be pinned to, so that placement is the same for
	// every target; empty means anywhere.
	CPUs() []int
	// Run runs c and blocks until it has ended and its output is written. A non-zero exit is an
	// *ExitError, a command that the host does not have Is ErrNoCommand. When ctx ends, the command
	// and all its children are killed before Run returns ctx's error.
	Run(ctx context.Context, c Cmd) error
}

// A Pair is two hosts and how the first reaches the second; or the first alone, with what it has.
type Pair struct {
	Client, Server Host
	// Dial is what the client connects to: the server's own address, or a Service's.
	Dial netip.AddrPort
	// Listen is where the server listens: its address, and the one port that a Service maps to.
	Listen netip.AddrPort
	// Shared says that both hosts use the same machine's CPUs, so the CPU of both sides is one figure.
	Shared bool
	// CPULimit is the limit that the user gave the hosts' CPU time, such as 500m. Runs that reach it count, since it is
	// part of what the user measures. Empty is none.
	CPULimit string
	// MTU of the path in bytes as far as the target knows it; 0 is unknown.
	MTU int
	// Volume is what the client measures where storage is measured; there is no server then.
	Volume Volume
	// Endpoint is what the client asks where an API server or an application is measured; likewise.
	Endpoint Endpoint
}

// A Volume is a directory or a block device of a host that a run may write all over.
type Volume struct {
	Path   string // absolute, on the host
	Device bool   // a block device, and not a directory
	Size   int64  // bytes that may be used; 0 is unknown
	// Kept names what stays on the volume from run to run: what was once written on one of that name is there again.
	// Empty: nothing stays.
	Kept string
}

// An ExitError is a command that ended with a status other than 0.
type ExitError struct {
	Command string // as for a shell
	Host    string
	Status  int    // -1 when a signal ended it
	Stderr  string // its last lines
}

func (e *ExitError) Error() string {
	how := fmt.Sprintf("exit status %d", e.Status)
	if e.Status < 0 {
		how = "ended by a signal"
	}
	text := fmt.Sprintf("on %s: %s: %s", e.Host, e.Command, how)
	if e.Stderr != "" {
		text += ": " + strings.TrimSpace(e.Stderr)
	}
	return text
}

// Missing is what to report, and what to do, where a host lacks a program. On names the host or hosts.
func Missing(program, on string) string {
	return fmt.Sprintf("%s is not on %s: install it (Debian: apt-get install %[1]s; Fedora: dnf install %[1]s); "+
		"'knotmeter image build --tools %[1]s' adds it to the image of pods", program, on)
}

// ErrNoCommand is wrapped when a host does not have the program that a Cmd names.
var ErrNoCommand = noCommand{}

type noCommand struct{}

func (noCommand) Error() string { return "no such program on this host" }
