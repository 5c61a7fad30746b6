package lab

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
)

// Ports of tunnels.
const (
	VXLANPort     = 8472 // UDP; the default of Linux, flannel and Cilium; RFC 7348 has 4789
	WireGuardPort = 51820
	MeshPort      = 15008 // TCP; of HBONE, and so of every mesh of the lab
)

// A packet has the addresses of an IP packet, and the ports of TCP and UDP.
type packet struct {
	Proto    string // tcp, udp, icmp, icmpv6, proto:N
	Src, Dst netip.AddrPort
}

func (p packet) String() string {
	if p.Src.Port() == 0 && p.Dst.Port() == 0 {
		return fmt.Sprintf("%s %s > %s", p.Proto, p.Src.Addr(), p.Dst.Addr())
	}
	return fmt.Sprintf("%s %s > %s", p.Proto, p.Src, p.Dst)
}

// between reports whether the packet goes from one of the addresses to the other.
func (p packet) between(a, b netip.Addr) bool {
	return p.Src.Addr() == a && p.Dst.Addr() == b || p.Src.Addr() == b && p.Dst.Addr() == a
}

// A frame describes an Ethernet frame as far as the datapath check needs: the headers around the innermost packet, and
// that packet's addresses and ports.
type frame struct {
	Src, Dst net.HardwareAddr // of the outermost Ethernet header
	// Layers are the headers between Ethernet and the innermost IP header, from the outside in: "ipv4", "udp:8472",
	// "vxlan:1", "ethernet", "wireguard", "esp", "tcp:15008", "tls". None: a bare packet.
	Layers []string
	// Outer is the outermost IP packet and Inner the innermost. They are equal for a bare packet; Inner is zero within an
	// encrypted layer (wireguard, esp, tls).
	Outer, Inner packet
	// Proxied has the addresses of a segment between two proxies of a mesh, and Record reports whether it begins with a
	// TLS record.
	Proxied packet
	Record  bool
	// IP reports whether there is any IP packet.
	IP bool
	// Sealed reports that the content of the last layer is encrypted.
	Sealed bool
}

// String formats the frame for error messages.
func (f frame) String() string {
	if !f.IP {
		return fmt.Sprintf("%s > %s: not IP", f.Src, f.Dst)
	}
	text := fmt.Sprintf("%s > %s:", f.Src, f.Dst)
	if len(f.Layers) > 0 {
		text += fmt.Sprintf(" [%s] %s > %s", strings.Join(f.Layers, " "), f.Outer.Src.Addr(), f.Outer.Dst.Addr())
	}
	switch {
	case f.Sealed:
		return text + " sealed"
	case f.Inner.Proto == "":
		return text + " not IP"
	}
	return text + " " + f.Inner.String()
}

// dissect parses a frame. Any input is valid: the list of layers ends at the first header that cannot be parsed.
func dissect(data []byte) frame {
	var f frame
	if len(data) < 14 {
		return f
	}
	f.Dst, f.Src = slices.Clone(data[0:6]), slices.Clone(data[6:12])
	f.ethernet(data)
	return f
}

const (
	etherIPv4 = 0x0800
	etherIPv6 = 0x86dd
)

func (f *frame) ethernet(data []byte) {
	if len(data) < 14 {
		return
	}
	switch binary.BigEndian.Uint16(data[12:]) {
	case etherIPv4:
		f.ipv4(data[14:])
	case etherIPv6:
		f.ipv6(data[14:])
	}
}

func (f *frame) ipv4(data []byte) {
	if len(data) < 20 || data[0]>>4 != 4 {
		return
	}
	header, total := int(data[0]&15)*4, int(binary.BigEndian.Uint16(data[2:]))
	if header < 20 || header > len(data) {
		return
	}
	src, _ := netip.AddrFromSlice(data[12:16])
	dst, _ := netip.AddrFromSlice(data[16:20])
	// The length may be 0 in a large packet that the kernel has not segmented yet.
	if total >= header && total < len(data) {
		data = data[:total]
	}
	fragment := binary.BigEndian.Uint16(data[6:])&0x3fff != 0
	f.packet("ipv4", data[9], fragment, src, dst, data[header:])
}

func (f *frame) ipv6(data []byte) {
	if len(data) < 40 || data[0]>>4 != 6 {
		return
	}
	src, _ := netip.AddrFromSlice(data[8:24])
	dst, _ := netip.AddrFromSlice(data[24:40])
	f.packet("ipv6", data[6], false, src, dst, data[40:])
}

