//go:build linux

// Package probe lists what of the kernel the lab can make use of, each with a way to find out whether it is there. Nothing
// is concluded from versions or configurations: a feature is there if it works. Package lab's holder tries them, so that the
// answers are those that hold where sites are made, and the command doctor prints them.
package probe

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"

	"golang.org/x/sys/unix"

	"github.com/knotmeter/knotmeter/internal/lab"
	"github.com/knotmeter/knotmeter/internal/lab/bpf"
	"github.com/knotmeter/knotmeter/internal/lab/datapath/ipsec"
	"github.com/knotmeter/knotmeter/internal/lab/netns"
	"github.com/knotmeter/knotmeter/internal/lab/nft"
	"github.com/knotmeter/knotmeter/internal/lab/nl"
	"github.com/knotmeter/knotmeter/internal/lab/wireguard"
	"github.com/knotmeter/knotmeter/internal/result"
)

const asRoot = "run as root, outside of a container that forbids it"

// Features are in the order in which doctor prints them.
func Features() []lab.Feature {
	return append(devices(), append(programs(), others()...)...)
}

func feature(name, use, remedy string, try func(*lab.Env) error) lab.Feature {
	return lab.Feature{Name: name, Use: use, Remedy: remedy, Try: try}
}

func devices() []lab.Feature {
	return []lab.Feature{
		feature("veth", "every datapath", option("VETH", "veth", ""), lab.Veth{}.Probe),
		feature("bridge", "the underlay's switch, lab:bridge", option("BRIDGE", "bridge", ""), lab.Bridge{}.Probe),
		feature("vxlan", "lab:vxlan and what stands on it", option("VXLAN", "vxlan", "3.7"), lab.Vxlan{}.Probe),
		feature("ipip", "lab:ipip; eBPF does its work in its place", option("NET_IPIP", "ipip", ""), func(e *lab.Env) error {
			return e.Netlink().AddIPIP(nl.Link{Name: "ipip1"}, netip.AddrFrom4([4]byte{127, 0, 0, 1}))
		}),
		feature("macvlan", "lab:macvlan", option("MACVLAN", "macvlan", ""), lab.Slave{Kind: "macvlan"}.Probe),
		feature("ipvlan", "lab:ipvlan", option("IPVLAN", "ipvlan", "3.19"), lab.Slave{Kind: "ipvlan"}.Probe),
		feature("wireguard", "…+wireguard; wireguard-go does its work in its place", option("WIREGUARD", "wireguard", "5.6"), func(e *lab.Env) error {
			return e.Netlink().AddWireGuard(nl.Link{Name: "wg1"})
		}),
		feature("tun", "wireguard-go", option("TUN", "tun", ""), func(*lab.Env) error { return wireguard.ProbeTUN() }),
	}
}

func programs() []lab.Feature {
	nowhere := netip.MustParsePrefix("127.1.0.0/16")
	return []lab.Feature{
		feature("eBPF at traffic control", "lab:ipip without the kernel's devices", asRoot+", on Linux 6.6 or later", func(e *lab.Env) error {
			lo, err := e.Netlink().Index("lo")
			if err != nil {
				return err
			}
			a, err := bpf.AttachTunnel(bpf.Tunnel{Node: nowhere.Addr(), Pods: nowhere, Peers: []bpf.Peer{{Node: nowhere.Addr(), Pods: nowhere}}}, lo)
			if err != nil {
				return err
			}
			return a.Close()
		}),
		feature("eBPF at connect", "services=ebpf", asRoot+", on Linux 5.8 or later with a cgroup v2 hierarchy", bpf.Translate{}.Probe),
	}
}

func others() []lab.Feature {
	esp := func(ipv6 bool) func(*lab.Env) error {
		a, b := lab.NodeAddr(1).Of(ipv6), lab.NodeAddr(2).Of(ipv6)
		return ipsec.SA{SA: nl.SA{Src: a, Dst: b, SPI: 256, ReqID: 1, Tunnel: true}, Node: 1}.Probe
	}
	return []lab.Feature{
		feature("ESP", "…+ipsec", option("INET_ESP", "esp4", ""), esp(false)),
		feature("ESP for IPv6", "native+ipsec", option("INET6_ESP", "esp6", ""), esp(true)),
		feature("nftables with NAT", "services=nftables", option("NFT_NAT", "nft_nat", "3.18"), nft.DNAT{}.Probe),
		feature("br_netfilter", "services=nftables on lab:bridge within a node", option("BRIDGE_NETFILTER", "br_netfilter", "5.3 in namespaces"), bridgeNetfilter),
		feature("tbf", "?rate=", option("NET_SCH_TBF", "sch_tbf", ""), lab.Shaper{TokenBucket: nl.TokenBucket{Rate: lab.MinRate, Burst: 1 << 16, Limit: 1 << 17}}.Probe),
		feature("user namespaces", "the lab without root", "set kernel.unprivileged_userns_clone=1, user.max_user_namespaces above 0 and kernel.apparmor_restrict_unprivileged_userns=0, where there are such settings", userNamespace),
	}
}

// option is what would bring a feature: a module to load, or a kernel that was configured and is recent enough for it.
func option(config, module, since string) string {
	text := fmt.Sprintf("modprobe %s, or a kernel with CONFIG_%s", module, config)
	if since != "" {
		text += " (since Linux " + since + ")"
	}
	return text
}

func bridgeNetfilter(e *lab.Env) error {
	if err := e.Netlink().AddBridge(nl.Link{Name: "br1"}); err != nil {
		return err
	}
	_, err := netns.ReadSysctl("net.bridge.bridge-nf-call-iptables")
	if errors.Is(err, fs.ErrNotExist) {
		return result.NotSupported("this kernel has no br_netfilter (CONFIG_BRIDGE_NETFILTER)")
	}
	return err
}

// userNamespace makes one, in a process that ends at once.
func userNamespace(*lab.Env) error {
	pid, errno := cloneUser()
	if errno == unix.EPERM || errno == unix.ENOSPC || errno == unix.EINVAL || errno == unix.EACCES {
		return result.NotSupported(fmt.Sprintf("this system does not let this user make user namespaces: %v", errno))
	}
	if errno != 0 {
		return errno
	}
	var status unix.WaitStatus
	_, err := unix.Wait4(pid, &status, unix.WALL, nil)
	for errors.Is(err, unix.EINTR) {
		_, err = unix.Wait4(pid, &status, unix.WALL, nil)
	}
	return err
}

// cloneUser starts a copy of this process in a user namespace. The copy has one thread and makes nothing but a system call.
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
