package inspection

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/knotmeter/knotmeter/internal/preflight"
	"github.com/knotmeter/knotmeter/internal/result"
)

// multusStatus is the annotation by which Multus answers.
const multusStatus = "k8s.v1.cni.cncf.io/network-status"

// An attachment is a device of a pod, or more, by which Multus brought the pod to a network.
type attachment struct {
	Name    string   `json:"name"`
	IPs     []string `json:"ips"`
	Default bool     `json:"default"` // it is the pod's default network
}

// attachmentsOf are those that Multus answers a pod's request for a network with, by an option.
func attachmentsOf(p *corev1.Pod, network, option string) (list []attachment, err error) {
	text := p.Annotations[multusStatus]
	if text == "" {
		return nil, fmt.Errorf("pod %s was not attached to %s: nothing in the cluster has answered; is Multus installed? "+
			"Install it, or leave %s= out", p.Name, network, option)
	}
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return nil, fmt.Errorf("pod %s: annotation %s: %w", p.Name, multusStatus, err)
	}
	return list, nil
}

func (a attachment) addresses() (list []netip.Addr) {
	for _, ip := range a.IPs {
		if address, err := netip.ParseAddr(ip); err == nil {
			list = append(list, address)
		}
	}
	return list
}

// attached are the addresses that a pod has in the network that it asked Multus for.
func attached(p *corev1.Pod, network string) ([]netip.Addr, error) {
	all, err := attachmentsOf(p, network, "network")
	wanted := network
	if !strings.Contains(network, "/") {
		wanted = p.Namespace + "/" + network
	}
	var list []netip.Addr
	for _, a := range all {
		if a.Name == wanted || a.Name == network {
			list = append(list, a.addresses()...)
		}
	}
	return list, err
}

// inDefault are the addresses of a pod in the network that it asked Multus for in place of the default one.
func inDefault(p *corev1.Pod, network string) ([]netip.Addr, error) {
	all, err := attachmentsOf(p, network, "default-network")
	if err != nil {
		return nil, err
	}
	var list []netip.Addr
	is, other := false, result.Unknown
	for _, a := range all {
		switch {
		case a.Name == network: // a plugin that adds devices of its own has one for each
			list, is = append(list, a.addresses()...), is || a.Default
		case a.Default:
			other = a.Name
		}
	}
	if !is {
		return nil, fmt.Errorf("the default network of pod %s is %s, not %s; the cluster's Multus does not follow the "+
			"annotation v1.multus-cni.io/default-network; leave default-network= out", p.Name, other, network)
	}
	return list, nil
}

// CheckDefaultNetwork checks that a pod's own addresses are those that it has in the network that it asked Multus for in place
// of the default one; empty if it asked for none.
func CheckDefaultNetwork(p *corev1.Pod, network string) error {
	if network == "" {
		return nil
	}
	all, err := inDefault(p, network)
	if err != nil {
		return err
	}
	for _, ip := range p.Status.PodIPs {
		if a, err := netip.ParseAddr(ip.IP); err != nil || !slices.Contains(all, a) {
			return fmt.Errorf("pod %s has the address %s, and in its default network %s it has %s; something in the "+
				"cluster changes pods", p.Name, ip.IP, network, addresses(all))
		}
	}
	return nil
}

// CheckDefaultRoute checks that traffic from a pod leaves by the network it has in place of the default one: the server may
// see another address, so what counts is the device that the connection has its own address on.
func CheckDefaultRoute(p *corev1.Pod, network string, client preflight.Report) error {
	all, err := inDefault(p, network)
	if err != nil {
		return err
	}
	var own []netip.Addr
	for _, i := range client.Interfaces {
		if i.Name == client.Device.Name {
			own = i.Addresses
		}
	}
	if slices.ContainsFunc(own, func(a netip.Addr) bool { return slices.Contains(all, a.Unmap()) }) {
		return nil
	}
	return fmt.Errorf("the traffic does not take the default network %s: it leaves pod %s by its device %s with %s, and "+
		"the network has %s there; the routes of the NetworkAttachmentDefinition lead another way", network, p.Name,
		client.Device.Name, addresses(own), addresses(all))
}

// AttachedAddress is the address of a family that a pod has in that network; of the first one without a family.
func AttachedAddress(p *corev1.Pod, network string, family corev1.IPFamily) (netip.Addr, error) {
	all, err := attached(p, network)
	if err != nil {
		return netip.Addr{}, err
	}
	for _, a := range all {
		if isFamily(a, family) {
			return a, nil
		}
	}
	return netip.Addr{}, fmt.Errorf("pod %s has no address in the network %s; its NetworkAttachmentDefinition needs an "+
		"IPAM plugin, and one for the family of ip= if that is given", p.Name, network)
}

// CheckNetworkRoute says that traffic from a pod came by a network that it asked Multus for, from the address that the other
// end saw it have: a pod may reach an address there by its default network, too.
func CheckNetworkRoute(p *corev1.Pod, network string, seen netip.Addr) error {
	all, err := attached(p, network)
	if err != nil || slices.Contains(all, seen.Unmap()) {
		return err
	}
	return fmt.Errorf("the traffic does not take the network %s: the server saw it come from %s, and pod %s has %s "+
		"there; the routes of the NetworkAttachmentDefinition lead another way", network, seen.Unmap(), p.Name,
		addresses(all))
}

func addresses(all []netip.Addr) string {
	var names []string
	for _, a := range all {
		names = append(names, a.String())
	}
	return List(names)
}

// PodAddress is a pod's own address of a family; of the first one without a family.
func PodAddress(p *corev1.Pod, family corev1.IPFamily) (netip.Addr, error) {
	for _, ip := range p.Status.PodIPs {
		if a, err := netip.ParseAddr(ip.IP); err == nil && isFamily(a, family) {
			return a, nil
		}
	}
	if a, err := netip.ParseAddr(p.Status.PodIP); err == nil && isFamily(a, family) {
		return a, nil
	}
	return netip.Addr{}, fmt.Errorf("pod %s has no %s address", p.Name, family)
}

func isFamily(a netip.Addr, family corev1.IPFamily) bool {
	return family == "" || a.Is4() == (family == corev1.IPv4Protocol)
}
