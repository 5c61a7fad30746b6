//go:build linux

package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/knotmeter/knotmeter/internal/lab/netns"
	"github.com/knotmeter/knotmeter/internal/targets"
)

// goneTimeout is how long the kernel may take to remove a site. It takes some ten milliseconds.
const goneTimeout = 20 * time.Second

// A site is a plan that has been applied and checked.
type site struct {
	namespaces *namespaces
	canary     *canary
	// background is what of the check ends in its own time.
	background sync.WaitGroup
}

// Ends are the two hosts of a placement, and what the client dials.
type Ends struct {
	Client     Host           `json:"client,omitzero"`
	Server     Host           `json:"server,omitzero"`
	Dial       netip.AddrPort `json:"dial,omitzero"`
	Listen     netip.AddrPort `json:"listen,omitzero"`
	ClientNode int            `json:"-"`
	ServerNode int            `json:"-"`
}

// EndsOf says which hosts a placement uses. Client and server are on the node that the rotation picks, or the server on
// the next one; the server of a Service is a pod.
func EndsOf(t Topology, p targets.Placement) Ends {
	a := ((p.Rotation%t.Nodes)+t.Nodes)%t.Nodes + 1
	b := a
	if p.Path.Other() {
		b = a%t.Nodes + 1
	}
	e := Ends{ClientNode: a, ServerNode: b}
	e.Client = Host{Node(a), NodeAddr(a).Of(t.IPv6)}
	if p.Path.ClientPod() {
		e.Client = Host{Pod(a, 1), PodAddr(a, 1).Of(t.IPv6)}
	}
	m := 1
	if a == b {
		m = 2
	}
	e.Server = Host{Node(b), NodeAddr(b).Of(t.IPv6)}
	if p.Path.ServerPod() {
		e.Server = Host{Pod(b, m), PodAddr(b, m).Of(t.IPv6)}
	}
	e.Listen = netip.AddrPortFrom(e.Server.Addr, ServicePort)
	e.Dial = e.Listen
	if p.Path.Service() {
		e.Dial = netip.AddrPortFrom(ServiceAddr(b, m).Of(t.IPv6), ServicePort)
	}
	return e
}

// openSite plans, applies and checks. An error is about the whole site, of which nothing is left then.
func openSite(kit Kit, id int, r request) (*site, *SiteInfo, error) {
	datapath, err := kit.Datapath(r.Datapath)
	if err != nil {
		return nil, nil, err
	}
	plan, err := kit.Plan(r.Datapath, r.Topology)
	if err != nil {
		return nil, nil, err
	}
	s, err := build(plan, id)
	if err != nil {
		return nil, nil, err
	}
	places, err := s.places(datapath, plan, r)
	s.namespaces.quiesce()
	if err != nil {
		return nil, nil, errors.Join(err, s.close())
	}
	return s, &SiteInfo{ID: id, Places: places}, nil
}

// places checks the placements of a request, one after the other, when the devices carry packets.
func (s *site) places(datapath Datapath, plan Plan, r request) ([]PlaceInfo, error) {
	if err := s.namespaces.settle(); err != nil {
		return nil, err
	}
	capture, err := s.capture()
	if err != nil {
		return nil, err
	}
	defer s.background.Go(capture.close)
	places := make([]PlaceInfo, len(r.Placements))
	for _, i := range checkOrder(datapath, r.Placements) {
		p := r.Placements[i]
		if err := datapath.Carries(r.Topology, p.Path); err != nil {
			places[i].Failure = failureOf(err)
			continue
		}
		c := newChecker(s, capture, EndsOf(r.Topology, p), datapath.Wire(p.Path), plan)
		if places[i], err = c.check(); err != nil {
			places[i] = PlaceInfo{Failure: failureOf(fmt.Errorf("%s %s: datapath check: %w", r.Datapath, p.Path, err))}
		}
	}
	return places, nil
}

// checkOrder is the order in which placements are checked, as indexes of them: what must stay within its node before
// anything has been on the underlay, and what must not use the tunnel before anything has been in it, since a tunnel
// that has been used may have something to say of its own accord.
func checkOrder(d Datapath, placements []targets.Placement) []int {
	rank := func(i int) int {
		switch w := d.Wire(placements[i].Path); {
		case w.Quiet:
			return 0
		case w.Device == "":
			return 1
		}
		return 2
	}
	order := make([]int, len(placements))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(rank(a), rank(b)) })
	return order
}

// settleTimeout is how long devices may take to carry packets. They take some milliseconds.
const settleTimeout = 2 * time.Second

// settle waits until every device carries packets. The kernel activates a device some time after it was set up, and
// drops until then; the first to be dropped is the question for a hardware address, which is asked again only a second
// later. A device that never does is left to the datapath check.
func (n *namespaces) settle() error {
	deadline := time.Now().Add(settleTimeout)
	for _, name := range n.names {
		for {
			ready, err := n.spaces[name].netlink.Ready()
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			if ready || time.Now().After(deadline) {
				break
			}
			time.Sleep(200 * time.Microsecond)
		}
	}
	return nil
}

// build applies a plan, with a canary in it.
func build(plan Plan, id int) (*site, error) {
	n, err := apply(plan)
	if err != nil {
		return nil, err
	}
	c, err := newCanary(fmt.Sprintf("canary%d", id), n.spaces[n.names[len(n.names)-1]].ns)
	if err != nil {
		return nil, errors.Join(err, n.close())
	}
	return &site{namespaces: n, canary: c}, nil
}

// close lets the site go; gone waits for its end.
func (s *site) close() error {
	s.background.Wait()
	return s.namespaces.close()
}

func (s *site) gone(ctx context.Context) error { return s.canary.gone(ctx) }

// A canary is a veth from the holder's own namespace into the namespace of a site that is let go last. The kernel
// removes namespaces in that order, a batch at a time and in its own time; when it removes that one, this end goes too.
type canary struct{ name string }

func newCanary(name string, into *netns.NS) (*canary, error) {
	err := netns.With(func(conn *netns.Conn) error {
		return conn.AddVeth(netns.Link{Name: name}, netns.Link{Name: name, NS: into.Fd()})
	})
	if err != nil {
		return nil, fmt.Errorf("make the canary of a site: %w", err)
	}
	return &canary{name}, nil
}

// gone waits until the canary is gone.
func (c *canary) gone(ctx context.Context) error {
	return netns.With(func(conn *netns.Conn) error {
		for {
			there, err := conn.Exists(c.name)
			if err != nil {
				return fmt.Errorf("look for the canary of a site: %w", err)
			}
			if !there {
				return nil
			}
			select {
			case <-ctx.Done():
				return errors.New("the kernel has not removed the site's namespaces: something still holds one of them")
			case <-time.After(time.Millisecond):
			}
		}
	})
}
