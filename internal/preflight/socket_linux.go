package preflight

import (
	"net"

	"golang.org/x/sys/unix"
)

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
