//go:build linux

// Package ipvlan is pods on the underlay by ipvlan devices in layer 2 mode on top of their node's uplink, whose hardware
// address they share.
package ipvlan

import (
	"github.com/knotmeter/knotmeter/internal/lab"
	"github.com/knotmeter/knotmeter/internal/lab/datapath"
)

// New returns the datapath.
func New() lab.Datapath {
	return datapath.Direct{Label: "ipvlan", Users: "ipvlan, Cilium's former mode", Kind: "ipvlan"}
}
