//go:build linux

package paths

import (
	"fmt"
	"slices"
	"testing"

	"github.com/knotmeter/knotmeter/internal/load/netload"
	"github.com/knotmeter/knotmeter/internal/result"
)

// checkCounters checks that the devices on a run's path counted its traffic, and that no other device did.
func (o outcome) checkCounters(t *testing.T, n network) {
	for _, r := range o.Runs {
		if r.Target != onCluster || !r.Valid() {
			continue
		}
		p, kind := splitCase(r.Case)
		s := o.observed[r.ID]
		if s == nil {
			t.Errorf("%s: the nodes were not read", r.Case)
			continue
		}
		if same := s.client == s.server; same == p.Other() {
			t.Errorf("%s: the client was on %s, the server on %s", r.Case, s.client, s.server)
		}
		load := loadOf(r, kind)
		for _, d := range devices(p, n) {
			if n.redirects && d.name == serversPods && load.bytes > 0 {
				continue // with eBPF redirection, only the answers of a stream pass it
			}
			if wrong := load.check(d, s); wrong != "" {
				t.Errorf("%s: %s", r.Case, wrong)
			}
		}
		wrong := load.checkService(p, s)
		if slices.Contains(n.balances, p) {
			wrong = s.checkBypass()
		}
		if wrong != "" {
			t.Errorf("%s: %s", r.Case, wrong)
		}
	}
}

const serversPods = "devices of the pods on the server's node"

// A device is one or several links of the nodes, whose counters show a run's traffic.
type device struct {
	name        string
	onPath      bool                                       // the run's traffic passes it
	there, back func(*observation) (bytes, packets uint64) // from the client to the server, and back
}

// devices returns the devices of the nodes, with those on the path marked.
func devices(p result.Path, n network) []device {
	return []device{
		{
			name: "underlay", onPath: p.Other(),
			there: func(s *observation) (uint64, uint64) {
				return s.atClient.underlay.txBytes, s.atClient.underlay.txPackets
			},
			back: func(s *observation) (uint64, uint64) {
				return s.atClient.underlay.rxBytes, s.atClient.underlay.rxPackets
			},
		},
		{
			// Traffic to a node itself takes the underlay, from a pod too, whose address is translated then.
			name: "tunnel", onPath: n.tunnel && p.Other() && p.ServerPod(),
			there: func(s *observation) (uint64, uint64) { return s.atClient.tunnel.txBytes, s.atClient.tunnel.txPackets },
			back:  func(s *observation) (uint64, uint64) { return s.atClient.tunnel.rxBytes, s.atClient.tunnel.rxPackets },
		},
		{
			name: "devices of the pods on the client's node", onPath: p.ClientPod() || !p.Other() && p.ServerPod(),
			there: func(s *observation) (uint64, uint64) { return sum(s.atClient.pods) },
			back:  func(s *observation) (uint64, uint64) { return sum(s.atClient.pods) },
		},
		{
			name: serversPods, onPath: p.ServerPod() || !p.Other() && p.ClientPod(),
			there: func(s *observation) (uint64, uint64) { return sum(s.atServer.pods) },
			back:  func(s *observation) (uint64, uint64) { return sum(s.atServer.pods) },
		},
	}
}

func sum(t traffic) (bytes, packets uint64) { return t.rxBytes + t.txBytes, t.rxPackets + t.txPackets }

// A load is the least traffic of a run, by its own report: bytes from the client to the server, and operations, each of
// at least one packet each way.
type load struct {
	bytes, operations uint64
	kind              netload.Kind
}

func loadOf(r result.Run, kind netload.Kind) load {
	l := load{kind: kind}
	if v, ok := r.Value("throughput"); ok {
		l.bytes = uint64(v.Number * r.Window / 8)
	}
	if v, ok := r.Value("rate"); ok {
		l.operations = uint64(v.Number * r.Window)
	}
	return l
}

// background is the largest number of packets between a cluster, its nodes and the agents during a run; up to about 200
// were seen on a busy machine. Packets cannot show where a run with fewer operations went.
const background = 500

// check compares a device with the load, and describes what is wrong. A device off the path may count background
// traffic of the cluster, which is far less than a run.
func (l load) check(d device, s *observation) string {
	thereBytes, therePackets := d.there(s)
	_, backPackets := d.back(s)
	saw := fmt.Sprintf("the %s counted %d B and %d packets there, %d packets back; the run moved %d B in %d operations",
		d.name, thereBytes, therePackets, backPackets, l.bytes, l.operations)
	switch {
	case l.bytes == 0 && l.operations == 0:
		return "the run does not report its traffic"
	case d.onPath && (thereBytes < l.bytes || therePackets < l.operations || backPackets < l.operations):
		return saw + ", which should all have been there"
	case !d.onPath && l.bytes > 0 && thereBytes > l.bytes/10,
		!d.onPath && l.operations > 0 && max(therePackets, backPackets) > max(l.operations/2, background):
		return saw + ", of which nothing should have been there"
	}
	return ""
}

// checkBypass describes what is wrong if connections took a rule of kube-proxy that the product should replace.
func (s *observation) checkBypass() string {
	for _, protocol := range []string{"tcp", "udp"} {
		if n := s.atClient.services[protocol+" "+s.dial.String()]; n > 0 {
			return fmt.Sprintf("kube-proxy's rule for %s was taken %d times", s.dial, n)
		}
	}
	return ""
}

// checkService describes what is wrong with kube-proxy's rules: its rule for the Service must forward each connection
// of a run, and it must have no rule for what other paths dial.
func (l load) checkService(p result.Path, s *observation) string {
	protocol, least := "tcp", uint64(1)
	switch l.kind {
	case netload.UDPRR:
		protocol = "udp"
	case netload.TCPCRR:
		least = l.operations
	}
	sent, known := s.atClient.services[protocol+" "+s.dial.String()]
	switch {
	case p.Service() && !known:
		return fmt.Sprintf("kube-proxy has no rule for %s %s", protocol, s.dial)
	case p.Service() && sent < least:
		return fmt.Sprintf("kube-proxy's rule for %s was taken %d times by at least %d connections", s.dial, sent, least)
	case !p.Service() && known:
		return fmt.Sprintf("the client dials %s, which is a Service's", s.dial)
	}
	return ""
}
