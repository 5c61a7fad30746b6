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

// AbortConnections aborts the TCP connections that processes have left in the namespace of the calling thread, which
// the caller must have locked. Otherwise the kernel would retransmit to unreachable peers for minutes, and hold the
// namespace as long. It does nothing on kernels without CONFIG_INET_DIAG_DESTROY.
func AbortConnections() error {
	if left, err := countSockets(); err != nil || left == 0 {
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
				continue // these do not hold the namespace
			}
			if err := destroySocket(connection{family, s.ID}); err != nil && !errors.Is(err, unix.ENOENT) { // it ended by itself
				return ignoreUnsupported(fmt.Errorf("end a connection from %s to %s: %w", s.ID.Source, s.ID.Destination, err))
			}
		}
	}
	return nil
}

// A connection identifies a TCP connection in requests: struct inet_diag_req_v2.
type connection struct {
	family uint8
	id     netlink.SocketID
}

// Len returns the size of the request.
func (c connection) Len() int { return len(c.Serialize()) }

// Serialize returns the request, with ports and addresses in network byte order and the rest in native byte order.
func (c connection) Serialize() []byte {
	b := []byte{c.family, unix.IPPROTO_TCP, 0, 0}
	b = binary.NativeEndian.AppendUint32(b, 0) // states, used by list requests only
	b = binary.BigEndian.AppendUint16(b, c.id.SourcePort)
	b = binary.BigEndian.AppendUint16(b, c.id.DestinationPort)
	b = append(append(b, c.address(c.id.Source)...), c.address(c.id.Destination)...)
	for _, word := range []uint32{c.id.Interface, c.id.Cookie[0], c.id.Cookie[1]} {
		b = binary.NativeEndian.AppendUint32(b, word)
	}
	return b
}

// address returns an address in the kernel's field of 16 bytes, of which IPv4 uses the first four.
func (c connection) address(ip net.IP) []byte {
	if c.family == unix.AF_INET {
		return slices.Concat(ip.To4(), make([]byte, net.IPv6len-net.IPv4len))
	}
	return ip.To16()
}

// destroySocket makes the kernel abort a connection. The library's own SocketDestroy supports IPv4 only.
func destroySocket(c connection) error {
	request := nl.NewNetlinkRequest(nl.SOCK_DESTROY, unix.NLM_F_ACK)
	request.AddData(c)
	_, err := request.Execute(unix.NETLINK_INET_DIAG, 0)
	return err
}

// countSockets returns the number of TCP sockets of the namespace, except for those in TIME_WAIT. The kernel maintains
// this number; listing sockets takes milliseconds even if there are none.
func countSockets() (int, error) {
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
