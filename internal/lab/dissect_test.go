package lab

import (
	"encoding/binary"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

// The builders below write headers from the inside out.

func ethernet(kind uint16, payload []byte) []byte {
	frame := []byte{2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1}
	return append(binary.BigEndian.AppendUint16(frame, kind), payload...)
}

func ip4(proto byte, src, dst string, payload []byte) []byte {
	h := make([]byte, 20)
	h[0], h[8], h[9] = 0x45, 64, proto
	binary.BigEndian.PutUint16(h[2:], uint16(20+len(payload)))
	copy(h[12:], netip.MustParseAddr(src).AsSlice())
	copy(h[16:], netip.MustParseAddr(dst).AsSlice())
	return append(h, payload...)
}

func ip6(proto byte, src, dst string, payload []byte) []byte {
	h := make([]byte, 40)
	h[0], h[6], h[7] = 0x60, proto, 64
	binary.BigEndian.PutUint16(h[4:], uint16(len(payload)))
	copy(h[8:], netip.MustParseAddr(src).AsSlice())
	copy(h[24:], netip.MustParseAddr(dst).AsSlice())
	return append(h, payload...)
}

func udp(src, dst uint16, payload []byte) []byte {
	h := make([]byte, 8)
	binary.BigEndian.PutUint16(h, src)
	binary.BigEndian.PutUint16(h[2:], dst)
	binary.BigEndian.PutUint16(h[4:], uint16(8+len(payload)))
	return append(h, payload...)
}

func tcp(src, dst uint16) []byte {
	h := make([]byte, 20)
	binary.BigEndian.PutUint16(h, src)
	binary.BigEndian.PutUint16(h[2:], dst)
	return h
}

// segment is a TCP segment with data.
func segment(src, dst uint16, data string) []byte {
	h := tcp(src, dst)
	h[12] = 5 << 4 // the header's length in words
	return append(h, data...)
}

// proxyHeader is a header of the PROXY protocol, version 2, with one byte of addresses.
const proxyHeader = "\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x01a"

func vxlan(id byte, payload []byte) []byte {
	return append([]byte{8, 0, 0, 0, 0, 0, id, 0}, payload...)
}

func fragment(packet []byte, offset uint16) []byte {
	p := slices.Clone(packet)
	binary.BigEndian.PutUint16(p[6:], offset)
	return p
}

const (
	v4 = 0x0800
	v6 = 0x86dd
)

func TestDissect(t *testing.T) {
	pods := ip4(17, "10.244.1.11", "10.244.2.11", udp(40000, 5201, []byte("hello")))
	pods6 := ip6(6, "fd00:244:0:1::b", "fd00:244:0:2::b", tcp(40000, 5201))
	for _, c := range []struct {
		name  string
		frame []byte
		want  string // the frame's own text without the hardware addresses
	}{
		{"bare", ethernet(v4, pods), "udp 10.244.1.11:40000 > 10.244.2.11:5201"},
		{"bare, IPv6", ethernet(v6, pods6), "tcp [fd00:244:0:1::b]:40000 > [fd00:244:0:2::b]:5201"},
		{"VXLAN", ethernet(v4, ip4(17, "10.0.0.1", "10.0.0.2", udp(33333, 8472, vxlan(1, ethernet(v4, pods))))),
			"[ipv4 udp:8472 vxlan:1 ethernet] 10.0.0.1 > 10.0.0.2 udp 10.244.1.11:40000 > 10.244.2.11:5201"},
		{"VXLAN over IPv6", ethernet(v6, ip6(17, "fd00::1", "fd00::2", udp(33333, 8472, vxlan(77, ethernet(v6, pods6))))),
			"[ipv6 udp:8472 vxlan:77 ethernet] fd00::1 > fd00::2 tcp [fd00:244:0:1::b]:40000 > [fd00:244:0:2::b]:5201"},
		{"IP in IP", ethernet(v4, ip4(4, "10.0.0.1", "10.0.0.2", pods)),
			"[ipv4] 10.0.0.1 > 10.0.0.2 udp 10.244.1.11:40000 > 10.244.2.11:5201"},
		{"IPv6 in IP", ethernet(v4, ip4(41, "10.0.0.1", "10.0.0.2", pods6)),
			"[ipv4] 10.0.0.1 > 10.0.0.2 tcp [fd00:244:0:1::b]:40000 > [fd00:244:0:2::b]:5201"},
		{"WireGuard", ethernet(v4, ip4(17, "10.0.0.1", "10.0.0.2",
			udp(51820, 51820, append([]byte{4, 0, 0, 0}, make([]byte, 28)...)))),
			"[ipv4 udp:51820 wireguard] 10.0.0.1 > 10.0.0.2 sealed"},
		{"not WireGuard", ethernet(v4, ip4(17, "10.0.0.1", "10.0.0.2", udp(51820, 51820, []byte("anything else")))),
			"udp 10.0.0.1:51820 > 10.0.0.2:51820"},
		{"ESP", ethernet(v4, ip4(50, "10.0.0.1", "10.0.0.2", make([]byte, 40))), "[ipv4 esp] 10.0.0.1 > 10.0.0.2 sealed"},
		{"a mesh", ethernet(v4, ip4(6, "10.244.1.1", "10.244.2.1", segment(40000, 15008, "\x17\x03\x03data"))),
			"[tcp:15008 tls] 10.244.1.1 > 10.244.2.1 sealed"},
		{"a mesh's acknowledgement", ethernet(v4, ip4(6, "10.244.2.1", "10.244.1.1", segment(15008, 40000, ""))),
			"[tcp:15008 tls] 10.244.2.1 > 10.244.1.1 sealed"},
		{"a mesh's PROXY header", ethernet(v4, ip4(6, "10.244.1.1", "10.244.2.1",
			segment(40000, 15008, proxyHeader+"\x16\x03\x01data"))), "[tcp:15008 tls] 10.244.1.1 > 10.244.2.1 sealed"},
		{"a mesh in VXLAN", ethernet(v4, ip4(17, "10.0.0.1", "10.0.0.2", udp(3, 8472, vxlan(1, ethernet(v4,
			ip4(6, "10.244.1.1", "10.244.2.1", segment(40000, 15008, "\x17\x03\x03"))))))),
			"[ipv4 udp:8472 vxlan:1 ethernet tcp:15008 tls] 10.0.0.1 > 10.0.0.2 sealed"},
		{"a mesh without TLS", ethernet(v4, ip4(6, "10.244.1.1", "10.244.2.1", segment(40000, 15008, "PRI * HTTP/2.0"))),
			"tcp 10.244.1.1:40000 > 10.244.2.1:15008"},
		{"a mesh's data after the PROXY header", ethernet(v4, ip4(6, "10.244.1.1", "10.244.2.1",
			segment(40000, 15008, proxyHeader+"data"))), "tcp 10.244.1.1:40000 > 10.244.2.1:15008"},
		{"a fragment", ethernet(v4, fragment(pods, 100)),
			"[ipv4-fragment] 10.244.1.11 > 10.244.2.11 udp 10.244.1.11 > 10.244.2.11"},
		{"do not fragment", ethernet(v4, fragment(pods, 0x4000)), "udp 10.244.1.11:40000 > 10.244.2.11:5201"},
		{"ICMP", ethernet(v4, ip4(1, "10.0.0.1", "10.0.0.2", make([]byte, 8))), "icmp 10.0.0.1 > 10.0.0.2"},
		{"ARP", ethernet(0x0806, make([]byte, 28)), "not IP"},
		{"ARP in VXLAN", ethernet(v4, ip4(17, "10.0.0.1", "10.0.0.2",
			udp(3, 8472, vxlan(1, ethernet(0x0806, make([]byte, 28)))))),
			"[ipv4 udp:8472 vxlan:1 ethernet] 10.0.0.1 > 10.0.0.2 not IP"},
	} {
		got := strings.TrimPrefix(dissect(c.frame).String(), "02:00:00:00:00:01 > 02:00:00:00:00:02: ")
		if got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", c.name, got, c.want)
		}
	}
}

