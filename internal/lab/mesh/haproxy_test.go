package mesh

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/golden"
)

// testNode returns a node with two peers.
func testNode() Node {
	prefixes := func(texts ...string) (list []netip.Prefix) {
		for _, text := range texts {
			list = append(list, netip.MustParsePrefix(text))
		}
		return list
	}
	return Node{
		Name: "node1", Listen: netip.MustParseAddrPort("10.244.1.1:15008"), Redirect: 15001,
		Serves: prefixes("10.244.1.0/24", "fd00:244:0:1::/64", "10.96.0.1/32"),
		Peers: []Peer{
			{Name: "node2", Proxy: netip.MustParseAddrPort("10.244.2.1:15008"),
				Serves: prefixes("10.244.2.0/24", "fd00:244:0:2::/64", "10.96.0.3/32", "fd00:96::3/128")},
			{Name: "node3", Proxy: netip.MustParseAddrPort("10.244.3.1:15008"), Serves: prefixes("10.244.3.0/24")},
		},
	}
}

func TestConfiguration(t *testing.T) {
	got := configuration(testNode(), files{identity: "/proc/self/fd/4", root: "/proc/self/fd/5"})
	golden.Check(t, "testdata/haproxy.cfg", got)
}

func TestVersion(t *testing.T) {
	for output, want := range map[string]string{
		"HAProxy version 2.6.12-1+deb12u4 2026/01/02 - https://haproxy.org/\nStatus: long-term": "2.6.12-1+deb12u4",
		"HA-Proxy version 2.0.31 2023/02/14 - https://haproxy.org/":                             "2.0.31",
		"": "", "HAProxy version": "", "something else": "",
	} {
		got, err := version(output)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", output, got, err)
		}
	}
}

func FuzzVersion(f *testing.F) {
	f.Add("HAProxy version 2.6.12-1+deb12u4 2026/01/02")
	f.Fuzz(func(t *testing.T, output string) {
		got, err := version(output)
		if err == nil && (got == "" || strings.ContainsAny(got, " \n") || !strings.Contains(output, got)) {
			t.Errorf("%q: %q", output, got)
		}
	})
}
