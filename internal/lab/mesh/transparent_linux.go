package mesh

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// transparent lets a listener accept connections to addresses that are not the node's.
func transparent(network, _ string, c syscall.RawConn) error {
	level, option := unix.SOL_IP, unix.IP_TRANSPARENT
	if network == "tcp6" {
		level, option = unix.SOL_IPV6, unix.IPV6_TRANSPARENT
	}
	var inner error
	if err := c.Control(func(fd uintptr) { inner = unix.SetsockoptInt(int(fd), level, option, 1) }); err != nil {
		return err
	}
	return inner
}
