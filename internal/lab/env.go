//go:build linux

package lab

import (
	"fmt"
	"slices"
	"syscall"

	"github.com/knotmeter/knotmeter/internal/lab/netns"
	"github.com/knotmeter/knotmeter/internal/result"
)

// A namespace is one of a site's, with a socket that stays in it.
type namespace struct {
	ns      *netns.NS
	netlink *netns.Conn
}

// An Env is what an Op works in: one namespace of a site that is being built.
type Env struct {
	namespaces *namespaces
	current    string
}

// Namespace is the name of the namespace that the op is in.
func (e *Env) Namespace() string { return e.current }

// Netlink is the namespace's rtnetlink socket. It is valid until Apply returns, and not in what OnClose is given.
func (e *Env) Netlink() *netns.Conn { return e.namespaces.spaces[e.current].netlink }

// fd is the descriptor of a namespace of the site, to make devices in.
func (e *Env) fd(name string) (int, error) {
	s, ok := e.namespaces.spaces[name]
	if !ok {
		return 0, fmt.Errorf("there is no namespace %s", name)
	}
	return s.ns.Fd(), nil
}

// Fact records something that only became known when the op was applied. The facts of a site are a set: the same
// fact from several namespaces is kept once.
func (e *Env) Fact(name, value string) {
	f := result.Fact{Name: name, Value: value}
	if !slices.Contains(e.namespaces.facts, f) {
		e.namespaces.facts = append(e.namespaces.facts, f)
	}
}

// OnClose has f called before the site's namespaces are let go, the last one first. Whatever else holds a
// namespace, such as a goroutine with a device or a process, must be ended by it.
func (e *Env) OnClose(f func() error) { e.namespaces.onClose = append(e.namespaces.onClose, f) }

// A Group is a control group, by which the kernel tells the processes and sockets of a site from others.
type Group interface {
	// Place has a process start in the group.
	Place(attr *syscall.SysProcAttr)
	// Control is for a net.Dialer: its sockets are then as if a process in the group had opened them.
	Control(network, address string, conn syscall.RawConn) error
}

// Shared is the site's value of a type and a name, which the first op that asks for it makes. Ops agree through it on
// what must not be in a plan, such as keys.
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

// Counts says how to count the packets of the datapath's tunnel in this namespace where that is not a device. It must
// work from any thread.
func (e *Env) Counts(f func() (rx, tx uint64, err error)) {
	e.namespaces.counts[e.current] = f
}

// Enter has all commands of the site run in a group, which stays the caller's to close.
func (e *Env) Enter(g Group) { e.namespaces.group = g }

// attributes are how the commands of a site start.
func (n *namespaces) attributes(flags uintptr) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Cloneflags: flags}
	if n.group != nil {
		n.group.Place(attr)
	}
	return attr
}

// control is the Control of the dialers of a site; none where no group is needed.
func (n *namespaces) control() func(network, address string, conn syscall.RawConn) error {
	if n.group == nil {
		return nil
	}
	return n.group.Control
}
