package wireguard

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"time"

	"github.com/knotmeter/knotmeter/internal/lab/netns"
	"github.com/knotmeter/knotmeter/internal/result"
)

// Command is the hidden subcommand of this program that is [Serve].
const Command = "lab-wireguard"

// ready is what the child says when it works.
const ready = "ready"

// patience is how long a child may take to start.
const patience = 10 * time.Second

// Names of the implementations, as the facts have them.
const (
	kernel    = "kernel"
	userspace = "wireguard-go"
)

// A Device is a WireGuard device of a node.
type Device struct {
	name  string
	child *child // nil: the kernel's
}

// Add makes a device in the network namespace of the calling thread, whose netlink socket is c: the kernel's, or a
// child that makes one, which is ready once it is configured. MTU is in bytes.
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

// Implementation is which one the device is.
func (d *Device) Implementation() string {
	if d.child == nil {
		return kernel
	}
	return userspace
}

// Configure gives the device its key and peers, and returns when it can be reached. The calling thread is in the
// device's network namespace.
func (d *Device) Configure(c Config) error {
	if d.child == nil {
		return configure(d.name, c)
	}
	return d.child.configure(c)
}

// Close ends the child, if there is one, and with it the device. The kernel's goes with its namespace.
func (d *Device) Close() error {
	if d.child == nil {
		return nil
	}
	return d.child.stop()
}

// A child is wireguard-go in a process.
type child struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	answer chan string
}

// start starts a child in the network namespace of the calling thread.
func start(name string, mtu int) (*child, error) {
	cmd := exec.Command("/proc/self/exe", Command, name, strconv.Itoa(mtu))
	cmd.Env = []string{} // nothing of ours is its business
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
		// It has ended, and its answer says why.
		return fmt.Errorf("wireguard-go: %w", errors.Join(c.failure(), err))
	}
	return c.failure()
}

// failure is what the child says that went wrong, nil if it is ready.
func (c *child) failure() error {
	select {
	case line := <-c.answer:
		switch line {
		case ready + "\n":
			return nil
		case "":
			return errors.New("wireguard-go ended without a word")
		}
		return fmt.Errorf("wireguard-go: %s", line[:len(line)-1])
	case <-time.After(patience):
		return fmt.Errorf("wireguard-go is not ready after %v", patience)
	}
}

// stop kills the child: it has nothing to finish, and the kernel removes its device.
func (c *child) stop() error {
	err := c.cmd.Process.Kill()
	if errors.Is(err, os.ErrProcessDone) {
		err = nil
	}
	// The error of Wait is the signal, or that somebody else has waited for it.
	_ = c.cmd.Wait()
	return err
}

// Probe says whether there is an implementation: nil, or an error that Is result.ErrNotSupported and names what is
// missing. It leaves a device in the namespace of c, which the calling thread is in.
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

// ProbeTUN says whether there are TUN devices, which wireguard-go needs, in the namespace of the calling thread.
func ProbeTUN() error {
	file, err := openTUN("tunprobe0")
	if err != nil {
		return err
	}
	return file.Close()
}
