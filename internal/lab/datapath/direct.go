//go:build linux

package datapath

import (
	"fmt"

	"github.com/knotmeter/knotmeter/internal/lab"
	"github.com/knotmeter/knotmeter/internal/lab/netns"
	"github.com/knotmeter/knotmeter/internal/result"
)

// A direct is a datapath whose pods are on the underlay themselves, next to the nodes.
type direct struct {
	title
	// macvlan: the pods' devices are on top of their node's uplink; false: ports of the underlay's switch.
	macvlan bool
}

// Carries returns an error for what such pods cannot reach: their own node, if they are on top of its uplink, and
// Services that only their node translates.
func (d direct) Carries(t lab.Topology, path result.Path) error {
	switch {
	case d.macvlan && (path == result.PodNodeSame || path == result.NodeSvcSame):
		return result.NotSupported("macvlan devices and the node whose uplink it is on cannot reach each other")
	case path.Service() && path.ClientPod() && t.Services == "nftables":
		return result.NotSupported(fmt.Sprintf("the packets of %s pods do not pass their node, "+
			"where services=nftables are translated; services=ebpf can", d.name))
	}
	return nil
}

// Wire returns bare packets. Paths between pods that are ports of the switch are visible even within a node.
func (d direct) Wire(path result.Path) lab.Wire {
	if !path.Other() && d.macvlan {
		return lab.Wire{Quiet: true}
	}
	return lab.Wire{PodMAC: true}
}

// Plan plans the underlay with the pods on it.
func (d direct) Plan(t lab.Topology) (lab.Plan, error) {
	p := underlay(t)
	p.PodMTU = t.MTU
	for n := range t.EachNode() {
		for i, pods := range lab.PodsNet().All() {
			p.Add(lab.Node(n), lab.Route(netns.Route{Dst: pods, Dev: lab.Uplink, Src: lab.NodeAddr(n).All()[i]}))
		}
		for m := 1; m <= lab.PodsPerNode; m++ {
			d.addPod(&p, t, n, m)
		}
	}
	return p, nil
}

func (d direct) addPod(p *lab.Plan, t lab.Topology, n, m int) {
	pod := lab.Pod(n, m)
	p.Namespace(pod)
	quietNamespace(p, pod)
	if !d.macvlan {
		port := fmt.Sprintf("node%d-pod%d", n, m)
		addPort(p, t, pod, lab.PodMAC(n, m), port)
	} else {
		// Linux 6.1 refuses a name that the parent's namespace has, too.
		const made = "slave0"
		p.Add(lab.Node(n), lab.Macvlan(netns.Link{Name: made, MTU: t.MTU, MAC: lab.PodMAC(n, m)}, pod, lab.Uplink))
		p.Add(pod, lab.Rename(made, lab.Uplink), lab.Up("lo", lab.Uplink))
	}
	addAddresses(p, pod, lab.Uplink, 16*n+10+m, lab.PodAddr(n, m).Prefix(16, 48))
	for _, nodes := range lab.NodeNet().All() {
		p.Add(pod, lab.Route(netns.Route{Dst: nodes, Dev: lab.Uplink}))
	}
}
