//go:build linux

package main

import (
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strconv"
	"strings"
)

// A command is a program with its arguments.
type command []string

// A plugin installs the pods' network.
type plugin interface {
	programs() []program                  // programs to build
	checkSupport() error                  // names what the network needs and this machine lacks
	users() map[string][]string           // kubeconfigs, as in [spec.users]
	files(s spec) map[string]any          // configuration files, by name
	apply(s spec) []command               // create its objects, once the API server answers
	withdraw(s spec) []command            // remove them, when no node runs
	control(s spec) []process             // processes next to the control plane
	node(s spec, n node) []process        // processes of a node, started before its kubelet
	config(s spec, n node) map[string]any // CNI configuration of a node; nil if a process writes it when it is ready
	runtime(n node) []string              // environment of the container runtime, which CNI plugins inherit
	replacesProxy() bool                  // whether kube-proxy must not run
	filters() bool                        // whether it enforces NetworkPolicies
	ipv6() bool                           // whether it supports IPv6 in addition to IPv4
}

// plugin returns the plugin of the network.
func (s spec) plugin() plugin {
	product, mode, _ := strings.Cut(s.Network, "-")
	switch product {
	case "flannel":
		return flannel{backend: mode}
	case "macvlan":
		return macvlan{}
	case "calico":
		return calico{mode: mode}
	case "cilium":
		return cilium{mode: mode}
	case "kube":
		return kubeRouter{}
	}
	return native{}
}

// native consists of the CNI plugin ptp, and of routes between the nodes that the cluster makes itself.
type native struct{}

func (native) programs() []program        { return nil }
func (native) checkSupport() error        { return nil }
func (native) users() map[string][]string { return nil }
func (native) files(spec) map[string]any  { return nil }
func (native) apply(spec) []command       { return nil }
func (native) withdraw(spec) []command    { return nil }
func (native) control(spec) []process     { return nil }
func (native) node(spec, node) []process  { return nil }
func (native) runtime(node) []string      { return nil }
func (native) replacesProxy() bool        { return false }
func (native) filters() bool              { return false }
func (native) ipv6() bool                 { return true }
func (native) config(s spec, n node) map[string]any {
	return s.conflist(map[string]any{"type": "ptp", "ipMasq": false, "ipam": hostLocal(n, defaults(n)...)}, portmap)
}

// routed reports whether the cluster makes the routes between the nodes, and not the pod network.
func (s spec) routed() bool { return s.Network == "native" }

// links returns the commands that make the network of the nodes, in the control plane's own network namespace: a
// switch, and on it the nodes and the uplink, which `up` has moved there.
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
	return append(list, s.nodesLinks()...)
}

