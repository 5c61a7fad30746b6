package machine

import (
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const socketHeading = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid\n"

// TestParseSockets checks lines as the kernel prints them: a listener, a connection that a proxy took over, a socket in
// TIME_WAIT, and IPv6 addresses, one of which maps an IPv4 address.
func TestParseSockets(t *testing.T) {
	const rest = " 00000000:00000000 00:00000000 00000000  1337        0 81234 1 0000000000000000 100 0 0 10 0\n"
	at := netip.MustParseAddrPort
	for text, want := range map[string][]Socket{
		"": nil, socketHeading: nil,
		socketHeading + "   0: 00000000:3A99 00000000:0000 0A" + rest: {{Local: at("0.0.0.0:15001"), Listening: true}},
		socketHeading + "   1: 0100007F:3A99 0701F40A:C2A8 01" + rest: {{Local: at("127.0.0.1:15001"),
			Remote: at("10.244.1.7:49832")}},
		socketHeading + "   2: 0701F40A:C2A8 0802F40A:1451 06" + rest: nil,
		socketHeading + "   0: 00000000000000000000000000000000:3AA0 00000000000000000000000000000000:0000 0A" + rest +
			"   1: 0000000000000000FFFF00000701F40A:3AA0 0000000000000000FFFF00000802F40A:B3E2 01" + rest +
			"   2: B80D0120000000000000000001000000:0050 00000000000000000000000001000000:0051 01" + rest: {
			{Local: at("[::]:15008"), Listening: true},
			{Local: at("10.244.1.7:15008"), Remote: at("10.244.2.8:46050")},
			{Local: at("[2001:db8::1]:80"), Remote: at("[::1]:81")},
		},
	} {
		got, err := ParseSockets(strings.NewReader(text))
		if err != nil {
			t.Errorf("%q: %v", text, err)
		}
		if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b })); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	}
}

func TestParseSocketsErrors(t *testing.T) {
	for _, line := range []string{
		"0: 0100007F:3A99 00000000", "0: 0100007F 00000000:0000 0A", "0: 0100007G:3A99 00000000:0000 0A",
		"0: 0100:3A99 00000000:0000 0A", "0: 0100007F:3A99 0701F40A:10000 01", "0: 0100007F:3A99 : 01",
	} {
		if got, err := ParseSockets(strings.NewReader(socketHeading + line)); !errors.Is(err, errSocketTable) {
			t.Errorf("%q: %v, %v", line, got, err)
		}
	}
	many := socketHeading + strings.Repeat("0: 0100007F:3A99 00000000:0000 0A\n", maxSockets+1)
	if _, err := ParseSockets(strings.NewReader(many)); !errors.Is(err, errSockets) {
		t.Errorf("too many: %v", err)
	}
}

// TestSockets checks that the sockets of a real connection are found, both of its ends and the listener.
func TestSockets(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	list, err := Sockets()
	if err != nil {
		t.Fatal(err)
	}
	server, client := netip.MustParseAddrPort(l.Addr().String()), netip.MustParseAddrPort(c.LocalAddr().String())
	for _, want := range []Socket{{Local: server, Listening: true}, {Local: client, Remote: server},
		{Local: server, Remote: client}} {
		if !slices.Contains(list, want) {
			t.Errorf("%+v is missing in %+v", want, list)
		}
	}
}

func FuzzParseSockets(f *testing.F) {
	f.Add(socketHeading + "   1: 0100007F:3A99 0701F40A:C2A8 01\n")
	f.Add(socketHeading + "   0: 0000000000000000FFFF00000701F40A:3AA0 00000000000000000000000000000000:0000 0A\n")
	f.Fuzz(func(t *testing.T, text string) {
		list, err := ParseSockets(strings.NewReader(text))
		for _, s := range list {
			if err != nil || !s.Local.IsValid() || s.Listening == s.Remote.IsValid() || s.Local.Addr().Is4In6() {
				t.Errorf("%q: %+v, %v", text, s, err)
			}
		}
	})
}
