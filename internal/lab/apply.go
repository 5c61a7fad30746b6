//go:build linux

package lab

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/knotmeter/knotmeter/internal/lab/netns"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
)

// namespaces are those of a plan that has been applied, and what came with them.
type namespaces struct {
	names   []string
	spaces  map[string]*namespace
	facts   []result.Fact
	onClose []func() error
	shared  map[string]any                               // by the name that ops give it
	counts  map[string]func() (rx, tx uint64, err error) // of the tunnel, by namespace
	group   Group                                        // of the site's processes; nil: none
}

func newNamespaces() *namespaces {
	return &namespaces{spaces: map[string]*namespace{}, shared: map[string]any{},
		counts: map[string]func() (rx, tx uint64, err error){}}
}

// apply does the steps of a plan, in order. After an error nothing is left.
func apply(p Plan) (*namespaces, error) {
	n := newNamespaces()
	err := netns.Each(func(s *netns.Switcher) error {
		for _, name := range p.Namespaces {
			if err := n.add(s, name); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		for _, step := range p.Steps {
			if err := n.do(s, step); err != nil {
				return fmt.Errorf("%s: %s: %w", step.Namespace, step.Op, err)
			}
		}
		return nil
	})
	if err != nil {
		return nil, errors.Join(err, n.close())
	}
	return n, nil
}

func (n *namespaces) add(s *netns.Switcher, name string) error {
	ns, err := s.New()
	if err != nil {
		return err
	}
	conn, err := netns.OpenConn()
	if err != nil {
		return errors.Join(err, ns.Close())
	}
	n.names = append(n.names, name)
	n.spaces[name] = &namespace{ns, conn}
	return nil
}

func (n *namespaces) do(s *netns.Switcher, step Step) error {
	space, ok := n.spaces[step.Namespace]
	if !ok {
		return errors.New("the plan has no such namespace")
	}
	if err := s.Enter(space.ns); err != nil {
		return err
	}
	return step.Op.Apply(&Env{n, step.Namespace})
}

// quiesce closes the sockets that served to build and check. The kernel lets a namespace go only some time after the
// last of its sockets, and nothing must be left to wait for when a site is closed.
func (n *namespaces) quiesce() {
	for _, name := range n.names {
		if s := n.spaces[name]; s.netlink != nil {
			s.netlink.Close()
			s.netlink = nil
		}
	}
}

// hangUp ends the connections that killed processes have left.
func (n *namespaces) hangUp() error {
	return netns.Each(func(s *netns.Switcher) error {
		for _, name := range n.names {
			if err := s.Enter(n.spaces[name].ns); err != nil {
				return err
			}
			if err := netns.HangUp(); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		return nil
	})
}

// close lets all of it go; the kernel removes it in its own time.
func (n *namespaces) close() error {
	// Connections cannot count on ending by themselves: a link may lose their last words, and what ends now may be what
	// carries them.
	errs := []error{n.hangUp()}
	for _, f := range slices.Backward(n.onClose) {
		errs = append(errs, f())
	}
	n.quiesce()
	spaces := make([]*netns.NS, 0, len(n.names))
	for _, name := range n.names {
		spaces = append(spaces, n.spaces[name].ns)
	}
	return errors.Join(append(errs, netns.CloseAll(spaces))...)
}

// features remembers what the kernel was found to have (nil) or not to have. It is safe for concurrent use.
type features struct {
	mu    sync.Mutex
	known map[string]error
}

// probe tries what a plan needs of the kernel for a path, each feature once and in a scratch namespace. A "no" wins
// over "could not tell", which is not remembered.
func (f *features) probe(p Plan, path targets.Path) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var doubts []error
	for _, op := range p.probers(path) {
		err, known := f.known[op.Feature()]
		if !known {
			err = try(op.Probe)
		}
		switch no := errors.Is(err, result.ErrNotSupported); {
		case err == nil, no:
			f.known[op.Feature()] = err
			if no {
				return err
			}
		default:
			doubts = append(doubts, fmt.Errorf("could not tell whether this kernel has %s: %w", op.Feature(), err))
		}
	}
	return errors.Join(doubts...)
}

// find tries features.
func find(features []Feature) []Finding {
	var all []Finding
	for _, f := range features {
		all = append(all, f.finding(try(f.Try)))
	}
	return all
}

// try runs f in a scratch namespace.
func try(f func(e *Env) error) error {
	n := newNamespaces()
	err := netns.Each(func(s *netns.Switcher) error {
		if err := n.add(s, scratch); err != nil {
			return err
		}
		return f(&Env{n, scratch})
	})
	return errors.Join(err, n.close())
}
