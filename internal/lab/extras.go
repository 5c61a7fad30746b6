//go:build linux

package lab

import "syscall"

// extras are what ops add to the namespaces of a site beyond namespaces and what is in them.
type extras struct {
	shared map[string]any
	counts map[string]func() (rx, tx uint64, err error)
	group  Group
}

// A Group is a control group, by which the kernel tells the processes and sockets of a site from others.
type Group interface {
	// Place has a process start in the group.
	Place(attr *syscall.SysProcAttr)
	// Control is for a net.Dialer: its sockets are then as if a process in the group had opened them.
	Control(network, address string, conn syscall.RawConn) error
}

// Share returns the site's value of a name, which the first op that asks for it makes. Ops of several namespaces agree
// through it on what must not be in a plan, such as keys.
func (e *Env) Share(name string, create func() (any, error)) (any, error) {
	x := &e.namespaces.extras
	if v, ok := x.shared[name]; ok {
		return v, nil
	}
	v, err := create()
	if err != nil {
		return nil, err
	}
	if x.shared == nil {
		x.shared = map[string]any{}
	}
	x.shared[name] = v
	return v, nil
}

// Counts says how to count the packets of the datapath's tunnel in this namespace where that is not a device. It must
// work from any thread.
func (e *Env) Counts(f func() (rx, tx uint64, err error)) {
	x := &e.namespaces.extras
	if x.counts == nil {
		x.counts = map[string]func() (rx, tx uint64, err error){}
	}
	x.counts[e.current] = f
}

// Enter has all commands of the site run in a group, which stays the caller's to close.
func (e *Env) Enter(g Group) { e.namespaces.group = g }

// attributes are how the commands of a site start.
func (x *extras) attributes(flags uintptr) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Cloneflags: flags}
	if x.group != nil {
		x.group.Place(attr)
	}
	return attr
}

// control is the Control of the dialers of a site; none where no group is needed.
func (x *extras) control() func(network, address string, conn syscall.RawConn) error {
	if x.group == nil {
		return nil
	}
	return x.group.Control
}
