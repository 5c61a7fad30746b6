// Package host runs commands on hosts: this machine, a network namespace of the lab, or a pod. Targets make hosts and
// tools run commands on them; neither knows the other.
package host

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"
)

// Agent stands for this program's agent of the same version as the first argument of a Cmd, however the host provides
// it.
const Agent = "knotmeter-agent"

// A Cmd is a command to run, in the host's environment. Secrets belong in Stdin and never in Args, because process
// lists show the arguments.
type Cmd struct {
	Args   []string
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
}

// String returns the command quoted for a shell.
func (c Cmd) String() string {
	quoted := make([]string, len(c.Args))
	for i, a := range c.Args {
		quoted[i] = a
		if a == "" || strings.ContainsAny(a, " \t\n'\"\\$&|;<>()*?[]{}~#!`") || i == 0 && isShellSyntax(a) {
			quoted[i] = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
	}
	return strings.Join(quoted, " ")
}

var shellKeywords = []string{
	"case", "do", "done", "elif", "else", "esac", "fi", "for", "function", "if", "in", "select", "then", "time", "until",
	"while",
}

// Argv returns the command line to start. It replaces [Agent] by agent.
func (c Cmd) Argv(agent ...string) []string {
	if len(c.Args) > 0 && c.Args[0] == Agent {
		return slices.Concat(agent, c.Args[1:])
	}
	return c.Args
}

// isShellSyntax reports whether a shell takes a first word for something other than a program's name.
func isShellSyntax(word string) bool {
	return strings.Contains(word, "=") || slices.Contains(shellKeywords, word)
}

// A Host runs commands. It is safe for concurrent use.
type Host interface {
	// Name returns the host's name, which is unique within a site: "node1", "node2/pod1".
	Name() string
	// Addr returns the host's own address, to listen on.
	Addr() netip.Addr
	// CPUs returns the CPUs to which work on this host is pinned, so that placement is the same on every target; empty:
	// all.
	CPUs() []int
	// Run runs c and returns when it has ended and its output is written. The error is an *ExitError for a non-zero
	// exit status, and wraps ErrNoCommand if the host lacks the program. When ctx ends, the command and all its
	// children are killed before Run returns ctx's error.
	Run(ctx context.Context, c Cmd) error
}

// A Pair is two hosts and the address at which the first reaches the second; or only a Client, with the volume or
// endpoint that it measures.
type Pair struct {
	Client, Server Host
	// Dial is what the client connects to: the server's own address, or a Service's.
	Dial netip.AddrPort
	// Listen is where the server listens: its address, and the one port that a Service maps to.
	Listen netip.AddrPort
	// Shared means that both hosts use the CPUs of the same machine, so that there is one figure of CPU time for both.
	Shared bool
	// CPULimit is the limit that the user set for the hosts' CPU time, such as 500m; empty: none. Runs that reach it are
	// valid, since it is part of what the user measures.
	CPULimit string
	// MTU is the MTU of the path in bytes; 0: the target does not know it.
	MTU int
	// Volume is what the client of a storage case measures. There is no server.
	Volume Volume
	// Endpoint is the API server or application to which the client of other cases sends requests. There is no server.
	Endpoint Endpoint
}

// A Volume is a directory or a block device of a host that a run may overwrite.
type Volume struct {
	Path   string // absolute, on the host
	Device bool   // a block device; false: a directory
	Size   int64  // bytes that may be used; 0: unknown
	// Kept identifies the data that stay on the volume from run to run: volumes with the same name have the same data.
	// Empty: no data stay.
	Kept string
}

// An ExitError reports that a command ended with a status other than 0.
type ExitError struct {
	Command string // quoted for a shell
	Host    string
	Status  int    // -1 when a signal ended it
	Stderr  string // its last bytes, at most 2048
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

// Missing returns the text of an error about a program that a host lacks, with the remedy. on names the host or hosts.
func Missing(program, on string) string {
	return fmt.Sprintf("%s is not on %s: install it (Debian: apt-get install %[1]s; Fedora: dnf install %[1]s); "+
		"'knotmeter image build --tools %[1]s' adds it to the image of pods", program, on)
}

// ErrNoCommand is wrapped by the error of a Cmd whose program the host does not have.
var ErrNoCommand = noCommand{}

type noCommand struct{}

func (noCommand) Error() string { return "no such program on this host" }
