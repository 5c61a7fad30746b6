package preflight

import (
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"

	"github.com/knotmeter/knotmeter/internal/result"
)

// qdisc names the queueing discipline of what a device sends: the root, and in brackets those within it where it has
// several queues. Any user may ask for it.
func qdisc(device string) string {
	i, err := net.InterfaceByName(device)
	if err != nil {
		return result.Unknown
	}
	// What comes with an error is good: the kernel's list may change while it is read.
	all, _ := netlink.QdiscList(&netlink.Device{LinkAttrs: netlink.LinkAttrs{Index: i.Index}})
	return describe(all)
}

func describe(all []netlink.Qdisc) string {
	root, within := result.Unknown, []string{}
	for _, d := range all {
		switch kind := d.Type(); {
		case kind == "ingress" || kind == "clsact":
		case d.Attrs().Parent == netlink.HANDLE_ROOT:
			root = kind
		case !slices.Contains(within, kind):
			within = append(within, kind)
		}
	}
	if root == result.Unknown || len(within) == 0 {
		return root
	}
	slices.Sort(within)
	return fmt.Sprintf("%s (%s)", root, strings.Join(within, ", "))
}
