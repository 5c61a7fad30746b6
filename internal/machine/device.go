package machine

import (
	"net"
	"net/netip"
	"slices"

	"github.com/knotmeter/knotmeter/internal/result"
)

// An Interface is a network device of this namespace, with its addresses.
type Interface struct {
	Name      string       `json:"name"`
	MTU       int          `json:"mtu"`
	Addresses []netip.Addr `json:"addresses,omitempty"`
}

// A VolumeState describes a directory or a block device that is to be measured.
type VolumeState struct {
	Facts  []result.Fact `json:"facts"` // from Volume
	Device bool          `json:"device,omitempty"`
	// Mounted reports whether a directory is on a different file system from the place's root directory.
	Mounted bool  `json:"mounted,omitempty"`
	Size    int64 `json:"size,omitempty"` // bytes
	Free    int64 `json:"free,omitempty"` // bytes available to this user
	// Content is the result of the function [Content]; nil if the content was not read.
	Content []string `json:"content"`
	Error   string   `json:"error,omitempty"` // why it cannot be measured; empty: it can
	// Denied reports that the reason in Error is that this user may not open the device.
	Denied bool `json:"denied,omitempty"`
}

// A Device describes a network device. Fields that the kernel does not report are result.Unknown.
type Device struct {
	Name     string `json:"name"`
	Offloads string `json:"offloads"` // those that are enabled: "tso gso gro", or "none"
	Qdisc    string `json:"qdisc"`    // "fq_codel"; with several queues "mq (fq_codel)"
	Driver   string `json:"driver"`   // "virtio_net"
	Speed    string `json:"speed"`    // "10000 Mbit/s"; few virtual devices have one
}

// unknownDevice returns a device of which only the name is known.
func unknownDevice(name string) Device {
	const unknown = result.Unknown
	return Device{Name: name, Offloads: unknown, Qdisc: unknown, Driver: unknown, Speed: unknown}
}

// Offloads lists the enabled offloads of the device with a local address: "tso gso gro", or "none".
func Offloads(local netip.Addr) string {
	return InspectDevice(DeviceOf(Interfaces(), local.Unmap())).Offloads
}

// DeviceOf returns the name of the device with an address, or "".
func DeviceOf(interfaces []Interface, a netip.Addr) string {
	for _, i := range interfaces {
		if slices.Contains(i.Addresses, a) {
			return i.Name
		}
	}
	return ""
}

// Interfaces lists the network devices of this namespace.
func Interfaces() []Interface {
	found, _ := net.Interfaces()
	list := []Interface{}
	for _, i := range found {
		item := Interface{Name: i.Name, MTU: i.MTU}
		addresses, _ := i.Addrs()
		for _, a := range addresses {
			if p, err := netip.ParsePrefix(a.String()); err == nil {
				item.Addresses = append(item.Addresses, p.Addr())
			}
		}
		list = append(list, item)
	}
	return list
}
