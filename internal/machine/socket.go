package machine

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strconv"
	"strings"
)

// A Socket is a TCP socket of a network namespace that listens or is connected. Addresses that map IPv4 into IPv6 are
// IPv4 addresses here.
type Socket struct {
	Local     netip.AddrPort `json:"local"`
	Remote    netip.AddrPort `json:"remote,omitzero"` // not valid if it listens
	Listening bool           `json:"listening,omitempty"`
}

// States of sockets in /proc/net/tcp that are kept: the numbers of TCP_ESTABLISHED and TCP_LISTEN in the kernel.
const (
	stateEstablished = "01"
	stateListen      = "0A"
)

// maxSockets limits the sockets that are read. A pod of an experiment has a few of them.
const maxSockets = 4096

var (
	errSocketTable = errors.New("not a table of sockets as in /proc/net/tcp")
	errSockets     = fmt.Errorf("more than %d sockets in the network namespace", maxSockets)
)

// ParseSockets parses /proc/net/tcp or /proc/net/tcp6: a heading, then a line for each socket. It leaves out sockets
// that neither listen nor are connected, such as those in TIME_WAIT.
func ParseSockets(r io.Reader) ([]Socket, error) {
	var list []Socket
	lines := bufio.NewScanner(r)
	for heading := true; lines.Scan(); heading = false {
		fields := strings.Fields(lines.Text())
		if len(fields) < 4 {
			return nil, fmt.Errorf("%w: %q", errSocketTable, lines.Text())
		}
		if heading || fields[3] != stateEstablished && fields[3] != stateListen {
			continue
		}
		s := Socket{Listening: fields[3] == stateListen}
		var err error
		if s.Local, err = parseEnd(fields[1]); err != nil {
			return nil, err
		}
		if !s.Listening {
			if s.Remote, err = parseEnd(fields[2]); err != nil {
				return nil, err
			}
		}
		if list = append(list, s); len(list) > maxSockets {
			return nil, errSockets
		}
	}
	return list, lines.Err()
}

// parseEnd parses an address and a port as the kernel prints them: the address in words of 32 bits, each as a number in
// the byte order of the machine, which is little-endian on all architectures that this program is built for.
func parseEnd(text string) (netip.AddrPort, error) {
	address, port, _ := strings.Cut(text, ":")
	octets, err := hex.DecodeString(address)
	number, portErr := strconv.ParseUint(port, 16, 16)
	if err = errors.Join(err, portErr); err == nil && len(octets) != 4 && len(octets) != 16 {
		err = errors.New("no address of 4 or 16 bytes")
	}
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("%w: %q: %w", errSocketTable, text, err)
	}
	for i := 0; i < len(octets); i += 4 {
		binary.LittleEndian.PutUint32(octets[i:], binary.BigEndian.Uint32(octets[i:]))
	}
	ip, _ := netip.AddrFromSlice(octets)
	return netip.AddrPortFrom(ip.Unmap(), uint16(number)), nil
}
