//go:build linux

package paths

import (
	"fmt"
	"slices"
	"testing"

	kinds "github.com/knotmeter/knotmeter/internal/family/network"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
)

// counters: what each run moved was counted by the devices that its path is named after, and by no other.
func (o outcome) counters(t *testing.T, n network) {
	for _, r := range o.Runs {
		if r.Target != onCluster || !r.Valid() {
			continue
		}
		p, kind := parts(r.Case)
		s := o.seen[r.ID]
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
				continue // of a stream only answers are counted there
			}
			if wrong := load.judge(d, s); wrong != "" {
				t.Errorf("%s: %s", r.Case, wrong)
			}
		}
		wrong := load.judgeService(p, s)
		if slices.Contains(n.balances, p) {
			wrong = s.balanced()
		}
		if wrong != "" {
			t.Errorf("%s: %s", r.Case, wrong)
		}
	}
}

const serversPods = "devices of the pods on the server's node"

// A device is where a run's traffic may be counted.
type device struct {
	name        string
	taken       bool // by the path
	there, back func(*sighting) (bytes, packets uint64)
}

// devices says which devices a path takes.
func devices(p targets.Path, n network) []device {
	return []device{
		{
			name: "underlay", taken: p.Other(),
			there: func(s *sighting) (uint64, uint64) { return s.atClient.underlay.txBytes, s.atClient.underlay.txPackets },
			back:  func(s *sighting) (uint64, uint64) { return s.atClient.underlay.rxBytes, s.atClient.underlay.rxPackets },
		},
		{
			// What is for a node itself is for the underlay, also from a pod, whose address is hidden then.
			name: "tunnel", taken: n.tunnel && p.Other() && p.ServerPod(),
			there: func(s *sighting) (uint64, uint64) { return s.atClient.tunnel.txBytes, s.atClient.tunnel.txPackets },
			back:  func(s *sighting) (uint64, uint64) { return s.atClient.tunnel.rxBytes, s.atClient.tunnel.rxPackets },
		},
		{
			name: "devices of the pods on the client's node", taken: p.ClientPod() || !p.Other() && p.ServerPod(),
			there: func(s *sighting) (uint64, uint64) { return sum(s.atClient.pods) },
			back:  func(s *sighting) (uint64, uint64) { return sum(s.atClient.pods) },
		},
		{
			name: serversPods, taken: p.ServerPod() || !p.Other() && p.ClientPod(),
			there: func(s *sighting) (uint64, uint64) { return sum(s.atServer.pods) },
			back:  func(s *sighting) (uint64, uint64) { return sum(s.atServer.pods) },
		},
	}
}

func sum(t traffic) (bytes, packets uint64) { return t.rxBytes + t.txBytes, t.rxPackets + t.txPackets }

// A load is the least that a run moved, by its own account: from the client to the server, and operations, each of
// which is at least one packet each way.
type load struct {
	bytes, operations uint64
	kind              kinds.Kind
}

func loadOf(r result.Run, kind kinds.Kind) load {
	l := load{kind: kind}
	if v, ok := r.Value("throughput"); ok {
		l.bytes = uint64(v.Number * r.Window / 8)
	}
	if v, ok := r.Value("rate"); ok {
		l.operations = uint64(v.Number * r.Window)
	}
	return l
}

// background is the packets that a cluster may send to its nodes and our agents while a run is watched: up to about 200
// were seen on a machine with other work. Of a run with no more operations nothing can be told by them.
const background = 500

// judge compares a device with the load, and says what is wrong. A device that the path does not take may count what
// the cluster says meanwhile, which is far less than a run.
func (l load) judge(d device, s *sighting) string {
	thereBytes, therePackets := d.there(s)
	_, backPackets := d.back(s)
	saw := fmt.Sprintf("the %s counted %d B and %d packets there, %d packets back; the run moved %d B in %d operations",
		d.name, thereBytes, therePackets, backPackets, l.bytes, l.operations)
	switch {
	case l.bytes == 0 && l.operations == 0:
		return "the run does not say what it moved"
	case d.taken && (thereBytes < l.bytes || therePackets < l.operations || backPackets < l.operations):
		return saw + ", which should all have been there"
	case !d.taken && l.bytes > 0 && thereBytes > l.bytes/10,
		!d.taken && l.operations > 0 && max(therePackets, backPackets) > max(l.operations/2, background):
		return saw + ", of which nothing should have been there"
	}
	return ""
}

// balanced says what is wrong where kube-proxy has no part in it: whether its rules were taken nevertheless.
func (s *sighting) balanced() string {
	for _, protocol := range []string{"tcp", "udp"} {
		if n := s.atClient.services[protocol+" "+s.dial.String()]; n > 0 {
			return fmt.Sprintf("kube-proxy's rule for %s was taken %d times", s.dial, n)
		}
	}
	return ""
}

// judgeService says what is wrong with kube-proxy's rules: one for the Service sends each connection of a run on, and
// there is none for what other paths dial.
func (l load) judgeService(p targets.Path, s *sighting) string {
	protocol, least := "tcp", uint64(1)
	switch l.kind {
	case kinds.UDPRR:
		protocol = "udp"
	case kinds.TCPCRR:
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
