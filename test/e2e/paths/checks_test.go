//go:build linux

package paths

import (
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/load/netload"
	"github.com/knotmeter/knotmeter/internal/result"
)

// TestParseReading parses the output of ip and iptables-save on a node of a cluster with flannel.
func TestParseReading(t *testing.T) {
	links, err := os.ReadFile("testdata/links.json")
	if err != nil {
		t.Fatal(err)
	}
	rules, err := os.ReadFile("testdata/rules.txt")
	if err != nil {
		t.Fatal(err)
	}
	r, err := parseReading(links, rules)
	if err != nil {
		t.Fatal(err)
	}
	if r.underlay.rxPackets == 0 || r.underlay.txBytes == 0 || r.tunnel.txPackets == 0 || r.pods.rxBytes == 0 {
		t.Errorf("devices: %+v", r)
	}
	if len(r.services) != 3 || r.services["tcp 10.103.38.154"] != 9527 {
		t.Errorf("services: %v", r.services)
	}
	for _, line := range []string{
		"[3:180] -A KUBE-SERVICES -d ten -p tcp -j KUBE-SVC-A\n",
		"[x:180] -A KUBE-SERVICES -d 10.0.0.1/32 -p tcp -j KUBE-SVC-A\n", "[3:180] -A KUBE-SERVICES -j KUBE-SVC-A\n",
	} {
		if _, err := parseReading([]byte("[]"), []byte(line)); err == nil {
			t.Errorf("%q is no error", line)
		}
	}
	if _, err := parseReading([]byte("{"), nil); err == nil {
		t.Error("half of an object is no error")
	}
}

// TestCheckDevices checks that check finds missing traffic on the path, and traffic off the path.
func TestCheckDevices(t *testing.T) {
	n := network{tunnel: true}
	full := traffic{2e6, 2000, 2e6, 2000}
	some := traffic{1e4, 100, 1e4, 100} // background traffic
	dial := netip.MustParseAddr("10.0.0.1")
	other := func() *observation { // pod-pod/other through a tunnel
		return &observation{
			dial:     dial,
			atClient: reading{underlay: full, tunnel: full, pods: full},
			atServer: reading{underlay: full, tunnel: full, pods: full},
		}
	}
	for _, test := range []struct {
		name string
		path result.Path
		see  func(*observation)
		says string // the device that is wrong; empty: none
	}{
		{"as it should be", result.PodPodOther, func(*observation) {}, ""},
		{"not through the tunnel", result.PodPodOther, func(s *observation) { s.atClient.tunnel = some },
			"the tunnel counted"},
		{"never on the underlay", result.PodPodOther, func(s *observation) { s.atClient.underlay = some },
			"the underlay counted"},
		{"back another way", result.PodPodOther, func(s *observation) { s.atClient.tunnel.rxPackets = 10 },
			"the tunnel counted"},
		{"the server in no pod", result.PodPodOther, func(s *observation) { s.atServer.pods = some },
			"pods on the server's node"},
		{"the client in no pod", result.PodPodOther, func(s *observation) { s.atClient.pods = some },
			"pods on the client's node"},
		{"within a node", result.PodPodSame,
			func(s *observation) { s.atClient.underlay, s.atClient.tunnel = some, some }, ""},
		{"out and back", result.PodPodSame, func(s *observation) { s.atClient.tunnel = some }, "the underlay counted"},
		{"between nodes", result.NodeNode, func(s *observation) {
			s.atClient.tunnel, s.atClient.pods, s.atServer.pods = some, some, some
		}, ""},
		{"between nodes, in the tunnel", result.NodeNode,
			func(s *observation) { s.atClient.pods, s.atServer.pods = some, some }, "the tunnel counted"},
	} {
		for _, l := range []load{{bytes: 1e6, kind: netload.TCPStream}, {operations: 1000, kind: netload.TCPRR}} {
			s := other()
			test.see(s)
			var wrong []string
			for _, d := range devices(test.path, n) {
				if w := l.check(d, s); w != "" {
					wrong = append(wrong, w)
				}
			}
			got := strings.Join(wrong, "; ")
			back := test.name == "back another way" && l.kind == netload.TCPStream // whose answers are few
			if test.says == "" && got != "" || test.says != "" && !back &&
				(len(wrong) != 1 || !strings.Contains(got, test.says)) {
				t.Errorf("%s, %s: %q", test.name, l.kind, got)
			}
		}
	}
	if w := (load{}).check(devices(result.NodeNode, n)[0], other()); w == "" {
		t.Error("a run without a report passes")
	}
}

