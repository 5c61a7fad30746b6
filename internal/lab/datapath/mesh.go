//go:build linux

package datapath

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/knotmeter/knotmeter/internal/lab"
	"github.com/knotmeter/knotmeter/internal/lab/mesh"
	"github.com/knotmeter/knotmeter/internal/lab/netns"
	"github.com/knotmeter/knotmeter/internal/lab/nft"
	"github.com/knotmeter/knotmeter/internal/result"
)

const (
	// redirectPort is where a node's proxy gets the connections of its pods, as in Istio ambient.
	redirectPort = 15001
	// redirectMark is the mark of packets of these connections, and meshTable the routing table by which they reach the
	// proxy.
	redirectMark = 0x539
	meshTable    = 102
	// sharedAuthority is the name under which the ops of a site share what issues their identities.
	sharedAuthority = "mesh authority"
)

// A meshed is a routed datapath whose nodes have a proxy for the TCP connections from pods to pods, directly or by a
// Service, as in a mesh without sidecars. The proxy connects to a pod of its own node itself, and reaches those of
// another node by the proxy there, over mutual TLS. The network of the nodes is not in the mesh.
type meshed struct{ routed }

// Caution returns that the proxy is not a product's.
func (meshed) Caution() string {
	return "its proxies are a stand-in of our own for a mesh's: their cost is that of the pattern, not of a product"
}

// Wire returns mutual TLS within the routed datapath's headers for connections between pods of two nodes.
func (d meshed) Wire(path result.Path) lab.Wire {
	w := d.routed.Wire(path)
	if !path.ClientPod() || !path.ServerPod() {
		return w
	}
	w.Proxied = true
	if path.Other() {
		w.Layers = slices.Concat(w.Layers, []string{fmt.Sprintf("tcp:%d", lab.MeshPort), "tls"})
		w.Sealed, w.Encryption = true, "tls"
	}
	return w
}

// Plan plans the routed datapath, then the proxies, then the redirection to them.
func (d meshed) Plan(t lab.Topology) (lab.Plan, error) {
	p, err := d.routed.Plan(t)
	if err != nil {
		return lab.Plan{}, err
	}
	for n := range t.EachNode() {
		node := lab.Node(n)
		// A proxy makes a connection for each one of a pod, so its ports must be free again soon.
		p.Add(node, lab.Sysctl("net.ipv4.tcp_tw_reuse", "1"), startProxy(meshNode(t, n)))
		for _, ipv6 := range []bool{false, true} {
			everywhere := defaultPrefixes()[0]
			if ipv6 {
				everywhere = defaultPrefixes()[1]
			}
			p.Add(node, lab.Route(netns.Route{Dst: everywhere, Dev: "lo", Local: true, Table: meshTable}),
				lab.MarkRule(redirectMark, ipv6, meshTable))
		}
		p.Add(node, nft.TProxy{From: lab.PodNet(n), To: []lab.DualPrefix{lab.PodsNet(), lab.ServiceNet()},
			Port: redirectPort, Mark: redirectMark}.Op())
	}
	return p, nil
}

// meshNode returns what node n's proxy has to know. Pods' connections to Services reach the proxies as such, and the
// node that has the endpoint translates what its proxy sends to the Service. Proxies reach each other at the nodes'
// addresses towards their pods, so that their connections take the same way as pods' packets.
func meshNode(t lab.Topology, n int) mesh.Node {
	at := func(k int) netip.AddrPort { return netip.AddrPortFrom(lab.Gateway(k).V4, lab.MeshPort) }
	serves := func(k int) []netip.Prefix {
		networks := lab.PodNet(k).All()
		for m := 1; m <= lab.PodsPerNode; m++ {
			networks = append(networks, hostRoutes(lab.ServiceAddr(k, m)).All()...)
		}
		return networks
	}
	node := mesh.Node{Name: lab.Node(n), Listen: at(n), Redirect: redirectPort, Serves: serves(n)}
	for k := range t.Others(n) {
		node.Peers = append(node.Peers, mesh.Peer{Name: lab.Node(k), Proxy: at(k), Serves: serves(k)})
	}
	return node
}

// startProxy returns an op that starts a node's proxy, with an identity that only the site's authority has issued.
func startProxy(node mesh.Node) lab.Op {
	return lab.Op{Text: "proxy hbone " + node.String(), Apply: func(e *lab.Env) error {
		authority, err := lab.Shared(e, sharedAuthority, mesh.NewAuthority)
		if err != nil {
			return err
		}
		identity, err := authority.Issue(node.Name)
		if err != nil {
			return err
		}
		stop, err := mesh.StartHBONE(node, identity)
		if err != nil {
			return err
		}
		e.OnClose(stop)
		e.Fact(result.Fact{Name: lab.ProxyFact, Value: "hbone",
			Evidence: "stand-in in Go, not a product: HTTP/2 CONNECT (HBONE) in connections that are kept"})
		return nil
	}}
}
