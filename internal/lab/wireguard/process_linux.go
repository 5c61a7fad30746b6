package wireguard

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/knotmeter/knotmeter/internal/lab/netns"
	"github.com/knotmeter/knotmeter/internal/result"
)

// Command is the hidden subcommand that runs [Serve].
const Command = "lab-wireguard"

// ready is the child's answer when its device works.
const ready = "ready"

// startTimeout is how long a child may take to start and to be configured.
const startTimeout = 10 * time.Second

// Names of the implementations in facts.
const (
	kernel    = "kernel"
	userspace = "wireguard-go"
)

// A Device is a WireGuard device of a node.
type Device struct {
	name  string
	child *child // nil: the kernel's device
}

// Add makes a device in the network namespace of the calling thread, whose netlink socket is c: the kernel's, or else
// one of wireguard-go in a child, which is ready once it is configured. mtu is in bytes.
func Add(c *netns.Conn, name string, mtu int) (*Device, error) {
	err := c.AddWireGuard(netns.Link{Name: name, MTU: mtu})
	if err == nil {
		return &Device{name: name}, nil
	}
	if !errors.Is(err, result.ErrNotSupported) {
		return nil, err
	}
	p, err := start(name, mtu)
	if err != nil {
		return nil, err
	}
	return &Device{name, p}, nil
}

// Implementation returns the name of the device's implementation.
func (d *Device) Implementation() string {
	if d.child == nil {
		return kernel
	}
	return userspace
}

// Configure sets the device's key and peers, and returns when the device is reachable. The calling thread must be in
// the device's network namespace.
func (d *Device) Configure(c Config) error {
	if d.child == nil {
		return configureKernel(d.name, c)
	}
	return d.child.configure(c)
}

// Close ends the child, if there is one, and with it the device. The kernel's device is removed with its namespace.
func (d *Device) Close() error {
	if d.child == nil {
		return nil
	}
	return d.child.stop()
}

// A child is a process that runs wireguard-go.
type child struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	answer chan string
}

// start starts a child in the network namespace of the calling thread.
func start(name string, mtu int) (*child, error) {
	cmd := exec.Command("/proc/self/exe", Command, name, strconv.Itoa(mtu))
	cmd.Env = []string{} // the child needs nothing of this process's environment
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("wireguard-go: %w", err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("wireguard-go: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting wireguard-go: %w", err)
	}
	c := &child{cmd, stdin, make(chan string, 1)}
	go func() {
		line, _ := bufio.NewReader(stdout).ReadString('\n')
		c.answer <- line
	}()
	return c, nil
}

func (c *child) configure(config Config) error {
	if _, err := io.WriteString(c.stdin, config.uapi()); err != nil {
		// The child has ended, and its answer has the reason.
		return fmt.Errorf("wireguard-go: %w", errors.Join(c.awaitAnswer(), err))
	}
	return c.awaitAnswer()
}

// awaitAnswer waits for the child's answer and returns nil if it is ready.
func (c *child) awaitAnswer() error {
	select {
	case line := <-c.answer:
		switch line {
		case ready + "\n":
			return nil
		case "":
			return errors.New("wireguard-go ended without a word")
		}
		return fmt.Errorf("wireguard-go: %s", strings.TrimSuffix(line, "\n"))
	case <-time.After(startTimeout):
		return fmt.Errorf("wireguard-go is not ready after %v", startTimeout)
	}
}

// stop kills the child. It has nothing to clean up, since the kernel removes its device.
func (c *child) stop() error {
	err := c.cmd.Process.Kill()
	if errors.Is(err, os.ErrProcessDone) {
		err = nil
	}
	// Wait reports the signal, or that another caller has waited already.
	_ = c.cmd.Wait()
	return err
}

// Probe checks whether an implementation is available. The error Is result.ErrNotSupported and names what is missing if
// none is. Probe leaves a device in the namespace of c, in which the calling thread must be.
func Probe(c *netns.Conn) error {
	const scratch = "wgprobe0"
	kernel := c.AddWireGuard(netns.Link{Name: scratch})
	if kernel == nil || !errors.Is(kernel, result.ErrNotSupported) {
		return kernel
	}
	file, err := openTUN(scratch)
	if errors.Is(err, result.ErrNotSupported) {
		return result.NotSupported(fmt.Sprintf("%v; and in its place: %v", kernel, err))
	}
	if err != nil {
		return fmt.Errorf("wireguard-go: %w", err)
	}
	return file.Close()
}

// ProbeTUN checks whether TUN devices, which wireguard-go needs, are available in the namespace of the calling thread.
func ProbeTUN() error {
	file, err := openTUN("tunprobe0")
	if err != nil {
		return err
	}
	return file.Close()
}
