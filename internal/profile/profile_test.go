package profile

import (
	"errors"
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/metric"
)

const kallsyms = `ffffffff81000000 T _stext
0000000000000000 A fixed_percpu_data
ffffffff81000100 T tcp_sendmsg
ffffffff81000200 t tcp_ack.part.0
ffffffff81000300 D jiffies
ffffffffc0001000 t vxlan_xmit	[vxlan]
ffffffffc0000000 t nf_conntrack_in	[nf_conntrack]
`

func TestSymbols(t *testing.T) {
	s, err := parseSymbols(strings.NewReader(kallsyms))
	if err != nil {
		t.Fatal(err)
	}
	for address, want := range map[uint64]string{
		0xffffffff81000100: "tcp_sendmsg", 0xffffffff810001ff: "tcp_sendmsg", 0xffffffff81000400: "tcp_ack.part.0",
		0xffffffffc0000010: "nf_conntrack_in", 0xffffffffc0001234: "vxlan_xmit", 0x1000: "",
	} {
		if got := s.name(address); got != want {
			t.Errorf("%x is in %q, not %q", address, got, want)
		}
	}
	for text, want := range map[string]error{
		"x": errSymbols, "ffffffff81000000 T": errSymbols, "": errHidden, "0000000000000000 T tcp_sendmsg\n": errHidden,
	} {
		if _, err := parseSymbols(strings.NewReader(text)); !errors.Is(err, want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestLayers checks that the longest prefix decides.
func TestLayers(t *testing.T) {
	for function, want := range map[string]Layer{
		"tcp_sendmsg_locked": TCP, "br_nf_pre_routing": Bridge, "nf_conntrack_in": Netfilter, "ip_set_test": Netfilter,
		"ip_rcv": IP, "ip_tunnel_xmit": IPIP, "iptunnel_xmit": VXLAN, "vxlan_xmit_one": VXLAN, "udp_tunnel_xmit_skb": VXLAN,
		"udp_sendmsg": UDP, "__schedule": Sched, "raw_spin_rq_lock_nested": Sched, "raw_sendmsg": IP,
		"veth_xmit": Veth, "net_rx_action": SoftIRQ, "wg_packet_encrypt": Crypto,
		"_copy_from_iter": Copy, "kmem_cache_alloc": "", "memcpy": "", "bpf_prog_1234": EBPF, "": "",
	} {
		if got := layerOf(function); got != want {
			t.Errorf("%s is of %q, not of %q", function, got, want)
		}
	}
	if got := baseName("tcp_ack.part.0"); got != "tcp_ack" {
		t.Error(got)
	}
}

func FuzzSymbols(f *testing.F) {
	f.Add(kallsyms, uint64(0xffffffff81000100))
	f.Fuzz(func(t *testing.T, text string, address uint64) {
		s, err := parseSymbols(strings.NewReader(text))
		if err != nil {
			if !errors.Is(err, errSymbols) && !errors.Is(err, errHidden) {
				t.Error(err)
			}
			return
		}
		s.name(address)
	})
}

// TestMetrics checks that each layer has a metric, and each metric a layer.
func TestMetrics(t *testing.T) {
	layers := map[Layer]bool{User: true, Programs: true, Other: true}
	for _, layer := range prefixes {
		layers[layer] = true
	}
	for _, p := range metric.Layers() {
		if !layers[Layer(p.Name)] {
			t.Errorf("nothing is of %s", p.Name)
		}
		delete(layers, Layer(p.Name))
	}
	if len(layers) > 0 {
		t.Errorf("without a metric: %v", layers)
	}
}
