//go:build linux

package lab

import (
	"fmt"
	"slices"
	"syscall"

	"github.com/knotmeter/knotmeter/internal/lab/netns"
	"github.com/knotmeter/knotmeter/internal/result"
)

// A namespace is one of a site's network namespaces, with a socket in it.
type namespace struct {
	ns      *netns.NS
	netlink *netns.Conn // nil after closeNetlink
}

// An Env is the environment of an Op: one namespace of a site that is being built.
type Env struct {
	namespaces *namespaces
	current    string
}

// Namespace returns the name of the op's namespace.
func (e *Env) Namespace() string { return e.current }

// Netlink returns the namespace's rtnetlink socket. It is valid until Apply returns, and not in functions for OnClose.
func (e *Env) Netlink() *netns.Conn { return e.namespaces.spaces[e.current].netlink }

// fd returns the descriptor of a namespace of the site, in which devices can be made.
func (e *Env) fd(name string) (int, error) {
	s, ok := e.namespaces.spaces[name]
	if !ok {
		return 0, fmt.Errorf("there is no namespace %s", name)
	}
	return s.ns.Fd(), nil
}

// Fact records a fact that became known when the op was applied. Equal facts of several namespaces are kept once.
func (e *Env) Fact(f result.Fact) {
	if !slices.Contains(e.namespaces.facts, f) {
		e.namespaces.facts = append(e.namespaces.facts, f)
	}
}

// OnClose registers f, to be called before the site's namespaces are released, in reverse order. Such functions must
// end everything else that holds a namespace, such as a process or a goroutine with a device.
func (e *Env) OnClose(f func() error) { e.namespaces.onClose = append(e.namespaces.onClose, f) }

// A Group is a control group, by which the kernel distinguishes the processes and sockets of a site from others.
type Group interface {
	// Place changes attr so that the process starts in the group.
	Place(attr *syscall.SysProcAttr)
	// Control is for the field Control of a net.Dialer. The dialer's sockets then count as opened by a process in the
	// group.
	Control(network, address string, conn syscall.RawConn) error
}

// Shared returns the site's value of a type and a name, and creates it at the first call. It lets ops share values that
// must not be in a plan, such as keys.
func Shared[T any](e *Env, name string, create func() (T, error)) (T, error) {
	shared := e.namespaces.shared
	if v, ok := shared[name].(T); ok {
		return v, nil
	}
	v, err := create()
	if err == nil {
		shared[name] = v
	}
	return v, err
}

// RegisterCounter registers f to count the packets of the datapath's tunnel in this namespace, for a tunnel without a
// device. f must work on any thread.
func (e *Env) RegisterCounter(f func() (rx, tx uint64, err error)) {
	e.namespaces.counts[e.current] = f
}

// UseGroup makes all commands of the site run in a group, which the caller must close.
func (e *Env) UseGroup(g Group) { e.namespaces.group = g }

// sysProcAttr returns the attributes with which the site's commands start.
func (n *namespaces) sysProcAttr(flags uintptr) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Cloneflags: flags}
	if n.group != nil {
		n.group.Place(attr)
	}
	return attr
}

// control returns the Control function of the site's dialers; nil if the site has no group.
func (n *namespaces) control() func(network, address string, conn syscall.RawConn) error {
	if n.group == nil {
		return nil
	}
	return n.group.Control
}
