package network

import (
	"testing"

	"github.com/knotmeter/knotmeter/internal/family"
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
		s, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := (Workload{Spec: s}).Disturbs(family.Times{}); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}
