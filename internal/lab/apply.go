//go:build linux

package lab

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/knotmeter/knotmeter/internal/lab/netns"
	"github.com/knotmeter/knotmeter/internal/result"
)

// A namespaces holds the network namespaces of an applied plan, and what belongs to them.
type namespaces struct {
	names   []string
	spaces  map[string]*namespace
	facts   []result.Fact
	onClose []func() error
	shared  map[string]any                               // values that ops share, by name
	counts  map[string]func() (rx, tx uint64, err error) // packet counters of tunnels without a device, by namespace
	group   Group                                        // control group of the site's processes; nil: none
}

func newNamespaces() *namespaces {
	return &namespaces{spaces: map[string]*namespace{}, shared: map[string]any{},
		counts: map[string]func() (rx, tx uint64, err error){}}
}

// apply carries out the steps of a plan in order. After an error nothing remains.
func apply(p Plan) (*namespaces, error) {
	n := newNamespaces()
	err := netns.WithSwitcher(func(s *netns.Switcher) error {
		for _, name := range p.Namespaces {
			if err := n.addNamespace(s, name); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		for _, step := range p.Steps {
			if err := n.applyStep(s, step); err != nil {
				return fmt.Errorf("%s: %s: %w", step.Namespace, step.Text, err)
			}
		}
		return nil
	})
	if err != nil {
		return nil, errors.Join(err, n.close())
	}
	return n, nil
}

func (n *namespaces) addNamespace(s *netns.Switcher, name string) error {
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

func (n *namespaces) applyStep(s *netns.Switcher, step Step) error {
	space, ok := n.spaces[step.Namespace]
	if !ok {
		return errors.New("the plan has no such namespace")
	}
	if err := s.Enter(space.ns); err != nil {
		return err
	}
	return step.Apply(&Env{n, step.Namespace})
}

// closeNetlink closes the sockets that were used to build and check the site. The kernel releases a namespace only some
// time after its last socket, and closing a site must not wait for that.
func (n *namespaces) closeNetlink() {
	for _, name := range n.names {
		if s := n.spaces[name]; s.netlink != nil {
			s.netlink.Close()
			s.netlink = nil
		}
	}
}

// abortConnections aborts the connections that killed processes have left.
func (n *namespaces) abortConnections() error {
	return netns.WithSwitcher(func(s *netns.Switcher) error {
		for _, name := range n.names {
			if err := s.Enter(n.spaces[name].ns); err != nil {
				return err
			}
			if err := netns.AbortConnections(); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		return nil
	})
}

// close releases all namespaces and what belongs to them; the kernel removes them later.
func (n *namespaces) close() error {
	// Connections may not end by themselves: a link may lose their last segments, or be removed before them.
	errs := []error{n.abortConnections()}
	for _, f := range slices.Backward(n.onClose) {
		errs = append(errs, f())
	}
	n.closeNetlink()
	spaces := make([]*netns.NS, 0, len(n.names))
	for _, name := range n.names {
		spaces = append(spaces, n.spaces[name].ns)
	}
	return errors.Join(append(errs, netns.CloseAll(spaces))...)
}

// features remembers which features the kernel has (nil) or lacks (the error of Probe). It is safe for concurrent use.
type features struct {
	mu    sync.Mutex
	known map[string]error
}

// probe checks the features that a plan needs for a path, each once and in a scratch namespace. A missing feature takes
// precedence over one that could not be checked. The latter is not remembered.
func (f *features) probe(p Plan, path result.Path) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var doubts []error
	for _, op := range p.probes(path) {
		err, known := f.known[op.Feature]
		if !known {
			err = tryInScratch(op.Probe)
		}
		switch missing := errors.Is(err, result.ErrNotSupported); {
		case err == nil, missing:
			f.known[op.Feature] = err
			if missing {
				return err
			}
		default:
			doubts = append(doubts, fmt.Errorf("could not tell whether this kernel has %s: %w", op.Feature, err))
		}
	}
	return errors.Join(doubts...)
}

// tryFeatures tries features and returns a finding for each.
func tryFeatures(features []Feature) []Finding {
	var all []Finding
	for _, f := range features {
		all = append(all, f.finding(tryInScratch(f.Try)))
	}
	return all
}

// tryInScratch runs f in a scratch namespace.
func tryInScratch(f func(e *Env) error) error {
	n := newNamespaces()
	err := netns.WithSwitcher(func(s *netns.Switcher) error {
		if err := n.addNamespace(s, scratch); err != nil {
			return err
		}
		return f(&Env{n, scratch})
	})
	return errors.Join(err, n.close())
}