// TestWithinRecords checks that a mesh's data may begin within a record once its connection has sent one, and not after
// segments without data.
func TestWithinRecords(t *testing.T) {
	mesh := func(data string) []byte {
		return ethernet(etherIPv4, ip4(6, "10.244.1.1", "10.244.2.1", segment(40000, MeshPort, data)))
	}
	back := ethernet(etherIPv4, ip4(6, "10.244.2.1", "10.244.1.1", segment(MeshPort, 40000, "\x17\x03\x03")))
	mac := func(last byte) net.HardwareAddr { return net.HardwareAddr{2, 0, 0, 0, 0, last} }
	for name, c := range map[string]struct {
		third string
		first []byte
		want  string
	}{
		"within a record": {"more", mesh("\x17\x03\x03"), ""},
		"after SYN":       {"more", mesh(""), "the headers on the underlay are not the datapath's"},
		"other direction": {"more", back, "the headers on the underlay are not the datapath's"},
		"readable":        {"token", mesh("\x17\x03\x03"), "was readable on the underlay"},
	} {
		fromServer := slices.Clone(back)
		copy(fromServer, mac(1))
		copy(fromServer[6:], mac(2))
		e := evidence{token: []byte("token"), clientMAC: mac(1), serverMAC: mac(2),
			frames: [][]byte{c.first, mesh(""), mesh(c.third), fromServer, fromServer}}
		got := ""
		if err := judge(Wire{Layers: []string{"tcp:15008", "tls"}, Sealed: true}, e); err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestQuotedDataIsNoData checks that ICMPv6 errors, which quote a datagram and come from other addresses, do not count
// as data.
func TestQuotedDataIsNoData(t *testing.T) {
	const client, server, token = "fd00::1", "fd00::2", "the token"
	mac := net.HardwareAddr{2, 0, 0, 0, 0, 1}
	e := evidence{token: []byte(token), client: netip.MustParseAddr(client), server: netip.MustParseAddr(server),
		clientMAC: mac, serverMAC: mac}
	datagram := ip6(17, client, server, udp(1, 2, []byte(token)))
	e.frames = [][]byte{
		ethernet(v6, ip6(58, "fe80::2", client, append([]byte{1, 4, 0, 0, 0, 0, 0, 0}, datagram...))),
		ethernet(v6, datagram),
		ethernet(v6, ip6(17, server, client, udp(2, 1, []byte(token)))),
		ethernet(v6, ip6(6, client, server, append(tcp(1, 2), token...))),
		ethernet(v6, ip6(6, server, client, append(tcp(2, 1), token...))),
	}
	if err := judge(Wire{}, e); err != nil {
		t.Error(err)
	}
	e.frames[1] = ethernet(v6, ip6(17, "fe80::2", server, udp(1, 2, []byte(token))))
	if err := judge(Wire{}, e); err == nil {
		t.Error("data from another address are not noticed")
	}
}

func TestBetween(t *testing.T) {
	p := dissect(ethernet(v4, ip4(17, "10.0.0.1", "10.0.0.2", udp(1, 2, nil)))).Inner
	a, b, c := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2"), netip.MustParseAddr("10.0.0.3")
	if !p.between(a, b) || !p.between(b, a) || p.between(a, c) || p.between(a, a) {
		t.Errorf("%s is between 10.0.0.1 and 10.0.0.2 and no others", p)
	}
}

// FuzzDissect checks that any frame can be dissected, without a change of it or a reference to it in the result.
func FuzzDissect(f *testing.F) {
	pods := ip4(17, "10.244.1.11", "10.244.2.11", udp(40000, 5201, []byte("hello")))
	for _, seed := range [][]byte{
		nil, make([]byte, 14), ethernet(v4, pods), ethernet(v6, ip6(6, "::1", "::2", tcp(1, 2))),
		ethernet(v4, ip4(17, "10.0.0.1", "10.0.0.2", udp(33333, 8472, vxlan(1, ethernet(v4, pods))))),
		ethernet(v4, ip4(4, "10.0.0.1", "10.0.0.2", pods)), ethernet(v4, ip4(50, "10.0.0.1", "10.0.0.2", nil)),
		ethernet(v4, ip4(17, "10.0.0.1", "10.0.0.2", udp(51820, 51820, append([]byte{4, 0, 0, 0}, make([]byte, 28)...)))),
		ethernet(v4, ip4(6, "10.244.1.1", "10.244.2.1", segment(40000, 15008, proxyHeader+"\x16\x03\x01"))),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		original := slices.Clone(data)
		frame := dissect(data)
		if !slices.Equal(original, data) {
			t.Error("the frame was changed")
		}
		text := frame.String()
		if len(frame.Layers) > 0 && !frame.IP {
			t.Errorf("layers without an IP packet: %s", text)
		}
		if frame.Sealed && frame.Inner.Proto != "" {
			t.Errorf("something was seen in a sealed layer: %s", text)
		}
		if clear(data); dissect(original).String() != text {
			t.Error("the result refers to the frame's own bytes")
		}
	})
}
