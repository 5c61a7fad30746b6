package machine

import (
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"

	"github.com/knotmeter/knotmeter/internal/result"
)

// qdisc returns the queueing disciplines of a device in the format of describeQdiscs. It needs no privileges.
func qdisc(device string) string {
	i, err := net.InterfaceByName(device)
	if err != nil {
		return result.Unknown
	}
	// The list is usable even with an error, which may only report that the list changed while it was read.
	all, _ := netlink.QdiscList(&netlink.Device{LinkAttrs: netlink.LinkAttrs{Index: i.Index}})
	return describeQdiscs(all)
}

// describeQdiscs returns the root discipline, and in parentheses the kinds within it if it has several queues.
func describeQdiscs(all []netlink.Qdisc) string {
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
