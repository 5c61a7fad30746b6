//go:build linux

// Package bridge is pods on a bridge in their node, and routes between the nodes.
package bridge

import (
	"github.com/knotmeter/knotmeter/internal/lab"
	"github.com/knotmeter/knotmeter/internal/lab/datapath"
)

// New returns the datapath.
func New() lab.Datapath {
	return datapath.Routed{Label: "bridge", Users: "bridge CNI, flannel's pod side", Bridge: true}
}
