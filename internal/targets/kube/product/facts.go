package product

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/knotmeter/knotmeter/internal/machine"
	"github.com/knotmeter/knotmeter/internal/result"
)

// This file makes facts from properties: it alone decides which products' properties count, and how they read.

// byDefault returns the source of a default: a config map, NAMESPACE/NAME, that names no other value.
func byDefault(product, configMap string) string {
	return product + "'s default, " + inConfigMap(configMap) + " names no other"
}

// plainSettings returns KEY=VALUE for the keys of a config map whose values look like settings.
func plainSettings(c map[string]string, keys []string) (list []string) {
	for _, key := range keys {
		if plainSetting.MatchString(c[key]) {
			list = append(list, key+"="+c[key])
		}
	}
	return list
}

// carriers returns the plugins that run as daemon sets and do more than attaching pods to networks of others.
func (e Evidence) carriers() []string {
	names, _ := e.Plugins()
	return slices.DeleteFunc(names, func(name string) bool {
		return slices.ContainsFunc(All(), func(p Product) bool { return p.Name == name && p.OnlyAttaches })
	})
}

// anotherCarries reports whether a plugin runs next to which others only enforce policies.
func (e Evidence) anotherCarries() bool {
	return slices.ContainsFunc(All(), func(p Product) bool { return p.Carries && e.runs(p.Name) })
}

// othersLeftTraces reports whether there are traces of network plugins other than the named one.
func (e Evidence) othersLeftTraces(than string) bool {
	return slices.ContainsFunc(All(),
		func(p Product) bool { return p.Name != than && len(p.Images) > 0 && e.leftTraces(p) })
}

// strongest returns what is known of a property by the strongest source: of the first such product, or of all
// devices of the node.
func (e Evidence) strongest(of func(Product) func(Evidence) []Property, device func(DeviceSign) string) []Property {
	var best []Property
	for _, p := range All() {
		if find := of(p); find != nil {
			if found := find(e); len(found) > 0 && (best == nil || found[0].Strength < best[0].Strength) {
				best = found
			}
		}
	}
	if best == nil || best[0].Strength > Seen {
		if seen := e.byDevice(device); seen != nil {
			return seen
		}
	}
	return best
}

// byDevice returns the values that the devices of the node show, each for its first device.
func (e Evidence) byDevice(value func(DeviceSign) string) (list []Property) {
	for _, p := range All() {
		for _, d := range p.Devices {
			known := func(f Property) bool { return f.Value == value(d) }
			if there := e.devices(d); value(d) != "" && len(there) > 0 && !slices.ContainsFunc(list, known) {
				list = append(list, Property{value(d), "device " + there[0].Name + " of the node", Seen, false})
			}
		}
	}
	return list
}

// encapsulation returns the tunnel in which pods' packets cross the network of the nodes, or none. It is about the
// default network only.
func (e Evidence) encapsulation() []Property {
	if e.usesOtherNetwork() {
		return nil
	}
	return e.strongest(func(p Product) func(Evidence) []Property { return p.Encapsulation },
		func(d DeviceSign) string { return d.Encapsulation })
}

// encryption returns how pods' packets between nodes are encrypted.
func (e Evidence) encryption() []Property {
	if e.usesOtherNetwork() {
		return nil
	}
	return e.strongest(func(p Product) func(Evidence) []Property { return p.Encryption },
		func(d DeviceSign) string { return d.Encryption })
}

// usesOtherNetwork reports whether the pods' traffic takes another network than the cluster's.
func (e Evidence) usesOtherNetwork() bool { return e.Network != "" || e.DefaultNetwork != "" }

// fact returns a fact with the distinct values and sources of a property.
func fact(name string, properties []Property) result.Fact {
	slices.SortStableFunc(properties, func(a, b Property) int { return cmp.Compare(a.Value, b.Value) })
	var values, sources []string
	for _, f := range properties {
		values = append(values, f.Value)
		if f.Nodes {
			f.Source += ", between nodes too"
		}
		if f.Source != "" && !slices.Contains(sources, f.Source) {
			sources = append(sources, f.Source)
		}
	}
	return result.Fact{Name: name, Value: cmp.Or(strings.Join(slices.Compact(values), " | "), result.Unknown),
		Evidence: strings.Join(sources, "; ")}
}

