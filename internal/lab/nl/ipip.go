//go:build linux

package nl

import (
	"errors"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/knotmeter/knotmeter/internal/result"
)

// AddIPIP makes an IP-in-IP device with an outer source address; the outer destination is the
// next hop of the route. The error Is result.ErrNotSupported where the kernel has no such devices.
func (c *Conn) AddIPIP(l Link, local netip.Addr) error {
	err := c.handle.LinkAdd(&netlink.Iptun{LinkAttrs: l.attrs(), Local: local.AsSlice(), Ttl: 64, PMtuDisc: 1})
	if errors.Is(err, unix.EOPNOTSUPP) {
		return result.NotSupported("this kernel has no ipip devices (CONFIG_NET_IPIP)")
	}
	return err
}
