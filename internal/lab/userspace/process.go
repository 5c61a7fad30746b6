package userspace

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

// ready is the line that a child writes when it works. Any other line is its error.
const ready = "ready"

// startTimeout is how long a child may take to start and to be configured.
const startTimeout = 10 * time.Second

// A Process is a child that is configured by its standard input, and runs until that ends.
type Process struct {
	Cmd      *exec.Cmd
	Stdin    io.WriteCloser
	name     string
	response chan string
}

// Start starts this program with a hidden subcommand, in the network namespace of the calling thread. The name is for
// errors.
func Start(name string, args ...string) (*Process, error) {
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.Env = []string{} // the child needs nothing of this process's environment
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	p := &Process{cmd, stdin, name, make(chan string, 1)}
	go func() {
		line, _ := bufio.NewReader(stdout).ReadString('\n')
		p.response <- line
	}()
	return p, nil
}

// Configure writes a configuration and returns when the child works.
func (p *Process) Configure(config string) error {
	if _, err := io.WriteString(p.Stdin, config); err != nil {
		// The child has ended, and its response has the reason.
		return fmt.Errorf("%s: %w", p.name, errors.Join(p.awaitResponse(), err))
	}
	return p.awaitResponse()
}

// awaitResponse waits for the child's response and returns nil if it is ready.
func (p *Process) awaitResponse() error {
	select {
	case line := <-p.response:
		switch line {
		case ready + "\n":
			return nil
		case "":
			return fmt.Errorf("%s ended without a word", p.name)
		}
		return fmt.Errorf("%s: %s", p.name, strings.TrimSuffix(line, "\n"))
	case <-time.After(startTimeout):
		return fmt.Errorf("%s is not ready after %v", p.name, startTimeout)
	}
}

// Stop kills the child and waits for its end. The child has nothing to clean up, since the kernel removes its devices
// and sockets.
func (p *Process) Stop() error {
	err := p.Cmd.Process.Kill()
	if errors.Is(err, os.ErrProcessDone) {
		err = nil
	}
	// Wait reports the signal, or that another caller has waited already.
	_ = p.Cmd.Wait()
	return err
}

// Serve is the child's part of [Process.Configure]: it writes a line to stdout, ready or the error with which the child
// did not start, and returns when stdin ends, at the latest with the parent.
func Serve(startErr error, stdin io.Reader, stdout io.Writer) error {
	if startErr != nil {
		fmt.Fprintln(stdout, startErr)
		return startErr
	}
	fmt.Fprintln(stdout, ready)
	_, err := io.Copy(io.Discard, stdin)
	return err
}
