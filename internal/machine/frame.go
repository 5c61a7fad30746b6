package machine

import "encoding/binary"

// IsTCPData reports whether an Ethernet frame is a TCP segment with data, over IPv4 or over IPv6 without extension
// headers. The frame may be cut off after its headers.
func IsTCPData(frame []byte) bool {
	const ethernetHeader, ipv4Header, ipv6Header, tcpHeader, tcp = 14, 20, 40, 20, 6
	if len(frame) < ethernetHeader+ipv4Header {
		return false
	}
	packet := frame[ethernetHeader:]
	header, length := 0, 0 // of the IP packet, in bytes
	switch version := packet[0] >> 4; {
	case version == 4 && packet[9] == tcp:
		header, length = int(packet[0]&0xf)*4, int(binary.BigEndian.Uint16(packet[2:]))
	case version == 6 && packet[6] == tcp:
		header, length = ipv6Header, ipv6Header+int(binary.BigEndian.Uint16(packet[4:]))
	default:
		return false
	}
	return len(packet) >= header+tcpHeader && length > header+int(packet[header+12]>>4)*4
}
