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

// sysctls are those that change what is measured. Some a place has for itself; those of net.core from netdev-budget on,
// of the bridge and of the connection tracking's size only the machine has, and a pod does not see them.
var sysctls = []string{
	// Of the place.
	"net.core.rmem_default", "net.core.wmem_default", // buffers of UDP sockets that ask for none: loss
	"net.core.rmem_max", "net.core.wmem_max", // the most that a socket may ask for
	"net.core.somaxconn", "net.ipv4.tcp_max_syn_backlog", // connections that wait to be accepted: tcp-crr
	"net.ipv4.ip_local_port_range", // how soon ports run out: tcp-crr
	"net.ipv4.tcp_tw_reuse", "net.ipv4.tcp_fin_timeout",
	"net.ipv4.tcp_congestion_control", "net.ipv4.tcp_ecn", // the law of the rate of a stream
	"net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem", // the window: rate x round trip
	"net.ipv4.tcp_moderate_rcvbuf", "net.ipv4.tcp_window_scaling",
	"net.ipv4.tcp_mtu_probing",                         // hides a wrong MTU
	"net.ipv4.tcp_notsent_lowat",                       // latency beneath a stream
	"net.ipv4.tcp_sack",                                // the rate where packets are lost
	"net.ipv4.tcp_slow_start_after_idle",               // requests with pauses between them
	"net.ipv4.tcp_timestamps",                          // 12 bytes of each segment, and reuse of ports
	"net.netfilter.nf_conntrack_max",                   // connections through a Service: tcp-crr
	"net.netfilter.nf_conntrack_tcp_timeout_time_wait", // how long each is counted
	// Of the machine alone.
	"net.core.netdev_budget", "net.core.netdev_max_backlog", // packets per softirq, and those that may wait for it
	"net.core.default_qdisc",                   // of devices that are made later
	"net.core.busy_poll", "net.core.busy_read", // polling instead of interrupts: latency for CPU time
	"net.core.rps_sock_flow_entries",     // steering of packets to the CPU of their reader
	"net.bridge.bridge-nf-call-iptables", // packets of bridged pods pass the filter of the machine, or not
}

// facts are what a place can say of its machine and of itself.
func facts() []result.Fact {
	list := append(machine.Facts(),
		result.Fact{Name: "confidential-vm", Value: machine.Confidential()},
		result.Fact{Name: "boot-id", Value: text("/proc/sys/kernel/random/boot_id")},
	)
	for _, name := range sysctls {
		list = append(list, result.Fact{Name: "sysctl." + strings.ReplaceAll(name, "_", "-"),
			Value: text("/proc/sys/" + strings.ReplaceAll(name, ".", "/"))})
	}
	return list
}

// text is the content of a small file, with its blanks made one each.
func text(path string) string {
	b, err := os.ReadFile(path)
	if words := strings.Fields(string(b)); err == nil && len(words) > 0 {
		return strings.Join(words, " ")
	}
	return result.Unknown
}

// socket is what the kernel knows of a connection's route.
func socket(c *net.TCPConn) (mtu int, congestion string) {
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

// lookAt says what a device is.
func lookAt(device string) Device {
	d := unknownDevice(device)
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if device == "" || err != nil {
		return d
	}
	defer unix.Close(fd)
	d.Offloads, d.Driver = offloads(fd, device), driver(fd, device)
	d.Qdisc = qdisc(device)
	d.Speed = speedOf(d.Driver, text("/sys/class/net/"+device+"/speed"))
	return d
}

// speedOf is the speed of a device of which the kernel says a number of Mbit/s. The pairs of devices that lead into
// pods, and those of tunnels in userspace, say a constant and have no speed.
func speedOf(driver, mbit string) string {
	if n, err := strconv.Atoi(mbit); err != nil || n <= 0 || driver == "veth" || driver == "tun" {
		return result.Unknown
	}
	return mbit + " Mbit/s"
}

// driver is what ethtool calls the driver of a device.
func driver(fd int, device string) string {
	info, err := unix.IoctlGetEthtoolDrvinfo(fd, device)
	if err != nil || info.Driver[0] == 0 {
		return result.Unknown
	}
	return unix.ByteSliceToString(info.Driver[:])
}

// features are what a device may do for the kernel, with ethtool's older requests, which need no privileges.
var features = []struct {
	name    string
	request uint32
}{
	{"rx-checksum", unix.ETHTOOL_GRXCSUM}, {"tx-checksum", unix.ETHTOOL_GTXCSUM}, {"tso", unix.ETHTOOL_GTSO},
	{"gso", unix.ETHTOOL_GGSO}, {"gro", unix.ETHTOOL_GGRO},
}

// offloads names the features that are on.
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
