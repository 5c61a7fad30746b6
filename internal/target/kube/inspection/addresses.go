package inspection

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// multusStatus is the annotation by which Multus answers.
const multusStatus = "k8s.v1.cni.cncf.io/network-status"

// attached are the addresses that a pod has in the network that it asked Multus for.
func attached(p *corev1.Pod, network string) ([]netip.Addr, error) {
	text := p.Annotations[multusStatus]
	if text == "" {
		return nil, fmt.Errorf("pod %s was not attached to %s: nothing in the cluster has answered; is Multus installed? "+
			"Install it, or leave network= out", p.Name, network)
	}
	var status []struct {
		Name string   `json:"name"`
		IPs  []string `json:"ips"`
	}
	if err := json.Unmarshal([]byte(text), &status); err != nil {
		return nil, fmt.Errorf("pod %s: annotation %s: %w", p.Name, multusStatus, err)
	}
	wanted := network
	if !strings.Contains(network, "/") {
		wanted = p.Namespace + "/" + network
	}
	var list []netip.Addr
	for _, s := range status {
		if s.Name != wanted && s.Name != network {
			continue
		}
		for _, ip := range s.IPs {
			if a, err := netip.ParseAddr(ip); err == nil {
				list = append(list, a)
			}
		}
	}
	return list, nil
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

// ByNetwork says that traffic from a pod came by a network that it asked Multus for, from the address that the other
// end saw it have: a pod may reach an address there by its default network, too.
func ByNetwork(p *corev1.Pod, network string, seen netip.Addr) error {
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
