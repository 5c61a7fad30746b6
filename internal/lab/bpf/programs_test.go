package bpf

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/knotmeter/knotmeter/internal/golden"
)

func tunnel() Tunnel {
	return Tunnel{
		Node: netip.MustParseAddr("10.0.0.1"),
		Pods: netip.MustParsePrefix("10.244.1.0/24"),
		Peers: []Peer{
			{netip.MustParseAddr("10.0.0.2"), netip.MustParsePrefix("10.244.2.0/24")},
			{netip.MustParseAddr("10.0.0.3"), netip.MustParsePrefix("10.244.3.0/24")},
		},
	}
}

func TestTunnelPrograms(t *testing.T) {
	golden.Check(t, "testdata/ipip_encap.txt", fmt.Sprint(tunnel().encap()))
	golden.Check(t, "testdata/ipip_decap.txt", fmt.Sprint(tunnel().decap()))
	shaped := tunnel()
	shaped.Shaped = true
	golden.Check(t, "testdata/ipip_encap_shaped.txt", fmt.Sprint(shaped.encap()))
}

func TestServicePrograms(t *testing.T) {
	for _, h := range hooks {
		golden.Check(t, "testdata/"+h.name+".txt", fmt.Sprint(h.program()))
	}
}
