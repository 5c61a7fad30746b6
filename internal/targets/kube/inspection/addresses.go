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
	"github.com/knotmeter/knotmeter/internal/targets/kube/product"
)

// An attachment is an entry of Multus' annotation: one or more devices that connect a pod to a network.
type attachment struct {
	Name    string   `json:"name"`
	IPs     []string `json:"ips"`
	Default bool     `json:"default"` // the pod's default network
}

// attachmentsOf returns the attachments in a pod's Multus annotation. The error names network, and option, the target's
// option that asked for it.
func attachmentsOf(p *corev1.Pod, network, option string) (list []attachment, err error) {
	text := p.Annotations[product.MultusStatus]
	if text == "" {
		return nil, fmt.Errorf("pod %s was not attached to %s: nothing in the cluster has answered; is Multus installed? "+
			"Install it, or leave %s= out", p.Name, network, option)
	}
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return nil, fmt.Errorf("pod %s: annotation %s: %w", p.Name, product.MultusStatus, err)
	}
	return list, nil
}

// addresses returns the valid addresses of the attachment.
func (a attachment) addresses() (list []netip.Addr) {
	for _, ip := range a.IPs {
		if address, err := netip.ParseAddr(ip); err == nil {
			list = append(list, address)
		}
	}
	return list
}

// attached returns the addresses of a pod in the additional network that it asked Multus for.
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

// inDefault returns the addresses of a pod in the network that it asked Multus for in place of the default one. It
// returns an error if that network is not the pod's default.
func inDefault(p *corev1.Pod, network string) ([]netip.Addr, error) {
	all, err := attachmentsOf(p, network, "default-network")
	if err != nil {
		return nil, err
	}
	var list []netip.Addr
	isDefault, other := false, result.Unknown
	for _, a := range all {
		switch {
		case a.Name == network: // Multus lists each device of a plugin that adds several
			list, isDefault = append(list, a.addresses()...), isDefault || a.Default
		case a.Default:
			other = a.Name
		}
	}
	if !isDefault {
		return nil, fmt.Errorf("the default network of pod %s is %s, not %s; the cluster's Multus does not follow the "+
			"annotation "+product.MultusDefaultRequest+"; leave default-network= out", p.Name, other, network)
	}
	return list, nil
}

// CheckDefaultNetwork returns an error unless all addresses of a pod are in the network that it asked Multus for in
// place of the default one. network is empty if the pod asked for none; then every pod passes.
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

// CheckDefaultRoute returns an error unless traffic from a pod leaves by the network that it has in place of the
// default one. It checks the addresses of the device that the traffic leaves by, not the address that the server sees,
// which may be a translated one.
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

// AttachedAddress returns the first address of a family that a pod has in an additional network; if family is empty,
// the first of any family.
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

// CheckNetworkRoute returns an error unless traffic from a pod took the additional network: seen, the source address
// that the server saw, must be the pod's address there. A pod may also reach that network through its default one.
func CheckNetworkRoute(p *corev1.Pod, network string, seen netip.Addr) error {
	all, err := attached(p, network)
	if err != nil || slices.Contains(all, seen.Unmap()) {
		return err
	}
	return fmt.Errorf("the traffic does not take the network %s: the server saw it come from %s, and pod %s has %s "+
		"there; the routes of the NetworkAttachmentDefinition lead another way", network, seen.Unmap(), p.Name,
		addresses(all))
}

// addresses lists addresses in an error text.
func addresses(all []netip.Addr) string {
	var names []string
	for _, a := range all {
		names = append(names, a.String())
	}
	return List(names)
}

// PodAddress returns the first address of a family in a pod's status; if family is empty, the first of any family.
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

// isFamily reports whether a is of a family; every address is of the empty family.
func isFamily(a netip.Addr, family corev1.IPFamily) bool {
	return family == "" || a.Is4() == (family == corev1.IPv4Protocol)
}