// TestCheckAttachment checks that check finds traffic to an address of the attachment that takes the default network.
func TestCheckAttachment(t *testing.T) {
	full, some := traffic{2e6, 2000, 2e6, 2000}, traffic{1e4, 100, 1e4, 100}
	client, server := netip.MustParseAddr("10.0.0.2"), netip.MustParseAddr("10.0.0.1")
	for _, test := range []struct {
		name string
		path result.Path
		see  func(*observation)
		says []string // devices that are wrong
	}{
		{"between nodes", result.PodPodOther, func(*observation) {}, nil},
		{"within a node", result.PodPodSame, func(s *observation) { s.atClient.underlay = some }, nil},
		{"out and back", result.PodPodSame, func(*observation) {}, []string{"underlay"}},
		{"from the default network", result.PodPodOther, func(s *observation) {
			s.attached[client], s.atClient.pods = some, full
		},
			[]string{"client's device in the attachment", "devices of the pods on the client's node"}},
		{"by the default network", result.PodPodOther, func(s *observation) {
			clear(s.attached)
			s.atClient.pods,
				s.atServer.pods = full, full
		},
			[]string{"client's device in the attachment", "server's device in the attachment",
				"devices of the pods on the client's node", "devices of the pods on the server's node"}},
		{"never out", result.PodPodOther, func(s *observation) { s.atClient.underlay = some }, []string{"underlay"}},
		{"in the default network's tunnel", result.PodPodOther, func(s *observation) { s.atClient.tunnel = full },
			[]string{"tunnel"}},
	} {
		for _, l := range []load{{bytes: 1e6, kind: netload.TCPStream}, {operations: 1000, kind: netload.TCPRR}} {
			s := &observation{
				listen: server, atClient: reading{underlay: full, pods: some}, atServer: reading{underlay: full, pods: some},
				attached: map[netip.Addr]traffic{client: full, server: full},
			}
			test.see(s)
			var wrong []string
			for _, d := range devicesAttached(test.path, network{tunnel: true}) {
				if l.check(d, s) != "" {
					wrong = append(wrong, d.name)
				}
			}
			if !slices.Equal(wrong, test.says) {
				t.Errorf("%s, %s: %v are wrong, not %v", test.name, l.kind, wrong, test.says)
			}
		}
	}
}

// TestParseAttached parses the output of ip for the devices of a pod.
func TestParseAttached(t *testing.T) {
	found := map[netip.Addr]traffic{}
	text := `[{"ifname":"lo","addr_info":[{"family":"inet","local":"127.0.0.1"}],"stats64":{"rx":{"bytes":9}}},
		{"ifname":"eth0","linkinfo":{"info_kind":"veth"},"addr_info":[{"family":"inet","local":"10.250.1.2"}],
			"stats64":{"rx":{"bytes":8}}},
		{"ifname":"net1","linkinfo":{"info_kind":"macvlan"},
			"addr_info":[{"family":"inet","local":"10.199.6.48"},{"family":"inet6","local":"fe80::1"}],
			"stats64":{"rx":{"bytes":1,"packets":2},"tx":{"bytes":3,"packets":4}}}]`
	if err := parseAttached([]byte(text), found); err != nil || len(found) != 1 ||
		found[netip.MustParseAddr("10.199.6.48")] != (traffic{1, 2, 3, 4}) {
		t.Errorf("%v, %v", found, err)
	}
	for _, text := range []string{"{", `[{"addr_info":[{"local":"ten"}]}]`} {
		if parseAttached([]byte(text), found) == nil {
			t.Errorf("%s is no error", text)
		}
	}
}

func TestCheckService(t *testing.T) {
	s := &observation{dial: netip.MustParseAddr("10.0.0.1"),
		atClient: reading{services: map[string]uint64{"tcp 10.0.0.1": 500, "udp 10.0.0.1": 0}}}
	elsewhere := &observation{dial: netip.MustParseAddr("10.0.0.2"), atClient: s.atClient}
	for _, test := range []struct {
		name string
		path result.Path
		load load
		s    *observation
		says string
	}{
		{"a stream", result.PodSvcOther, load{bytes: 1, kind: netload.TCPStream}, s, ""},
		{"each connection", result.PodSvcOther, load{operations: 500, kind: netload.TCPCRR}, s, ""},
		{"connections that went around it", result.NodeSvcSame, load{operations: 501, kind: netload.TCPCRR}, s,
			"was taken 500 times by at least 501"},
		{"the other protocol", result.PodSvcOther, load{operations: 9, kind: netload.UDPRR}, s, "was taken 0 times"},
		{"no rule", result.PodSvcOther, load{operations: 9, kind: netload.TCPRR}, elsewhere, "no rule for tcp 10.0.0.2"},
		{"no Service", result.PodPodOther, load{operations: 9, kind: netload.TCPRR}, elsewhere, ""},
		{"a Service where none should be", result.PodPodOther, load{operations: 9, kind: netload.TCPRR}, s, "is a Service's"},
	} {
		if got := test.load.checkService(test.path, test.s); got != test.says &&
			(test.says == "" || !strings.Contains(got, test.says)) {
			t.Errorf("%s: %q", test.name, got)
		}
	}
}
