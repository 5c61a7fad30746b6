package bpf

import (
	"fmt"
	"net/netip"
	"strings"
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

func TestTunnelIsChecked(t *testing.T) {
	six := netip.MustParseAddr("fd00::1")
	for name, change := range map[string]func(*Tunnel){
		"node":      func(t *Tunnel) { t.Node = six },
		"pods":      func(t *Tunnel) { t.Pods = netip.PrefixFrom(six, 64) },
		"peer":      func(t *Tunnel) { t.Peers[1].Node = six },
		"no peers":  func(t *Tunnel) { t.Peers = nil },
		"peer pods": func(t *Tunnel) { t.Peers[1].Pods = netip.Prefix{} },
	} {
		t.Run(name, func(t *testing.T) {
			broken := tunnel()
			change(&broken)
			if _, err := AttachTunnel(broken, 1); err == nil || !strings.Contains(err.Error(), "IP-in-IP") {
				t.Errorf("got %v", err)
			}
		})
	}
}
