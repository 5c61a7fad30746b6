//go:build linux

package paths

import (
	"fmt"
	"testing"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/target"
	"github.com/knotmeter/knotmeter/internal/workload"
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
			load.judge(t, r.Case, d, s)
		}
		load.judgeService(t, r.Case, p, s)
	}
}

// A device is where a run's traffic may be counted.
type device struct {
	name         string
	taken        bool // by the path
	there, back  func(*sighting) (bytes, packets uint64)
	oneDirection bool // the path takes it from the client to the server only
}

// devices says which devices a path takes.
func devices(p target.Path, n network) []device {
	return []device{
		{
			name: "underlay", taken: p.Other(),
			there: func(s *sighting) (uint64, uint64) { return s.atClient.underlay.txBytes, s.atClient.underlay.txPackets },
			back:  func(s *sighting) (uint64, uint64) { return s.atClient.underlay.rxBytes, s.atClient.underlay.rxPackets },
		},
		{
			name: "tunnel", taken: n.tunnel && p.Other() && p.ServerPod(),
			there: func(s *sighting) (uint64, uint64) { return s.atClient.tunnel.txBytes, s.atClient.tunnel.txPackets },
			back:  func(s *sighting) (uint64, uint64) { return s.atClient.tunnel.rxBytes, s.atClient.tunnel.rxPackets },
		},
		{
			name: "pods of the client's node", taken: p.ClientPod() || !p.Other() && p.ServerPod(),
			// What a node receives from its pods' devices is what pods send.
			there: func(s *sighting) (uint64, uint64) { return sum(s.atClient.pods) },
			back:  func(s *sighting) (uint64, uint64) { return sum(s.atClient.pods) },
		},
		{
			name: "pods of the server's node", taken: p.ServerPod() || !p.Other() && p.ClientPod(),
			there: func(s *sighting) (uint64, uint64) { return sum(s.atServer.pods) },
			back:  func(s *sighting) (uint64, uint64) { return sum(s.atServer.pods) },
		},
	}
}

func sum(t traffic) (bytes, packets uint64) { return t.rxBytes + t.txBytes, t.rxPackets + t.txPackets }

// A load is the least that a run moved, by its own account: from the client to the server, and operations, each of which
// is at least one packet each way.
type load struct {
	bytes, operations uint64
	kind              workload.Kind
}

func loadOf(r result.Run, kind workload.Kind) load {
	l := load{kind: kind}
	if v, ok := r.Value("throughput"); ok {
		l.bytes = uint64(v.Number * r.Window / 8)
	}
	if v, ok := r.Value("rate"); ok {
		l.operations = uint64(v.Number * r.Window)
	}
	return l
}

// judge compares a device with the load. One that the path does not take may count what the cluster says to its nodes
// and to our agents meanwhile, which is far less than a run.
func (l load) judge(t *testing.T, name string, d device, s *sighting) {
	t.Helper()
	thereBytes, therePackets := d.there(s)
	_, backPackets := d.back(s)
	saw := fmt.Sprintf("%s: the %s counted %d B and %d packets there, %d packets back; the run moved %d B in %d operations",
		name, d.name, thereBytes, therePackets, backPackets, l.bytes, l.operations)
	switch {
	case l.bytes == 0 && l.operations == 0:
		t.Errorf("%s: the run does not say what it moved", name)
	case d.taken && (thereBytes < l.bytes || therePackets < l.operations || backPackets < l.operations):
		t.Errorf("%s, which should all have been there", saw)
	case !d.taken && l.bytes > 0 && thereBytes > l.bytes/10:
		t.Errorf("%s, of which nothing should have been there", saw)
	case !d.taken && l.operations > 0 && (therePackets > l.operations/2 || backPackets > l.operations/2):
		t.Errorf("%s, of which nothing should have been there", saw)
	}
}

// judgeService: kube-proxy's rule for the Service sent each connection of the run on, and there is none on other paths.
func (l load) judgeService(t *testing.T, name string, p target.Path, s *sighting) {
	t.Helper()
	protocol := "tcp"
	least := uint64(1)
	if l.kind == workload.UDPRR {
		protocol = "udp"
	}
	if l.kind == workload.TCPCRR {
		least = l.operations
	}
	sent, known := s.atClient.services[protocol+" "+s.dial.String()]
	switch {
	case p.Service() && !known:
		t.Errorf("%s: kube-proxy has no rule for %s %s", name, protocol, s.dial)
	case p.Service() && sent < least:
		t.Errorf("%s: kube-proxy's rule for %s was taken %d times by at least %d connections", name, s.dial, sent, least)
	case !p.Service() && known:
		t.Errorf("%s: the client's address of the server, %s, is a Service's", name, s.dial)
	}
}
