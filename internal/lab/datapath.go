package lab

import (
	"fmt"
	"net/netip"

	"github.com/knotmeter/knotmeter/internal/prose"
	"github.com/knotmeter/knotmeter/internal/targets"
)

// A Datapath is what carries a packet from pod to pod. All its methods are pure.
type Datapath interface {
	// Name is what follows "lab:".
	Name() string
	// About is who uses it, for the documentation and the facts.
	About() string
	// Plan builds the namespaces, the underlay, the pods and the ways between them; not the Services.
	Plan(t Topology) (Plan, error)
	// Carries is nil, or an error that Is result.ErrNotSupported and says why this datapath has no such path.
	Carries(t Topology, p targets.Path) error
	// Wire is what the packets of a path that it carries look like on the underlay.
	Wire(p targets.Path) Wire
}

// A Wire is what the packets of a path look like at the ports of the underlay's switch. The datapath check
// compares it with what is really there.
type Wire struct {
	// Quiet: nothing of the path may be seen there, because it stays within its node.
	Quiet bool
	// Layers are the headers around the path's own packets, from the outside in, between Ethernet and the path's own IP
	// header, in the words of dissect: ipv4, udp:8472, vxlan:1, ethernet. None means that the packets are bare. Layers6
	// are those of IPv6, if they are other ones.
	Layers, Layers6 []string
	// Sealed: what is within Layers is encrypted, so the path's own packets must be seen nowhere.
	Sealed bool
	// PodMAC: a pod's packets bear the pod's hardware address, else its node's.
	PodMAC bool
	// Device in the nodes of both ends whose counters must move, if any.
	Device string
}

// A Services is how the addresses of Services become those of their endpoints.
type Services interface {
	// Name is what the option services= takes.
	Name() string
	// Extend adds to a plan that a datapath has made. It is pure.
	Extend(p *Plan, t Topology)
}

// A Layer is what carries packets from node to node: the underlay, or a tunnel on top of another layer.
type Layer struct {
	Device string // in every node
	MTU    int    // bytes of what it carries
	// Via is the next hop to a node's pods, reached directly through Device; of the zero Dual, none is needed.
	Via func(node int) Dual
	// Outer is a node's address for tunnels on top of this layer.
	Outer func(node int) netip.Addr
	// Wire is what packets look like in the end.
	Wire Wire
}

// A Tunnel puts a layer on top of another one.
type Tunnel interface {
	// Over adds the tunnel of every node to the plan.
	Over(p *Plan, t Topology, below Layer) (Layer, error)
}

// A Kit is what labs can be built from; package datapath makes it.
type Kit struct {
	Datapaths []Datapath
	Services  []Services
	// Features of the kernel that all of them together make use of.
	Features []Feature
}

// Datapath finds a datapath by its name.
func (k Kit) Datapath(name string) (Datapath, error) {
	return named(k.Datapaths, name, "there is no datapath %q; there are %s")
}

// named finds one of a list; if there is none, the problem is told with the name and those that there are.
func named[T interface{ Name() string }](list []T, name, problem string) (none T, err error) {
	var names []string
	for _, one := range list {
		if one.Name() == name {
			return one, nil
		}
		names = append(names, one.Name())
	}
	return none, fmt.Errorf(problem, name, prose.Choices(name, names))
}
