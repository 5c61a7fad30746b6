//go:build linux

// Package hostdevice is pods that own a port of the underlay's switch, the nearest to SR-IOV without the hardware: the
// node takes no part in what its pods send, and even pods of one node meet in the switch.
package hostdevice

import (
	"github.com/knotmeter/knotmeter/internal/lab"
	"github.com/knotmeter/knotmeter/internal/lab/datapath"
)

// New returns the datapath.
func New() lab.Datapath {
	return datapath.Direct{Label: "host-device", Users: "the nearest to SR-IOV without the hardware"}
}
