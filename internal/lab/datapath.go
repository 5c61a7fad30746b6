package lab

import (
	"fmt"
	"net/netip"

	"github.com/knotmeter/knotmeter/internal/prose"
	"github.com/knotmeter/knotmeter/internal/result"
)

// A Datapath carries packets from pod to pod. All its methods are pure.
type Datapath interface {
	// Name is the text after "lab:" in a target.
	Name() string
	// About names the products that use it, for the documentation and the facts.
	About() string
	// Plan plans the namespaces, the underlay, the pods and the routes between them, but not the Services.
	Plan(t Topology) (Plan, error)
	// Carries returns nil, or an error that Is result.ErrNotSupported with the reason why there is no such path.
	Carries(t Topology, p result.Path) error
	// Wire describes the packets of a path on the underlay. The datapath must carry the path.
	Wire(p result.Path) Wire
}

// A Cautioner is a Datapath about whose results every output has to say something.
type Cautioner interface {
	// Caution returns a sentence without full stop; empty: none.
	Caution() string
}

// ProxyFact is the fact of the proxies that carry a path's connections: none, or their kind with what they are.
const ProxyFact = "proxy"

// A Wire describes the packets of a path at the ports of the underlay's switch. The datapath check compares it with
// what it captures there.
type Wire struct {
	// Quiet: no packet may be seen, because the path stays within its node.
	Quiet bool
	// Layers are the headers between Ethernet and the path's own IP header, from the outside in, as dissect names them:
	// ipv4, udp:8472, vxlan:1, ethernet. None: the packets are bare. Layers6 are those of IPv6 traffic if they differ.
	Layers, Layers6 []string
	// Sealed: what is within Layers is encrypted, so that the path's own packets must not be readable.
	Sealed bool
	// Encapsulation and Encryption name what the datapath does with the path's packets, such as vxlan and wireguard;
	// empty: nothing. What is within an encryption cannot be captured.
	Encapsulation, Encryption string
	// Proxied: proxies carry the path's TCP connections, so that the server sees the address of a proxy, and nothing else.
	Proxied bool
	// PodMAC: a pod's packets have the pod's hardware address as their source; false: its node's.
	PodMAC bool
	// Device is the device in the nodes of both ends that must count the packets; empty: none.
	Device string
}

// Services translate the addresses of Kubernetes Services to those of their endpoints.
type Services struct {
	Name string // value of the option services=
	// Extend adds the translation to a datapath's plan. It is pure.
	Extend func(p *Plan, t Topology)
}

// A Layer carries packets from node to node: the underlay, or a tunnel on top of another layer.
type Layer struct {
	Device string // in every node
	MTU    int    // of the packets that it carries, bytes
	// Via returns the next hop to a node's pods. It is reachable through Device without another route. The zero Dual
	// means that none is needed.
	Via func(node int) Dual
	// Outer returns a node's address for tunnels on top of this layer.
	Outer func(node int) netip.Addr
	// Wire describes the packets on the underlay.
	Wire Wire
}

// A Tunnel is a layer on top of another one.
type Tunnel interface {
	// Over adds the tunnel's devices of every node to the plan, and returns the layer that they form on top of below.
	Over(p *Plan, t Topology, below Layer) (Layer, error)
}

// A Kit has everything that labs can be built from; package datapath has the kit of all datapaths.
type Kit struct {
	Datapaths []Datapath
	Services  []Services
	// Features are the kernel's features that the datapaths and Services use.
	Features []Feature
}

// Datapath returns the datapath with a name, or an error that lists the names.
func (k Kit) Datapath(name string) (Datapath, error) {
	return findByName(k.Datapaths, Datapath.Name, name, "there is no datapath %q; there are %s")
}

// findByName returns the item with a name. Otherwise the error is problem, formatted with the name and the names that
// exist.
func findByName[T any](list []T, nameOf func(T) string, name, problem string) (none T, err error) {
	var names []string
	for _, one := range list {
		if nameOf(one) == name {
			return one, nil
		}
		names = append(names, nameOf(one))
	}
	return none, fmt.Errorf(problem, name, prose.Choices(name, names))
}
