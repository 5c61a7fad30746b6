package machine

import (
	"bytes"
	"encoding/binary"
	"testing"
)

// ethernet returns a frame with an IP packet: a version, a protocol, a TCP header of 32 bytes, and a number of bytes of
// data.
func ethernet(version, protocol byte, data int) []byte {
	const tcpHeader = 32
	packet := make([]byte, 20, 128)
	packet[0], packet[9] = 4<<4|5, protocol
	binary.BigEndian.PutUint16(packet[2:], uint16(20+tcpHeader+data))
	if version == 6 {
		packet = make([]byte, 40, 128)
		packet[0], packet[6] = 6<<4, protocol
		binary.BigEndian.PutUint16(packet[4:], uint16(tcpHeader+data))
	}
	segment := make([]byte, tcpHeader+data)
	segment[12] = tcpHeader / 4 << 4
	return append(make([]byte, 14), append(packet, segment...)...)
}

// TestIsTCPData checks which frames are TCP segments with data.
func TestIsTCPData(t *testing.T) {
	const tcp, udp = 6, 17
	for name, test := range map[string]struct {
		frame []byte
		want  bool
	}{
		"IPv4":                    {ethernet(4, tcp, 1), true},
		"IPv6":                    {ethernet(6, tcp, 1), true},
		"cut off":                 {ethernet(4, tcp, 100)[:14+20+20], true},
		"IPv4, an acknowledgment": {ethernet(4, tcp, 0), false},
		"IPv6, an acknowledgment": {ethernet(6, tcp, 0), false},
		"IPv4, UDP":               {ethernet(4, udp, 50), false},
		"IPv6, UDP":               {ethernet(6, udp, 50), false},
		"within the header":       {ethernet(4, tcp, 100)[:14+20+19], false},
		"ARP":                     {append(make([]byte, 12), 8, 6, 0, 1, 8, 0, 6, 4, 0, 1), false},
		"nothing":                 {nil, false},
	} {
		if got := IsTCPData(test.frame); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func FuzzIsTCPData(f *testing.F) {
	f.Add(ethernet(4, 6, 1))
	f.Add(ethernet(6, 6, 1))
	f.Fuzz(func(t *testing.T, frame []byte) {
		before := bytes.Clone(frame)
		if IsTCPData(frame) && len(frame) < 14+20+20 || !bytes.Equal(frame, before) {
			t.Errorf("%x", frame)
		}
	})
}