// nodesLinks returns the commands that make the network of each node, and the routes to its pods.
func (s spec) nodesLinks() []command {
	var list []command
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

// routes returns the commands that make the routes to the pods of a node, by the command ip.
func routes(ip string, n node) []command {
	list := []command{words(ip + " route replace " + n.Pods + " via " + n.Addr)}
	if n.Pods6 != "" {
		list = append(list, words(ip+" route replace "+n.Pods6+" via "+n.Addr6))
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
	if n.Rate != "" {
		// The burst is 2 ms at 1 Gbit/s: a late timer does not reduce the rate, and the largest packet fits.
		list = append(list, words("tc -n "+n.Name+" qdisc add dev eth0 root tbf rate "+n.Rate+" burst 250kb latency 10ms"))
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

// inside returns a command in the node's network namespace. It does not use `ip netns exec`, which mounts another /sys
// and so hides the cgroups.
func (n node) inside(args ...string) command {
	return append(command{"nsenter", "--net=" + n.namespace(), "--"}, args...)
}

// insideWithMounts returns a command in the node's network with its own mounts; later mounts outside propagate to it.
func (n node) insideWithMounts(args ...string) command {
	return n.inside(append([]string{"unshare", "--mount", "--propagation=slave", "--"}, args...)...)
}

// uplinks returns the commands that connect this machine with the network namespace of a process.
func (s spec) uplinks(pid int) []command {
	return []command{
		words("ip link add " + s.uplink() + " type veth peer name uplink netns " + strconv.Itoa(pid)),
		words("ip address add " + s.host() + "/24 dev " + s.uplink()),
		words("ip link set " + s.uplink() + " up"),
	}
}

// conflist returns the CNI configuration of the pods' network.
func (s spec) conflist(plugins ...any) map[string]any {
	return map[string]any{"cniVersion": "1.0.0", "name": s.Network, "plugins": plugins}
}

// portmap configures the CNI plugin for host ports of pods.
var portmap = map[string]any{"type": "portmap", "capabilities": map[string]any{"portMappings": true}, "snat": true}

// defaults returns the default routes of a node's pods.
func defaults(n node) []string {
	if n.Pods6 != "" {
		return []string{"0.0.0.0/0", "::/0"}
	}
	return []string{"0.0.0.0/0"}
}

// hostLocal configures the addresses of a node's pods, from its part of the pods' network, and their routes.
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

// macvlan puts pods on the nodes' own network, of which every node has sixteen addresses, from 48 on.
type macvlan struct{ native }

func (macvlan) ipv6() bool { return false }

func (macvlan) config(s spec, n node) map[string]any { return s.conflist(s.macvlan(n)) }

func (s spec) macvlan(n node) map[string]any {
	from := 16 * (n.Index + 2)
	return s.macvlanOf(n.file("ipam"), from, from+15)
}

// macvlanOf configures macvlan with addresses from 10.199.ID.from to 10.199.ID.to; dir records those in use.
func (s spec) macvlanOf(dir string, from, to int) map[string]any {
	address := func(last int) string { return fmt.Sprintf("10.199.%d.%d", s.ID, last) }
	return map[string]any{"type": "macvlan", "master": "eth0", "mode": "bridge", "ipam": map[string]any{
		"type": "host-local", "dataDir": dir,
		"ranges": []any{[]any{map[string]any{
			"subnet": address(0) + "/24", "rangeStart": address(from), "rangeEnd": address(to), "gateway": s.control(),
		}}},
		"routes": []any{map[string]any{"dst": "0.0.0.0/0"}},
	}}
}

// unscheduledDaemonSet returns a daemon set as in a product's manifest, by which inspections find products and
// versions. The product's processes run on the nodes without pods, so its node selector matches no node.
func unscheduledDaemonSet(name, image string, args ...string) map[string]any {
	labels := map[string]any{"k8s-app": name}
	return map[string]any{
		"apiVersion": "apps/v1", "kind": "DaemonSet",
		"metadata": map[string]any{"name": name, "namespace": "kube-system", "labels": labels},
		"spec": map[string]any{
			"selector": map[string]any{"matchLabels": labels},
			"template": map[string]any{
				"metadata": map[string]any{"labels": labels},
				"spec": map[string]any{
					"nodeSelector": map[string]any{"test.knotmeter.dev/runs-as": "pod"}, "hostNetwork": true,
					"containers": []any{map[string]any{"name": name, "image": image, "args": args}},
				},
			},
		},
	}
}

// missingError names what a network needs and this machine lacks.
func missingError(what string) error { return fmt.Errorf("it takes %s", what) }

// requirePrograms returns an error for the first program, by name, that is not installed. The values are Debian
// packages.
func requirePrograms(programs map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(programs)) {
		if _, err := exec.LookPath(name); err != nil {
			return missingError(name + ": apt-get install " + programs[name])
		}
	}
	return nil
}

// checkLinkType returns an error if the kernel cannot create links of a type, which may have options. It creates one in
// a network namespace that ends with the command.
func checkLinkType(kind string) error {
	if err := words("unshare --net ip link add probe type " + kind).run(); err != nil {
		return missingError("links of type " + strings.Fields(kind)[0] + ", which this kernel does not make: " + err.Error())
	}
	return nil
}