// NetworkFacts returns facts about the pod network and the implementation of Services, each with its evidence.
func (e Evidence) NetworkFacts() []result.Fact {
	_, images := e.Plugins()
	var settings []string
	for _, p := range All() {
		if p.Settings != nil {
			settings = append(settings, p.Settings(e)...)
		}
	}
	slices.Sort(settings)
	return []result.Fact{
		e.pluginFact(),
		{Name: "cni-image", Value: cmp.Or(strings.Join(images, " "), result.Unknown)},
		fact("encapsulation", e.encapsulation()),
		fact("encryption", e.encryption()),
		{Name: "cni-settings", Value: cmp.Or(strings.Join(slices.Compact(settings), " "), result.Unknown)},
		e.servicesFact(),
	}
}

// pluginFact returns the network plugins: of DefaultNetwork, else those that run as daemon sets or left traces.
func (e Evidence) pluginFact() result.Fact {
	f := result.Fact{Name: "cni", Value: result.Unknown}
	names, _ := e.Plugins()
	if e.DefaultNetwork != "" {
		if names = e.Chain; len(names) > 0 {
			f.Evidence = "NetworkAttachmentDefinition " + e.DefaultNetwork
		}
	} else if len(e.carriers()) == 0 {
		for _, p := range All() {
			if p.Traces == nil || f.Evidence != "" {
				continue
			}
			if f.Evidence = p.Traces(e); f.Evidence != "" {
				names = append([]string{p.Name}, names...)
			}
		}
	}
	f.Value = cmp.Or(strings.Join(names, " + "), f.Value)
	return f
}

// servicesFact returns what implements Services: what replaces kube-proxy, else the mode that kube-proxy reports on its
// node, else its configuration, else its devices.
func (e Evidence) servicesFact() result.Fact {
	reported := proxyReported(e)
	for _, p := range All() {
		if p.Services == nil {
			continue
		}
		properties := p.Services(e)
		for i, f := range properties {
			switch f.Value {
			case result.Unknown:
			case Replaces:
				properties[i].Value = "replaced by " + p.Name
			default:
				properties[i].Value = "replaced by " + p.Name + ", " + f.Value
			}
		}
		if len(properties) == 0 {
			continue
		}
		replaced := fact("kube-proxy", properties)
		if len(reported) > 0 {
			replaced.Value += "; kube-proxy runs too: " + reported[0].Value
			replaced.Evidence += "; " + reported[0].Source
		}
		return replaced
	}
	if len(reported) == 0 {
		reported = proxyConfigured(e)
	}
	if len(reported) == 0 {
		return fact("kube-proxy", e.byDevice(func(d DeviceSign) string { return d.Services }))
	}
	f := fact("kube-proxy", reported)
	for _, p := range All() {
		if p.BalancesPods != nil && p.BalancesPods(e) { // kube-proxy balances those of nodes only
			f.Value += "; " + p.Name + " for connections of pods"
			f.Evidence += "; it balances those itself"
		}
	}
	return f
}

// overheads holds the bytes that a tunnel adds to a packet over IPv4: the outer IP header (20); for VXLAN and Geneve
// also UDP (8), VXLAN (8, RFC 7348) or Geneve without options (8, RFC 8926), and the inner Ethernet header (14).
var overheads = map[string]int{"vxlan": 50, "geneve": 50, "ipip": 20}

// Bytes that WireGuard adds to a packet over IPv4: IP (20), UDP (8), its header (16) and its tag (16); and by which the
// IPv6 header (40) is longer than the IPv4 header (20).
const (
	wireGuardOverhead = 60
	ipv6HeaderExtra   = 20
)

