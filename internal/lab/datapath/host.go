//go:build linux

package datapath

import (
	"github.com/knotmeter/knotmeter/internal/lab"
	"github.com/knotmeter/knotmeter/internal/result"
)

// A host is the datapath without a pod network: traffic goes from node to node over the underlay. It is the reference
// for all others.
type host struct{ title }

func (host) Plan(t lab.Topology) (lab.Plan, error) {
	p := underlay(t)
	p.PodMTU = t.MTU
	return p, nil
}

func (host) Carries(_ lab.Topology, path result.Path) error {
	if path != result.NodeNode {
		return result.NotSupported("lab:host has no pods, only node-node")
	}
	return nil
}

func (host) Wire(result.Path) lab.Wire { return lab.Wire{} }