// packet parses the content of an IP packet. Its header becomes a layer only if a tunnel is inside, or if it is a
// fragment.
func (f *frame) packet(ip string, proto byte, fragment bool, src, dst netip.Addr, data []byte) {
	p := packet{Src: netip.AddrPortFrom(src, 0), Dst: netip.AddrPortFrom(dst, 0)}
	if !f.IP {
		f.Outer, f.IP = p, true
	}
	if fragment {
		ip += "-fragment"
	}
	switch proto {
	case 4:
		f.Layers = append(f.Layers, ip)
		f.ipv4(data)
		return
	case 41:
		f.Layers = append(f.Layers, ip)
		f.ipv6(data)
		return
	case 50:
		f.Layers, f.Sealed = append(f.Layers, ip, "esp"), true
		return
	case 6, 17:
		if len(data) >= 4 && !fragment {
			p.Src = netip.AddrPortFrom(src, binary.BigEndian.Uint16(data))
			p.Dst = netip.AddrPortFrom(dst, binary.BigEndian.Uint16(data[2:]))
		}
	}
	if proto == 17 && f.udp(ip, p, data) || proto == 6 && f.mesh(p, data) {
		return
	}
	if fragment {
		f.Layers = append(f.Layers, ip)
	}
	p.Proto = protocol(proto)
	f.Inner = p
	if len(f.Layers) == 0 {
		f.Outer = p
	}
}

// udp parses a tunnel over UDP, and reports whether the datagram belongs to one.
func (f *frame) udp(ip string, p packet, data []byte) bool {
	if len(data) < 16 {
		return false
	}
	port, data := p.Dst.Port(), data[8:]
	switch {
	case port == VXLANPort && data[0]&0x08 != 0:
		vni := binary.BigEndian.Uint32(data[4:]) >> 8
		f.Layers = append(f.Layers, ip, fmt.Sprintf("udp:%d", port), fmt.Sprintf("vxlan:%d", vni), "ethernet")
		f.ethernet(data[8:])
		return true
	case (port == WireGuardPort || p.Src.Port() == WireGuardPort) &&
		data[0] >= 1 && data[0] <= 4 && data[1]|data[2]|data[3] == 0:
		f.Layers, f.Sealed = append(f.Layers, ip, fmt.Sprintf("udp:%d", WireGuardPort), "wireguard"), true
		return true
	}
	return false
}

// mesh parses a segment between two proxies of a mesh, and reports whether it is empty or begins with a TLS record, or
// with the header of the PROXY protocol, which has only addresses. [frame.within] is for one that begins in a record.
func (f *frame) mesh(p packet, data []byte) bool {
	if p.Src.Port() != MeshPort && p.Dst.Port() != MeshPort || len(data) < 20 {
		return false
	}
	header := int(data[12]>>4) * 4
	if header < 20 || header > len(data) {
		return false
	}
	f.Proxied = p
	data = data[header:]
	const signature = "\r\n\r\n\x00\r\nQUIT\n"
	if len(data) >= 16 && string(data[:len(signature)]) == signature {
		data = data[min(len(data), 16+int(binary.BigEndian.Uint16(data[14:]))):]
	}
	// A record has a type from 20 to 23, and version 3.x.
	if len(data) > 0 && (len(data) < 3 || data[0] < 20 || data[0] > 23 || data[1] != 3) {
		return false
	}
	f.Record = len(data) > 0
	f.seal()
	return true
}

// seal adds the layers of a TLS connection between proxies.
func (f *frame) seal() {
	f.Layers, f.Sealed = append(f.Layers, fmt.Sprintf("tcp:%d", MeshPort), "tls"), true
}

// within seals a segment that begins within a TLS record, as segments do when several records are sent at once. It is
// one if a segment before it, of the same connection and direction, began with a record; begun keeps those.
func (f *frame) within(begun map[packet]bool) {
	switch {
	case f.Record:
		begun[f.Proxied] = true
	case !f.Sealed && begun[f.Proxied]:
		f.seal()
	}
}

func protocol(number byte) string {
	switch number {
	case 1:
		return "icmp"
	case 6:
		return "tcp"
	case 17:
		return "udp"
	case 58:
		return "icmpv6"
	}
	return fmt.Sprintf("proto:%d", number)
}
