package kube

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// The annotations by which Multus is asked for another network, and answers.
const (
	multusRequest = "k8s.v1.cni.cncf.io/networks"
	multusStatus  = "k8s.v1.cni.cncf.io/network-status"
)

// attachedAddress is the address that a pod has in the network that it asked Multus for.
func attachedAddress(p *corev1.Pod, network string, family corev1.IPFamily) (netip.Addr, error) {
	text := p.Annotations[multusStatus]
	if text == "" {
		return netip.Addr{}, fmt.Errorf("pod %s was not attached to %s: nothing in the cluster has answered; is Multus installed? Install it, or leave network= out", p.Name, network)
	}
	var status []struct {
		Name string   `json:"name"`
		IPs  []string `json:"ips"`
	}
	if err := json.Unmarshal([]byte(text), &status); err != nil {
		return netip.Addr{}, fmt.Errorf("pod %s: annotation %s: %w", p.Name, multusStatus, err)
	}
	wanted := network
	if !strings.Contains(network, "/") {
		wanted = p.Namespace + "/" + network
	}
	for _, s := range status {
		if s.Name != wanted && s.Name != network {
			continue
		}
		for _, ip := range s.IPs {
			if a, err := netip.ParseAddr(ip); err == nil && isFamily(a, family) {
				return a, nil
			}
		}
	}
	return netip.Addr{}, fmt.Errorf("pod %s has no address in the network %s; its NetworkAttachmentDefinition needs an IPAM plugin, and one for the family of ip= if that is given", p.Name, network)
}

// podAddress is a pod's own address of a family; of the first one without a family.
func podAddress(p *corev1.Pod, family corev1.IPFamily) (netip.Addr, error) {
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
