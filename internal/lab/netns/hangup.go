//go:build linux

package netns

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// HangUp ends the TCP connections that processes have left behind in the namespace of the calling thread, which the
// caller has locked. The kernel would go on for minutes to say goodbye to a peer that it cannot reach any more, and
// hold the namespace for as long. A kernel that cannot do it (CONFIG_INET_DIAG_DESTROY) is left to its own ways.
func HangUp() error {
	if left, err := inUse(); err != nil || left == 0 {
		return err
	}
	h, err := netlink.NewHandle(unix.NETLINK_INET_DIAG)
	if err != nil {
		return fmt.Errorf("open a socket for connections: %w", err)
	}
	defer h.Close()
	for _, family := range []uint8{unix.AF_INET, unix.AF_INET6} {
		sockets, err := h.SocketDiagTCP(family)
		if err != nil && !errors.Is(err, netlink.ErrDumpInterrupted) {
			return ignoreUnsupported(fmt.Errorf("list connections: %w", err))
		}
		for _, s := range sockets {
			if s.State == netlink.TCP_TIME_WAIT || s.State == netlink.TCP_LISTEN {
				continue // these hold nothing
			}
			if err := end(connection{family, s.ID}); err != nil && !errors.Is(err, unix.ENOENT) { // by itself
				return ignoreUnsupported(fmt.Errorf("end a connection from %s to %s: %w", s.ID.Source, s.ID.Destination, err))
			}
		}
	}
	return nil
}

// A connection is one of TCP as the kernel is asked for it: struct inet_diag_req_v2.
type connection struct {
	family uint8
	id     netlink.SocketID
}

// Len is the size of the request.
func (c connection) Len() int { return len(c.Serialize()) }

// Serialize is the request: ports and addresses in the network's order, the rest in the machine's.
func (c connection) Serialize() []byte {
	b := []byte{c.family, unix.IPPROTO_TCP, 0, 0}
	b = binary.NativeEndian.AppendUint32(b, 0) // states, which only lists are of
	b = binary.BigEndian.AppendUint16(b, c.id.SourcePort)
	b = binary.BigEndian.AppendUint16(b, c.id.DestinationPort)
	b = append(append(b, c.address(c.id.Source)...), c.address(c.id.Destination)...)
	for _, word := range []uint32{c.id.Interface, c.id.Cookie[0], c.id.Cookie[1]} {
		b = binary.NativeEndian.AppendUint32(b, word)
	}
	return b
}

// address is one in the 16 bytes that the kernel has for it, of which IPv4 takes the first four.
func (c connection) address(ip net.IP) []byte {
	if c.family == unix.AF_INET {
		return slices.Concat(ip.To4(), make([]byte, net.IPv6len-net.IPv4len))
	}
	return ip.To16()
}

// end has the kernel end a connection. The library's own SocketDestroy does so for IPv4 alone.
func end(c connection) error {
	request := nl.NewNetlinkRequest(nl.SOCK_DESTROY, unix.NLM_F_ACK)
	request.AddData(c)
	_, err := request.Execute(unix.NETLINK_INET_DIAG, 0)
	return err
}

// inUse counts the TCP sockets of the namespace, without those in TIME_WAIT. The kernel keeps that count, and takes
// milliseconds to list what it counts, even if that is nothing.
func inUse() (int, error) {
	n := 0
	for _, file := range []string{"sockstat", "sockstat6"} {
		text, err := os.ReadFile("/proc/thread-self/net/" + file)
		if errors.Is(err, os.ErrNotExist) {
			continue // no IPv6
		}
		if err != nil {
			return 0, fmt.Errorf("count connections: %w", err)
		}
		for line := range strings.Lines(string(text)) {
			sockets := 0
			if k, _ := fmt.Sscanf(line, "TCP: inuse %d", &sockets); k == 0 {
				_, _ = fmt.Sscanf(line, "TCP6: inuse %d", &sockets)
			}
			n += sockets
		}
	}
	return n, nil
}

func ignoreUnsupported(err error) error {
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOENT) {
		return nil
	}
	return err
}
