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
	"github.com/knotmeter/knotmeter/internal/machine"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
)

// removalTimeout is how long the kernel may take to remove a site. Usually it takes tens of milliseconds.
const removalTimeout = 20 * time.Second

// A site is a plan that has been applied and checked.
type site struct {
	namespaces *namespaces
	// canary is the name of a veth between the holder's own namespace and the namespace of the site that is released
	// last. The kernel removes released namespaces later and in batches, but in order. The holder's end of the veth
	// disappears with the last namespace.
	canary string
	// background waits for the captures that close in the background.
	background sync.WaitGroup
}

// Ends are the two hosts of a placement, and the addresses that the client dials and the server listens on.
type Ends struct {
	Client     Host           `json:"client,omitzero"`
	Server     Host           `json:"server,omitzero"`
	Dial       netip.AddrPort `json:"dial,omitzero"`
	Listen     netip.AddrPort `json:"listen,omitzero"`
	ClientNode int            `json:"-"`
	ServerNode int            `json:"-"`
}

// EndsOf returns the hosts of a placement in a plan. The rotation selects the client's node; the server is on the same
// node or on the next one. The server of a Service is a pod.
func EndsOf(plan Plan, t Topology, p targets.Placement) Ends {
	a := ((p.Rotation%t.Nodes)+t.Nodes)%t.Nodes + 1
	b := a
	if p.Path.Other() {
		b = a%t.Nodes + 1
	}
	nodeAddr := plan.NodeAddr
	if p.Path == result.NodeNode {
		nodeAddr = NodeAddr
	}
	e := Ends{ClientNode: a, ServerNode: b}
	e.Client = Host{Node(a), nodeAddr(a).Of(t.IPv6)}
	if p.Path.ClientPod() {
		e.Client = Host{Pod(a, 1), PodAddr(a, 1).Of(t.IPv6)}
	}
	m := 1
	if a == b {
		m = 2
	}
	e.Server = Host{Node(b), nodeAddr(b).Of(t.IPv6)}
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

// openSite plans, applies and checks a site. After an error nothing of the site remains; errors of single places are in
// the SiteInfo.
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
	s.namespaces.closeNetlink()
	if err != nil {
		return nil, nil, errors.Join(err, s.close())
	}
	return s, &SiteInfo{ID: id, Places: places}, nil
}

// places checks the placements of a request one after another, once all devices carry packets.
func (s *site) places(datapath Datapath, plan Plan, r request) ([]PlaceInfo, error) {
	if err := s.namespaces.waitReady(); err != nil {
		return nil, err
	}
	// A frame that the underlay's switch sends was captured when it arrived.
	var capture *machine.Capture
	err := s.namespaces.spaces[Switch].ns.Do(func() (err error) {
		capture, err = machine.StartCapture(true)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("the underlay: %w", err)
	}
	defer s.background.Go(capture.Close)
	places := make([]PlaceInfo, len(r.Placements))
	for _, i := range checkOrder(datapath, r.Placements) {
		p := r.Placements[i]
		if err := datapath.Carries(r.Topology, p.Path); err != nil {
			places[i].Failure = failureOf(err)
			continue
		}
		c := newChecker(s, capture, EndsOf(plan, r.Topology, p), datapath.Wire(p.Path), plan)
		if places[i], err = c.check(); err != nil {
			places[i] = PlaceInfo{Failure: failureOf(fmt.Errorf("%s %s: datapath check: %w", r.Datapath, p.Path, err))}
		}
	}
	return places, nil
}

// checkOrder returns the indexes of the placements in the order in which they are checked: first paths that must stay
// within their node, then paths that must not use the tunnel. A tunnel that has been used may send packets of its own.
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

// readyTimeout is how long devices may take to carry packets. Usually they take milliseconds.
const readyTimeout = 2 * time.Second

// waitReady waits until every device carries packets, at most readyTimeout. The kernel activates a device some time
// after it was set up, and drops packets before that. The first packet is the address resolution, which is repeated
// only after a second. The datapath check reports devices that never become ready.
func (n *namespaces) waitReady() error {
	deadline := time.Now().Add(readyTimeout)
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

// build applies a plan and adds a canary.
func build(plan Plan, id int) (*site, error) {
	n, err := apply(plan)
	if err != nil {
		return nil, err
	}
	canary, last := fmt.Sprintf("canary%d", id), n.spaces[n.names[len(n.names)-1]].ns
	err = netns.With(func(conn *netns.Conn) error {
		return conn.AddVeth(netns.Link{Name: canary}, netns.Link{Name: canary, NS: last.Fd()})
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make the canary of a site: %w", err), n.close())
	}
	return &site{namespaces: n, canary: canary}, nil
}

// close releases the site; awaitRemoval waits until it is removed.
func (s *site) close() error {
	s.background.Wait()
	return s.namespaces.close()
}

// awaitRemoval waits until the canary has disappeared.
func (s *site) awaitRemoval(ctx context.Context) error {
	return netns.With(func(conn *netns.Conn) error {
		for {
			there, err := conn.Exists(s.canary)
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
