package meet

import (
	"net"
	"os"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/knotmeter/knotmeter/internal/machine"
	"github.com/knotmeter/knotmeter/internal/result"
)

// sysctls are those that a place may have for itself and that change what it measures.
func sysctls() []string {
	return []string{
		"net.core.somaxconn", "net.ipv4.ip_local_port_range", "net.ipv4.tcp_congestion_control", "net.ipv4.tcp_mtu_probing",
		"net.ipv4.tcp_rmem", "net.ipv4.tcp_slow_start_after_idle", "net.ipv4.tcp_timestamps", "net.ipv4.tcp_tw_reuse", "net.ipv4.tcp_wmem",
	}
}

// facts are what a place can say of its machine and of itself.
func facts() []result.Fact {
	list := append(machine.Facts(),
		result.Fact{Name: "confidential-vm", Value: machine.Confidential()},
		result.Fact{Name: "boot-id", Value: text("/proc/sys/kernel/random/boot_id")},
	)
	for _, name := range sysctls() {
		list = append(list, result.Fact{Name: "sysctl." + strings.ReplaceAll(name, "_", "-"), Value: text("/proc/sys/" + strings.ReplaceAll(name, ".", "/"))})
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

// offloads is a text with what a device does for the kernel, as ethtool's older requests tell it without
// privileges.
func offloads(device string) string {
	if device == "" {
		return result.Unknown
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return result.Unknown
	}
	defer unix.Close(fd)
	var on []string
	for _, o := range []struct {
		name    string
		request uint32
	}{
		{"rx-checksum", unix.ETHTOOL_GRXCSUM}, {"tx-checksum", unix.ETHTOOL_GTXCSUM}, {"tso", unix.ETHTOOL_GTSO},
		{"gso", unix.ETHTOOL_GGSO}, {"gro", unix.ETHTOOL_GGRO},
	} {
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
