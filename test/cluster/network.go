//go:build linux

package main

import (
	"fmt"
	"strconv"
	"strings"
)

// A command is a program with its arguments.
type command []string

// routed says that the routes between the nodes are ours to make, not the pod network's.
func (s spec) routed() bool { return s.Network == "native" }

// backend is that of flannel; empty if the network is another.
func (s spec) backend() string {
	backend, found := strings.CutPrefix(s.Network, "flannel-")
	if !found {
		return ""
	}
	return backend
}

// links are the commands that make the network of the nodes, from within the control plane's own
// network namespace: a switch, the nodes on it, and the uplink that `up` has put there.
func (s spec) links() []command {
	list := []command{
		words("ip link set lo up"),
		words("ip link add switch type bridge mcast_snooping 0"),
		words("ip link set switch up"),
		words("ip address add " + s.control() + "/24 dev switch"),
		words("ip link set uplink master switch up"),
		words("sysctl -qw net.ipv4.ip_forward=1"),
	}
	if s.IPv6 {
		list = append(list, words("ip address add "+s.control6()+"/64 dev switch nodad"),
			words("sysctl -qw net.ipv6.conf.all.forwarding=1"))
	}
	for _, n := range s.nodes() {
		list = append(list, s.nodeLinks(n)...)
	}
	for _, n := range s.nodes() {
		// The control plane reaches pods, for webhooks and proxies.
		list = append(list, routes("ip", n)...)
		for _, other := range s.nodes() {
			if s.routed() && other.Index != n.Index {
				list = append(list, routes("ip -n "+n.Name, other)...)
			}
		}
	}
	return list
}

// routes lead to the pods of a node.
func routes(ip string, n node) []command {
	list := []command{words(ip + " route add " + n.Pods + " via " + n.Addr)}
	if n.Pods6 != "" {
		list = append(list, words(ip+" route add "+n.Pods6+" via "+n.Addr6))
	}
	return list
}

func (s spec) nodeLinks(n node) []command {
	list := []command{
		words("ip netns add " + n.Name),
		words("ip link add " + n.Name + " type veth peer name eth0 netns " + n.Name),
		words("ip link set " + n.Name + " master switch up"),
		words("ip -n " + n.Name + " link set lo up"),
		words("ip -n " + n.Name + " link set eth0 up"),
		words("ip -n " + n.Name + " address add " + n.Addr + "/24 dev eth0"),
		words("ip -n " + n.Name + " route add default via " + s.control()),
		n.inside("sysctl", "-qw", "net.ipv4.ip_forward=1",
			"net.ipv4.conf.all.rp_filter=0", "net.ipv4.conf.default.rp_filter=0"),
	}
	if s.IPv6 {
		list = append(list,
			words("ip -n "+n.Name+" address add "+n.Addr6+"/64 dev eth0 nodad"),
			words("ip -n "+n.Name+" route add default via "+s.control6()),
			n.inside("sysctl", "-qw", "net.ipv6.conf.all.forwarding=1", "net.ipv6.conf.default.accept_dad=0"),
		)
	}
	return list
}

// inside is a command in the node's network namespace. It is not `ip netns exec`, which mounts another
// /sys and so hides the cgroups.
func (n node) inside(args ...string) command {
	return append(command{"nsenter", "--net=" + n.namespace(), "--"}, args...)
}

// uplinks are the commands that connect this machine with the network namespace of a process.
func (s spec) uplinks(pid int) []command {
	return []command{
		words("ip link add " + s.uplink() + " type veth peer name uplink netns " + strconv.Itoa(pid)),
		words("ip address add " + s.host() + "/24 dev " + s.uplink()),
		words("ip link set " + s.uplink() + " up"),
	}
}

// cniConfig is the configuration of the pods' network on a node. A lease is of flannel, which knows the MTU only when
// it runs.
func (s spec) cniConfig(n node, l lease) map[string]any {
	portmap := map[string]any{"type": "portmap", "capabilities": map[string]any{"portMappings": true}, "snat": true}
	var plugins []any
	switch {
	case s.backend() != "":
		// What the flannel plugin delegates to, with what it takes from the lease.
		plugins = []any{map[string]any{
			"type": "bridge", "bridge": "cni0", "mtu": l.MTU, "ipMasq": !l.Masquerade,
			"hairpinMode": true, "isGateway": true, "isDefaultGateway": true,
			"ipam": hostLocal(n, l.Network, l.Network6),
		}, portmap}
	case s.Network == "macvlan":
		plugins = []any{s.macvlan(n)}
	default:
		plugins = []any{map[string]any{"type": "ptp", "ipMasq": false, "ipam": hostLocal(n, defaults(n)...)}, portmap}
	}
	return map[string]any{"cniVersion": "1.0.0", "name": s.Network, "plugins": plugins}
}

func defaults(n node) []string {
	if n.Pods6 != "" {
		return []string{"0.0.0.0/0", "::/0"}
	}
	return []string{"0.0.0.0/0"}
}

// hostLocal gives the pods of a node addresses from its part of the pods' network, and routes.
func hostLocal(n node, routes ...string) map[string]any {
	var ranges, list []any
	for _, subnet := range n.podCIDRs() {
		ranges = append(ranges, []any{map[string]any{"subnet": subnet}})
	}
	for _, destination := range nonEmpty(routes...) {
		list = append(list, map[string]any{"dst": destination})
	}
	return map[string]any{"type": "host-local", "dataDir": n.file("ipam"), "ranges": ranges, "routes": list}
}

// macvlan puts the pods of a node on the underlay's own network, of which every node has sixteen addresses, from 48 on.
func (s spec) macvlan(n node) map[string]any {
	address := func(last int) string { return fmt.Sprintf("10.199.%d.%d", s.ID, last) }
	from := 16 * (n.Index + 2)
	return map[string]any{"type": "macvlan", "master": "eth0", "mode": "bridge", "ipam": map[string]any{
		"type": "host-local", "dataDir": n.file("ipam"),
		"ranges": []any{[]any{map[string]any{
			"subnet": address(0) + "/24", "rangeStart": address(from), "rangeEnd": address(from + 15), "gateway": s.control(),
		}}},
		"routes": []any{map[string]any{"dst": "0.0.0.0/0"}},
	}}
}
