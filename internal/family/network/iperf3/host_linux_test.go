package iperf3

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/knotmeter/knotmeter/internal/host"
)

// A namespaceHost is a host in a network namespace of the test.
type namespaceHost struct {
	name string
	addr netip.Addr
	cpus []int
	ns   *os.File
}

// namespacePair returns two hosts in a new namespace, which reach each other over lo.
func namespacePair(t *testing.T, addr netip.Addr) host.Pair {
	t.Helper()
	if _, err := exec.LookPath("iperf3"); err != nil {
		t.Skip("iperf3 is not installed on this machine")
	}
	ns := namespace(t)
	client := &namespaceHost{name: "client", addr: addr, ns: ns}
	server := &namespaceHost{name: "server", addr: addr, ns: ns}
	ap := netip.AddrPortFrom(addr, 5201)
	return host.Pair{Client: client, Server: server, Dial: ap, Listen: ap, Shared: true, MTU: 1500}
}

// namespace makes a network namespace with lo up. It exists as long as the file and the processes in it.
func namespace(t *testing.T) *os.File {
	t.Helper()
	type made struct {
		ns  *os.File
		err error
	}
	done := make(chan made)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			done <- made{err: err}
			return
		}
		ns, err := os.Open("/proc/thread-self/ns/net")
		if err == nil {
			err = up("lo")
		}
		done <- made{ns, err}
	}()
	m := <-done
	if errors.Is(m.err, unix.EPERM) {
		t.Skip("a network namespace of our own needs CAP_SYS_ADMIN")
	}
	if m.err != nil {
		t.Fatal(m.err)
	}
	t.Cleanup(func() { m.ns.Close() })
	return m.ns
}

func up(name string) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	return netlink.LinkSetUp(link)
}

// inside runs f on a thread in the namespace.
func inside(ns *os.File, f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET)
		if err == nil {
			err = f()
		}
		done <- err
	}()
	return <-done
}

func (p *namespaceHost) Name() string     { return p.name }
func (p *namespaceHost) Addr() netip.Addr { return p.addr }
func (p *namespaceHost) CPUs() []int      { return p.cpus }

func (p *namespaceHost) Run(ctx context.Context, c host.Cmd) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	cmd := exec.Command(c.Args[0], c.Args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = c.Stdin, c.Stdout, c.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := inside(p.ns, cmd.Start); err != nil {
		if errors.Is(err, exec.ErrNotFound) {
			return host.ErrNoCommand
		}
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
	err := cmd.Wait()
	stop()
	var status *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &status):
		return &host.ExitError{Command: c.String(), Host: p.name, Status: status.ExitCode()}
	}
	return err
}

// left lists the processes in the namespace of p.
func left(t *testing.T, p host.Pair) []string {
	t.Helper()
	own, ok := p.Client.(*namespaceHost)
	if !ok {
		t.Fatal("not a place")
	}
	var want unix.Stat_t
	if err := unix.Fstat(int(own.ns.Fd()), &want); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		// A thread of this process that entered the namespace may be its main thread, which never ends.
		if e.Name()[0] < '0' || e.Name()[0] > '9' || e.Name() == strconv.Itoa(os.Getpid()) {
			continue
		}
		var got unix.Stat_t
		if unix.Stat("/proc/"+e.Name()+"/ns/net", &got) != nil || got.Ino != want.Ino || got.Dev != want.Dev {
			continue
		}
		line, err := os.ReadFile("/proc/" + e.Name() + "/cmdline")
		if err == nil && len(line) > 0 {
			names = append(names, strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return names
}
