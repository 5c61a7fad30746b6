//go:build linux

package lab

import (
	"fmt"

	"github.com/knotmeter/knotmeter/internal/lab/netns"
	"github.com/knotmeter/knotmeter/internal/lab/nl"
	"github.com/knotmeter/knotmeter/internal/result"
)

// A namespace is one of a site's, with a socket that stays in it.
type namespace struct {
	ns      *netns.NS
	netlink *nl.Conn
}

// An Env is what an Op works in: one namespace of a site that is being built.
type Env struct {
	namespaces *namespaces
	current    string
}

// Namespace is the name of the namespace that the op is in.
func (e *Env) Namespace() string { return e.current }

// Netlink is the namespace's rtnetlink socket. It is valid until Apply returns, and not in what OnClose is given.
func (e *Env) Netlink() *nl.Conn { return e.namespaces.spaces[e.current].netlink }

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
	for _, known := range e.namespaces.facts {
		if known == f {
			return
		}
	}
	e.namespaces.facts = append(e.namespaces.facts, f)
}

// OnClose has f called before the site's namespaces are let go, the last one first. Whatever else holds a
// namespace, such as a goroutine with a device or a process, must be ended by it.
func (e *Env) OnClose(f func() error) { e.namespaces.onClose = append(e.namespaces.onClose, f) }
