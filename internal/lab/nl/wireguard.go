//go:build linux

package nl

import (
	"errors"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/knotmeter/knotmeter/internal/result"
)

// AddWireGuard makes a WireGuard device of the kernel. The error Is result.ErrNotSupported where it has none.
func (c *Conn) AddWireGuard(l Link) error {
	err := c.handle.LinkAdd(&netlink.Wireguard{LinkAttrs: l.attrs()})
	if errors.Is(err, unix.EOPNOTSUPP) {
		return result.NotSupported("this kernel has no WireGuard (CONFIG_WIREGUARD, since Linux 5.6)")
	}
	return err
}
