package wireguard

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/knotmeter/knotmeter/internal/lab/netns"
	"github.com/knotmeter/knotmeter/internal/lab/userspace"
	"github.com/knotmeter/knotmeter/internal/result"
)

// Command is the hidden subcommand that runs [Serve].
const Command = "lab-wireguard"

// Names of the implementations in facts.
const (
	kernel      = "kernel"
	inUserspace = "wireguard-go"
)

// A Device is a WireGuard device of a node.
type Device struct {
	name  string
	child *userspace.Process // nil: the kernel's device
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
	p, err := userspace.Start(inUserspace, Command, name, strconv.Itoa(mtu))
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
	return inUserspace
}

// Configure sets the device's key and peers, and returns when the device is reachable. The calling thread must be in
// the device's network namespace.
func (d *Device) Configure(c Config) error {
	if d.child == nil {
		return configureKernel(d.name, c)
	}
	return d.child.Configure(c.uapi())
}

// Close ends the child, if there is one, and with it the device. The kernel's device is removed with its namespace.
func (d *Device) Close() error {
	if d.child == nil {
		return nil
	}
	return d.child.Stop()
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
