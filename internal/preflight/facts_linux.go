package preflight

import (
	"net"
	"os"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/knotmeter/knotmeter/internal/machine"
	"github.com/knotmeter/knotmeter/internal/result"
)

// sysctls are the settings that affect measurements. Most are per network namespace; a pod does not see those that
// exist only in the machine's own namespace.
var sysctls = []string{
	// Of the network namespace.
	"net.core.rmem_default", "net.core.wmem_default", // buffers of UDP sockets that ask for none: loss
	"net.core.rmem_max", "net.core.wmem_max", // the most that a socket may ask for
	"net.core.somaxconn", "net.ipv4.tcp_max_syn_backlog", // limits of connections that wait to be accepted: tcp-crr
	"net.ipv4.ip_local_port_range", // how soon ports run out: tcp-crr
	"net.ipv4.tcp_tw_reuse", "net.ipv4.tcp_fin_timeout",
	"net.ipv4.tcp_congestion_control", "net.ipv4.tcp_ecn", // how a stream's rate is controlled
	"net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem", // limits of the window, which is rate × round trip
	"net.ipv4.tcp_moderate_rcvbuf", "net.ipv4.tcp_window_scaling",
	"net.ipv4.tcp_mtu_probing",                         // hides a wrong MTU
	"net.ipv4.tcp_notsent_lowat",                       // latency beneath a stream
	"net.ipv4.tcp_sack",                                // the rate when packets are lost
	"net.ipv4.tcp_slow_start_after_idle",               // requests with pauses between them
	"net.ipv4.tcp_timestamps",                          // 12 bytes of each segment, and reuse of ports
	"net.netfilter.nf_conntrack_max",                   // connections through a Service: tcp-crr
	"net.netfilter.nf_conntrack_tcp_timeout_time_wait", // how long each is counted
	// Of the machine.
	"net.core.netdev_budget", "net.core.netdev_max_backlog", // packets per soft interrupt, and those that wait
	"net.core.default_qdisc",                   // of devices that are made later
	"net.core.busy_poll", "net.core.busy_read", // polling instead of interrupts: latency for CPU time
	"net.core.rps_sock_flow_entries",     // steering of packets to the CPU of their reader
	"net.bridge.bridge-nf-call-iptables", // whether packets of bridged pods pass the machine's filter
}

// facts returns the facts of the machine and the settings of the place.
func facts() []result.Fact {
	list := append(machine.Facts(),
		result.Fact{Name: "confidential-vm", Value: machine.Confidential()},
		result.Fact{Name: "boot-id", Value: readText("/proc/sys/kernel/random/boot_id")},
	)
	for _, name := range sysctls {
		list = append(list, result.Fact{Name: "sysctl." + strings.ReplaceAll(name, "_", "-"),
			Value: readText("/proc/sys/" + strings.ReplaceAll(name, ".", "/"))})
	}
	return list
}

// readText returns the content of a small file with single spaces between words, or result.Unknown.
func readText(path string) string {
	b, err := os.ReadFile(path)
	if words := strings.Fields(string(b)); err == nil && len(words) > 0 {
		return strings.Join(words, " ")
	}
	return result.Unknown
}

// socketOptions returns the MTU of a connection's route in bytes and its congestion control, as the kernel reports
// them.
func socketOptions(c *net.TCPConn) (mtu int, congestion string) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, ""
	}
	_ = raw.Control(func(fd uintptr) {
		if v, err := unix.GetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_MTU); err == nil {
			mtu = v
		} else if v, err := unix.GetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_MTU); err == nil {
			mtu = v
		}
		congestion, _ = unix.GetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION)
	})
	return mtu, congestion
}

// readDevice describes a network device of this namespace.
func readDevice(device string) Device {
	d := unknownDevice(device)
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if device == "" || err != nil {
		return d
	}
	defer unix.Close(fd)
	d.Offloads, d.Driver = offloads(fd, device), driver(fd, device)
	d.Qdisc = qdisc(device)
	d.Speed = formatSpeed(d.Driver, readText("/sys/class/net/"+device+"/speed"))
	return d
}

// formatSpeed returns the speed of a device from the kernel's number of Mbit/s. Veth devices and TUN devices report a
// constant and have no speed.
func formatSpeed(driver, mbit string) string {
	if n, err := strconv.Atoi(mbit); err != nil || n <= 0 || driver == "veth" || driver == "tun" {
		return result.Unknown
	}
	return mbit + " Mbit/s"
}

// driver returns the name of a device's driver, as ethtool reports it.
func driver(fd int, device string) string {
	info, err := unix.IoctlGetEthtoolDrvinfo(fd, device)
	if err != nil || info.Driver[0] == 0 {
		return result.Unknown
	}
	return unix.ByteSliceToString(info.Driver[:])
}

// features are the offloads that are read, with ethtool's older requests, which need no privileges.
var features = []struct {
	name    string
	request uint32
}{
	{"rx-checksum", unix.ETHTOOL_GRXCSUM}, {"tx-checksum", unix.ETHTOOL_GTXCSUM}, {"tso", unix.ETHTOOL_GTSO},
	{"gso", unix.ETHTOOL_GGSO}, {"gro", unix.ETHTOOL_GGRO},
}

// offloads lists the enabled features, separated by spaces, or "none".
func offloads(fd int, device string) string {
	var on []string
	for _, o := range features {
		value, err := ethtool(fd, device, o.request)
		if err != nil {
			return result.Unknown
		}
		if value != 0 {
			on = append(on, o.name)
		}
	}
	if len(on) == 0 {
		return "none"
	}
	return strings.Join(on, " ")
}

func ethtool(fd int, device string, request uint32) (uint32, error) {
	value := struct{ cmd, data uint32 }{cmd: request}
	var ifr struct {
		name [unix.IFNAMSIZ]byte
		data unsafe.Pointer
		_    [16]byte
	}
	copy(ifr.name[:unix.IFNAMSIZ-1], device)
	ifr.data = unsafe.Pointer(&value)
	if _, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&ifr))); e != 0 {
		return 0, e
	}
	return value.data, nil
}