// TunnelMTU returns the fact whether full-size packets of pods fit into the node's MTU after encapsulation and
// encryption, with all sizes in bytes. There is none if that is unknown, or if packets are neither encapsulated nor
// encrypted.
func (e Evidence) TunnelMTU() []result.Fact {
	encapsulation, encryption := fact("", e.encapsulation()).Value, fact("", e.encryption()).Value
	overhead, layers := overheads[encapsulation], encapsulation
	switch {
	case strings.Contains(encapsulation, " | "): // nodes differ
		return nil
	case encryption == result.None:
	case encryption == "wireguard":
		layers = "wireguard"
		if overhead > 0 {
			layers = encapsulation + " in wireguard"
		}
		overhead += wireGuardOverhead
	default:
		return nil // its overhead is unknown
	}
	link := e.nodeLink()
	if overhead == 0 || e.Pod == nil || e.Pod.MTU == 0 || link.MTU == 0 {
		return nil
	}
	if len(link.Addresses) > 0 && !slices.ContainsFunc(link.Addresses, netip.Addr.Is4) {
		overhead += ipv6HeaderExtra
	}
	f := result.Fact{Name: "tunnel-mtu", Value: "fits",
		Evidence: fmt.Sprintf("pods %d, %s %d, nodes %d", e.Pod.MTU, layers, overhead, link.MTU)}
	if e.Pod.MTU+overhead > link.MTU {
		f.Value = "does not fit"
	}
	return []result.Fact{f}
}

// nodeLink returns the device with the node's address, or a zero Interface if it is unknown. The MTU in the report
// itself is not used, because it is that of the route to a pod, which may lead through a tunnel.
func (e Evidence) nodeLink() (link machine.Interface) {
	if e.Node == nil {
		return link
	}
	for _, i := range e.Node.Interfaces {
		if i.Name == e.Node.Device.Name {
			return i
		}
	}
	return link
}

// Distribution returns the fact about the Kubernetes distribution, with the mark that identifies it.
func (e Evidence) Distribution() result.Fact {
	f := result.Fact{Name: "distribution", Value: result.Unknown}
	for _, p := range All() {
		if p.VersionMark != "" && strings.Contains(e.Version, p.VersionMark) {
			f.Value, f.Evidence = p.Name, "version of the API server"
			return f
		}
	}
	for _, n := range e.Nodes {
		provider, _, _ := strings.Cut(n.Spec.ProviderID, ":")
		for _, p := range All() {
			_, label := n.Labels[p.NodeMark]
			_, annotation := n.Annotations[p.NodeMark]
			switch {
			case label || annotation:
				f.Evidence = "mark on the nodes"
			case p.ProviderMark != "" && provider == p.ProviderMark:
				f.Evidence = "provider of the nodes"
			case p.OSMark != "" && strings.Contains(n.Status.NodeInfo.OSImage, p.OSMark):
				f.Evidence = "OS of the nodes"
			default:
				continue
			}
			f.Value = p.Name
			return f
		}
	}
	return f
}

// ConfidentialLabels returns the labels of the nodes, KEY=VALUE, that mark confidential machines.
func (e Evidence) ConfidentialLabels() (found []string) {
	for _, n := range e.Nodes {
		for _, p := range All() {
			for _, label := range p.ConfidentialLabels {
				key, value, _ := strings.Cut(label, "=")
				if n.Labels[key] == value && !slices.Contains(found, label) {
					found = append(found, label)
				}
			}
		}
	}
	return found
}

// MachineFacts returns the limits of the nodes' machine size; none if the nodes have several sizes, or one without
// figures.
func (e Evidence) MachineFacts() []result.Fact {
	var size string
	for _, n := range e.Nodes {
		own := n.Labels[corev1.LabelInstanceTypeStable]
		if own == "" || own != cmp.Or(size, own) {
			return nil
		}
		size = own
	}
	for _, p := range All() {
		for _, m := range p.Machines {
			if m.Name != size {
				continue
			}
			facts := []result.Fact{
				{Name: "vm-link-rate", Value: fmt.Sprintf("%.0f Mbit/s", m.Link)},
				{Name: "vm-link-source", Value: m.Series.Link},
				{Name: "vm-limit-iops", Value: fmt.Sprintf("%.0f/s", m.IOPS)},
				{Name: "vm-limit-throughput", Value: fmt.Sprintf("%.0f MB/s", m.Disks)},
				{Name: "vm-limit-source", Value: m.Series.Disks},
			}
			if m.Series.Note != "" {
				facts = append(facts, result.Fact{Name: "vm-limit-note", Value: m.Series.Note})
			}
			return facts
		}
	}
	return nil
}
