//go:build linux

package datapath

import (
	"errors"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"

	"github.com/knotmeter/knotmeter/internal/lab"
	"github.com/knotmeter/knotmeter/internal/lab/bpf"
	"github.com/knotmeter/knotmeter/internal/lab/netns"
	"github.com/knotmeter/knotmeter/internal/lab/nft"
	"github.com/knotmeter/knotmeter/internal/lab/wireguard"
	"github.com/knotmeter/knotmeter/internal/result"
)

const asRoot = "run as root, outside of a container that forbids it"

// unusedNet is a network for probes.
var unusedNet = netip.MustParsePrefix("127.1.0.0/16")

// features are the kernel features that the datapaths and Services use, in the order in which doctor prints them.
// Kernel versions and configurations do not count: a feature exists if it works where sites are made.
var features = []lab.Feature{
	{Name: "veth", Use: "every datapath",
		Remedy: kernelRemedy("VETH", "veth", ""), Try: lab.Veth(netns.Link{}, "", "").Probe},
	{Name: "bridge", Use: "the underlay's switch, lab:bridge",
		Remedy: kernelRemedy("BRIDGE", "bridge", ""), Try: lab.Bridge(netns.Link{}).Probe},
	{Name: "vxlan", Use: "lab:vxlan and what stands on it",
		Remedy: kernelRemedy("VXLAN", "vxlan", "3.7"),
		Try:    lab.Vxlan(netns.Link{}, 1, lab.VXLANPort, unusedNet.Addr()).Probe},
	{Name: "ipip", Use: "lab:ipip; eBPF does its work in its place",
		Remedy: kernelRemedy("NET_IPIP", "ipip", ""),
		Try:    func(e *lab.Env) error { return e.Netlink().AddIPIP(netns.Link{Name: "ipip1"}, unusedNet.Addr()) }},
	{Name: "macvlan", Use: "lab:macvlan",
		Remedy: kernelRemedy("MACVLAN", "macvlan", ""), Try: lab.Macvlan(netns.Link{}, "", "").Probe},
	{Name: "wireguard", Use: "…+wireguard; wireguard-go does its work in its place",
		Remedy: kernelRemedy("WIREGUARD", "wireguard", "5.6"),
		Try:    func(e *lab.Env) error { return e.Netlink().AddWireGuard(netns.Link{Name: "wg1"}) }},
	{Name: "tun", Use: "wireguard-go",
		Remedy: kernelRemedy("TUN", "tun", ""), Try: func(*lab.Env) error { return wireguard.ProbeTUN() }},
	{Name: "eBPF at traffic control", Use: "lab:ipip without the kernel's devices",
		Remedy: asRoot + ", on Linux 6.6 or later", Try: tryTunnelPrograms},
	{Name: "eBPF at connect", Use: "services=ebpf",
		Remedy: asRoot + ", on Linux 5.8 or later with a cgroup v2 hierarchy", Try: bpf.Translate(nil).Probe},
	{Name: "ESP", Use: "…+ipsec",
		Remedy: kernelRemedy("INET_ESP", "esp4", ""), Try: securityAssociation(association(1, 2, 1, false, true), 1).Probe},
	{Name: "ESP for IPv6", Use: "native+ipsec",
		Remedy: kernelRemedy("INET6_ESP", "esp6", ""), Try: securityAssociation(association(1, 2, 1, true, true), 1).Probe},
	{Name: "nftables with NAT", Use: "services=nftables",
		Remedy: kernelRemedy("NFT_NAT", "nft_nat", "3.18"), Try: nft.DNAT(nil).Probe},
	{Name: "nftables with TPROXY", Use: "…+hbone",
		Remedy: kernelRemedy("NFT_TPROXY", "nft_tproxy", "4.19"),
		Try:    nft.TProxy{From: lab.PodNet(1), To: []lab.DualPrefix{lab.PodsNet()}}.Op().Probe},
	{Name: "br_netfilter", Use: "services=nftables on lab:bridge within a node",
		Remedy: kernelRemedy("BRIDGE_NETFILTER", "br_netfilter", "5.3 in namespaces"), Try: probeBridgeNetfilter},
	{Name: "tbf", Use: "?rate=", Remedy: kernelRemedy("NET_SCH_TBF", "sch_tbf", ""), Try: shaper(lab.MinRate).Probe},
	{Name: "user namespaces", Use: "the lab without root",
		Remedy: "set kernel.unprivileged_userns_clone=1, user.max_user_namespaces above 0 and " +
			"kernel.apparmor_restrict_unprivileged_userns=0, where there are such settings",
		Try: tryUserNamespace},
}

// kernelRemedy returns how to get a feature: load a module, or use a kernel with a configuration option and a version.
func kernelRemedy(config, module, since string) string {
	text := fmt.Sprintf("modprobe %s, or a kernel with CONFIG_%s", module, config)
	if since != "" {
		text += " (since Linux " + since + ")"
	}
	return text
}

func tryTunnelPrograms(e *lab.Env) error {
	peers := []bpf.Peer{{Node: unusedNet.Addr(), Pods: unusedNet}}
	return tryTunnel(e, bpf.Tunnel{Node: unusedNet.Addr(), Pods: unusedNet, Peers: peers})
}

// tryUserNamespace makes a user namespace, in a process that ends at once.
func tryUserNamespace(*lab.Env) error {
	pid, errno := cloneUser()
	if errno == unix.EPERM || errno == unix.ENOSPC || errno == unix.EINVAL || errno == unix.EACCES {
		return result.NotSupported(fmt.Sprintf("this system does not let this user make user namespaces: %v", errno))
	}
	if errno != 0 {
		return errno
	}
	for {
		if _, err := unix.Wait4(pid, nil, unix.WALL, nil); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// cloneUser starts a copy of this process in a user namespace. The copy has one thread and only exits.
//
//go:noinline
//go:norace
//go:nosplit
func cloneUser() (int, unix.Errno) {
	// The first two arguments of clone(2) are the flags and the stack on amd64 and arm64 alike.
	pid, _, errno := unix.RawSyscall6(unix.SYS_CLONE, unix.CLONE_NEWUSER, 0, 0, 0, 0, 0)
	if errno != 0 || pid != 0 {
		return int(pid), errno
	}
	for {
		unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
	}
}
