package preflight

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/knotmeter/knotmeter/internal/result"
)

// A discipline is a queueing discipline of a device, as the kernel lists it.
type discipline struct {
	device int
	root   bool
	kind   string
}

// qdisc names the discipline of what a device sends: the root, and in brackets those within it where it has several
// queues. Anybody may ask for it.
func qdisc(device int) string {
	answer, err := askQdiscs()
	if err != nil {
		return result.Unknown
	}
	all, err := parseQdiscs(answer)
	if err != nil {
		return result.Unknown
	}
	return describe(all, device)
}

func describe(all []discipline, device int) string {
	root, within := "", []string{}
	for _, d := range all {
		switch {
		case d.device != device || d.kind == "ingress" || d.kind == "clsact":
		case d.root:
			root = d.kind
		case !slices.Contains(within, d.kind):
			within = append(within, d.kind)
		}
	}
	if root == "" {
		return result.Unknown
	}
	if len(within) == 0 {
		return root
	}
	slices.Sort(within)
	return fmt.Sprintf("%s (%s)", root, strings.Join(within, ", "))
}

// Of <linux/rtnetlink.h> and <linux/pkt_sched.h>.
const (
	sizeofTcMsg = 20
	tcaKind     = 1
	rootHandle  = 0xffffffff
	answerTime  = 1 // seconds
)

// askQdiscs is the kernel's list of all disciplines, as netlink messages.
func askQdiscs() ([]byte, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: answerTime}); err != nil {
		return nil, err
	}
	request := make([]byte, unix.SizeofNlMsghdr+sizeofTcMsg)
	binary.NativeEndian.PutUint32(request[0:], uint32(len(request)))
	binary.NativeEndian.PutUint16(request[4:], unix.RTM_GETQDISC)
	binary.NativeEndian.PutUint16(request[6:], unix.NLM_F_REQUEST|unix.NLM_F_DUMP)
	if err := unix.Sendto(fd, request, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return nil, err
	}
	var all []byte
	part := make([]byte, 64<<10)
	for {
		n, _, err := unix.Recvfrom(fd, part, 0)
		if err != nil {
			return nil, err
		}
		all = append(all, part[:n]...)
		if last(part[:n]) {
			return all, nil
		}
	}
}

// last says whether a part of an answer has its end in it.
func last(part []byte) bool {
	messages, err := syscall.ParseNetlinkMessage(part)
	if err != nil {
		return true
	}
	return slices.ContainsFunc(messages, func(m syscall.NetlinkMessage) bool {
		return m.Header.Type == unix.NLMSG_DONE || m.Header.Type == unix.NLMSG_ERROR
	})
}

// parseQdiscs reads the kernel's list.
func parseQdiscs(answer []byte) ([]discipline, error) {
	messages, err := syscall.ParseNetlinkMessage(answer)
	if err != nil {
		return nil, fmt.Errorf("the kernel's list of queueing disciplines: %w", err)
	}
	var all []discipline
	for _, m := range messages {
		if m.Header.Type != unix.RTM_NEWQDISC || len(m.Data) < sizeofTcMsg {
			continue
		}
		d := discipline{
			device: int(int32(binary.NativeEndian.Uint32(m.Data[4:]))),
			root:   binary.NativeEndian.Uint32(m.Data[12:]) == rootHandle,
		}
		for rest := m.Data[sizeofTcMsg:]; len(rest) >= unix.SizeofRtAttr; {
			length := int(binary.NativeEndian.Uint16(rest))
			if length < unix.SizeofRtAttr || length > len(rest) {
				break
			}
			if binary.NativeEndian.Uint16(rest[2:]) == tcaKind {
				d.kind = unix.ByteSliceToString(rest[unix.SizeofRtAttr:length])
			}
			rest = rest[min(len(rest), (length+3)&^3):]
		}
		if d.kind != "" {
			all = append(all, d)
		}
	}
	return all, nil
}
