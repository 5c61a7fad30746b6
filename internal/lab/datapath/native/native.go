//go:build linux

// Package native is native routing: each pod has a veth to its node, and nodes route to the pods of other nodes over
// the underlay.
package native

import (
	"github.com/knotmeter/knotmeter/internal/lab"
	"github.com/knotmeter/knotmeter/internal/lab/datapath"
)

// New returns the datapath.
func New() lab.Datapath {
	return datapath.Routed{Label: "native", Users: "Cilium native routing, Calico underlay (BGP), flannel host-gw"}
}
