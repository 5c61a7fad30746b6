//go:build linux

package nl

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// HangUp ends the TCP connections that processes have left behind in the namespace of the calling thread, which the
// caller has locked. The kernel would go on for minutes to say goodbye to a peer that it cannot reach any more, and hold
// the namespace for as long. A kernel that cannot do it (CONFIG_INET_DIAG_DESTROY) is left to its own ways.
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
			local := &net.TCPAddr{IP: s.ID.Source, Port: int(s.ID.SourcePort)}
			remote := &net.TCPAddr{IP: s.ID.Destination, Port: int(s.ID.DestinationPort)}
			err := h.SocketDestroy(local, remote)
			if err != nil && !errors.Is(err, unix.ENOENT) { // it may have ended by itself
				return ignoreUnsupported(fmt.Errorf("end the connection from %s to %s: %w", local, remote, err))
			}
		}
	}
	return nil
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
