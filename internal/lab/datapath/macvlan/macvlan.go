//go:build linux

// Package macvlan is pods on the underlay by macvlan devices in bridge mode on top of their node's uplink.
package macvlan

import (
	"github.com/knotmeter/knotmeter/internal/lab"
	"github.com/knotmeter/knotmeter/internal/lab/datapath"
)

// New returns the datapath.
func New() lab.Datapath {
	return datapath.Direct{Label: "macvlan", Users: "Macvlan standalone", Kind: "macvlan"}
}
