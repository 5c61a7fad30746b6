package network

import (
	"testing"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/load/netload"
)

// TestDisturbs checks the documented limits for targets with other users.
func TestDisturbs(t *testing.T) {
	for text, want := range map[string]string{
		"tcp-rr": "", "udp-rr:flows=10": "", "tcp-rr:rate=20000": "", "tcp-crr:rate=100": "",
		"tcp-stream:max-rate=100Mbit/s": "", "udp-stream:max-rate=1Mbit/s": "", "udp-stream:rate=1000": "",
		"tcp-rr-loaded:max-rate=100Mbit/s": "", "udp-stream:rate=1000000,max-rate=50Mbit/s": "",

		"tcp-stream":                           "it sends as much as the network carries",
		"udp-stream":                           "it sends as much as the network carries",
		"udp-stream-unpaced":                   "it sends as much as the network carries",
		"tcp-rr-loaded":                        "it sends as much as the network carries",
		"tcp-stream:max-rate=101Mbit/s":        "101 Mbit/s are more than 100 Mbit/s",
		"udp-stream:rate=10000":                "720 Mbit/s are more than 100 Mbit/s",
		"tcp-rr:rate=10000,request=10k":        "800 Mbit/s are more than 100 Mbit/s",
		"tcp-rr:request=65":                    "requests of 65 bytes, one after the other, are larger than 64",
		"tcp-rr:rate=20001":                    "20001 packets per second are more than 20000",
		"udp-stream:size=64,max-rate=20Mbit/s": "39062 packets per second are more than 20000",
		"tcp-rr:flows=11":                      "11 connections at once are more than 10",
		"tcp-crr":                              "it opens connections as fast as the network carries",
		"tcp-crr:rate=101":                     "101 new connections per second are more than 100",
	} {
		s, err := netload.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := (Workload{Spec: s}).Disturbs(family.Times{}); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

func TestKinds(t *testing.T) {
	for _, test := range []struct {
		text                  string
		stream, udp, openLoop bool
		metric                string
	}{
		{"tcp-stream", true, false, false, "throughput"},
		{"udp-stream:rate=5", true, true, false, "throughput"},
		{"udp-stream-unpaced", true, true, false, "throughput"},
		{"tcp-rr", false, false, false, "p50"},
		{"tcp-rr:rate=5", false, false, true, "p50"},
		{"udp-rr:rate=5", false, true, true, "p50"},
		{"tcp-crr", false, false, false, "p50"},
		{"tcp-rr-loaded", false, false, false, "p50"},
		{"ping", false, false, false, "p50"},
	} {
		s, err := netload.Parse(test.text)
		if err != nil {
			t.Fatal(err)
		}
		if s.Kind.Stream() != test.stream || s.Kind.UDP() != test.udp ||
			s.OpenLoop() != test.openLoop || Metric(s) != test.metric {
			t.Errorf("%s: stream %v, UDP %v, open loop %v, metric %s",
				test.text, s.Kind.Stream(), s.Kind.UDP(), s.OpenLoop(), Metric(s))
		}
	}
}
