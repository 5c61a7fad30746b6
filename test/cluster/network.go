//go:build linux

package main

import (
	"fmt"
	"strconv"
)

// A command is a program with its arguments.
type command []string

// links are the commands that make the network of the nodes, from within the control plane's own
// network namespace: a switch, the nodes on it, and the uplink that `up` has put there.
func (s spec) links() []command {
	list := []command{
		words("ip link set lo up"),
		words("ip link add switch type bridge"),
		words("ip link set switch up"),
		words("ip address add " + controlAddr + "/24 dev switch"),
		words("ip link set uplink master switch up"),
		words("sysctl -qw net.ipv4.ip_forward=1"),
	}
	for _, n := range s.nodes() {
		list = append(list, n.links()...)
	}
	for _, n := range s.nodes() {
		// The control plane reaches pods, for webhooks and proxies.
		list = append(list, words("ip route add "+n.Pods+" via "+n.Addr))
		for _, other := range s.nodes() {
			if s.Network == "native" && other != n {
				list = append(list, words("ip -n "+n.Name+" route add "+other.Pods+" via "+other.Addr))
			}
		}
	}
	return list
}

func (n node) links() []command {
	return []command{
		words("ip netns add " + n.Name),
		words("ip link add " + n.Name + " type veth peer name eth0 netns " + n.Name),
		words("ip link set " + n.Name + " master switch up"),
		words("ip -n " + n.Name + " link set lo up"),
		words("ip -n " + n.Name + " link set eth0 up"),
		words("ip -n " + n.Name + " address add " + n.Addr + "/24 dev eth0"),
		words("ip -n " + n.Name + " route add default via " + controlAddr),
		n.inside("sysctl", "-qw", "net.ipv4.ip_forward=1", "net.ipv4.conf.all.rp_filter=0", "net.ipv4.conf.default.rp_filter=0"),
	}
}

// inside is a command in the node's network namespace. It is not `ip netns exec`, which mounts another
// /sys and so hides the cgroups.
func (n node) inside(args ...string) command {
	return append(command{"nsenter", "--net=" + n.namespace(), "--"}, args...)
}

// uplinks are the commands that connect this machine with the network namespace of a process.
func uplinks(pid int) []command {
	return []command{
		words("ip link add " + uplink + " type veth peer name uplink netns " + strconv.Itoa(pid)),
		words("ip address add " + hostAddr + "/24 dev " + uplink),
		words("ip link set " + uplink + " up"),
	}
}

// cniConfig is the configuration of the pods' network on a node; nil if something else writes it.
func (s spec) cniConfig(n node) map[string]any {
	ipam := map[string]any{
		"type": "host-local", "dataDir": n.Dir + "/ipam",
		"ranges": []any{[]any{map[string]any{"subnet": n.Pods}}},
		"routes": []any{map[string]any{"dst": "0.0.0.0/0"}},
	}
	portmap := map[string]any{"type": "portmap", "capabilities": map[string]any{"portMappings": true}, "snat": true}
	var plugins []any
	switch s.Network {
	case "native":
		plugins = []any{map[string]any{"type": "ptp", "ipMasq": false, "ipam": ipam}, portmap}
	case "macvlan":
		plugins = []any{map[string]any{"type": "macvlan", "master": "eth0", "mode": "bridge", "ipam": macvlanIPAM(n)}}
	default:
		return nil
	}
	return map[string]any{"cniVersion": "1.0.0", "name": s.Network, "plugins": plugins}
}

// macvlanIPAM gives the pods of a node a part of the underlay's own network, of which every node has
// sixteen addresses.
func macvlanIPAM(n node) map[string]any {
	var last int
	_, _ = fmt.Sscanf(n.Addr, "10.199.0.%d", &last)
	from := 16 * (last - 8)
	return map[string]any{
		"type": "host-local", "dataDir": n.Dir + "/ipam",
		"ranges": []any{[]any{map[string]any{
			"subnet": "10.199.0.0/24", "rangeStart": fmt.Sprintf("10.199.0.%d", from), "rangeEnd": fmt.Sprintf("10.199.0.%d", from+15),
			"gateway": controlAddr,
		}}},
		"routes": []any{map[string]any{"dst": "0.0.0.0/0"}},
	}
}
