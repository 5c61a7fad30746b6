package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"github.com/knotmeter/knotmeter/internal/host"
)

// A wire is two network namespaces connected by a veth pair. They have no names, so the kernel removes them when this
// program ends.
type wire struct{ client, server end }

// An end is a host in one of the namespaces.
type end struct {
	*host.Local
	ns  netns.NsHandle
	cpu int
}

// newWire makes the namespaces and the veth pair. It needs root.
func newWire(clientCPU, serverCPU int) (*wire, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	w := &wire{client: end{cpu: clientCPU}, server: end{cpu: serverCPU}}
	for i, e := range []*end{&w.client, &w.server} {
		if e.ns, err = newNamespace(); err != nil {
			return nil, errors.Join(err, w.Close())
		}
		addr := netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)})
		e.Local = host.NewLocal([]string{"client", "server"}[i], addr, []int{e.cpu}, self, agentCommand)
	}
	if err := w.connect(); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return w, nil
}

// newNamespace makes a network namespace on a thread that then ends.
func newNamespace() (netns.NsHandle, error) {
	type made struct {
		ns  netns.NsHandle
		err error
	}
	out := make(chan made)
	go func() {
		runtime.LockOSThread() // never unlocked, so that the thread ends
		ns, err := netns.New()
		out <- made{ns, err}
	}()
	m := <-out
	if m.err != nil {
		return netns.None(), fmt.Errorf("make a network namespace (needs root): %w", m.err)
	}
	return m.ns, nil
}

// connect adds a veth pair between the namespaces.
func (w *wire) connect() error {
	h, err := netlink.NewHandleAt(w.client.ns)
	if err != nil {
		return fmt.Errorf("open netlink: %w", err)
	}
	defer h.Close()
	veth := &netlink.Veth{
		LinkAttrs: netlink.LinkAttrs{Name: "wire", MTU: 1500}, PeerName: "wire", PeerNamespace: netlink.NsFd(w.server.ns),
	}
	if err := h.LinkAdd(veth); err != nil {
		return fmt.Errorf("make a veth pair: %w", err)
	}
	for _, e := range []end{w.client, w.server} {
		if err := e.configure(); err != nil {
			return err
		}
	}
	return nil
}

// configure gives an end its address and brings it up.
func (e end) configure() error {
	h, err := netlink.NewHandleAt(e.ns)
	if err != nil {
		return fmt.Errorf("open netlink: %w", err)
	}
	defer h.Close()
	link, err := h.LinkByName("wire")
	if err != nil {
		return fmt.Errorf("find the veth: %w", err)
	}
	addr := &netlink.Addr{IPNet: &net.IPNet{IP: e.Addr().AsSlice(), Mask: net.CIDRMask(24, 32)}}
	if err := h.AddrAdd(link, addr); err != nil {
		return fmt.Errorf("give the veth its address: %w", err)
	}
	return h.LinkSetUp(link)
}

// Run runs a command in the namespace.
func (e end) Run(ctx context.Context, c host.Cmd) error {
	out := make(chan error)
	go func() {
		runtime.LockOSThread()
		if err := netns.Set(e.ns); err != nil {
			out <- fmt.Errorf("enter the namespace: %w", err)
			return
		}
		out <- e.Local.Run(ctx, c)
	}()
	return <-out
}

// pair returns both ends for the native tool.
func (w *wire) pair(port uint16) host.Pair {
	at := netip.AddrPortFrom(w.server.Addr(), port)
	// Not Shared, so that the tool keeps both sides on the CPUs of -cpus, like the reference program.
	return host.Pair{Client: w.client, Server: w.server, Dial: at, Listen: at, MTU: 1500}
}

// Close removes the namespaces with the veth pair.
func (w *wire) Close() error {
	var errs []error
	for _, e := range []end{w.client, w.server} {
		if e.ns.IsOpen() {
			errs = append(errs, e.ns.Close())
		}
	}
	return errors.Join(errs...)
}
