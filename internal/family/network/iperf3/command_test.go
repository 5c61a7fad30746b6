package iperf3

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/family/network"
	"github.com/knotmeter/knotmeter/internal/golden"
	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/load/netload"
	"github.com/knotmeter/knotmeter/internal/result"
)

func mustParse(t *testing.T, text string, window, warmup time.Duration) netload.Spec {
	t.Helper()
	w, err := netload.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	w.Duration, w.Warmup = window, warmup
	return w
}

// do runs a workload with its own times.
func do(ctx context.Context, p host.Pair, w netload.Spec) (result.Measurement, error) {
	return Tool{}.Run(ctx, p, network.Workload{Spec: w}, family.Times{Warmup: w.Warmup, Window: w.Duration})
}

func fakePair(dial, listen string, clientCPUs, serverCPUs []int) host.Pair {
	d, l := netip.MustParseAddrPort(dial), netip.MustParseAddrPort(listen)
	return host.Pair{
		Client: &fakeHost{name: "node1/pod1", addr: d.Addr(), cpus: clientCPUs},
		Server: &fakeHost{name: "node2/pod1", addr: l.Addr(), cpus: serverCPUs},
		Dial:   d, Listen: l, MTU: 1450,
	}
}

func TestCommandLines(t *testing.T) {
	var text strings.Builder
	for _, test := range []struct {
		text           string
		window, warmup time.Duration
		pair           host.Pair
	}{
		{"tcp-stream", time.Second, 0, fakePair("10.1.0.2:5201", "10.1.0.2:5201", nil, nil)},
		{"tcp-stream", 10 * time.Second, 1500 * time.Millisecond,
			fakePair("10.96.0.1:80", "10.1.0.2:5201", []int{0}, []int{1})},
		{"tcp-stream:flows=4,size=16384,direction=reverse", 300 * time.Millisecond,
			50 * time.Millisecond, fakePair("10.1.0.2:7", "0.0.0.0:7", []int{0, 1}, []int{2})},
		{"tcp-stream:direction=both", 24 * time.Hour, 0,
			fakePair("[fd00::2]:5201", "[fd00::2]:5201", []int{0, 1}, []int{2, 3})},
		{"tcp-stream:flows=4,direction=both", time.Second, 0, fakePair("10.1.0.2:7", "10.1.0.2:7", nil, nil)},
		{"tcp-stream:mss=1000,congestion=reno", time.Second, 0, fakePair("10.1.0.2:5201", "10.1.0.2:5201", nil, nil)},
		{"tcp-stream:buffer=256KiB", time.Second, 0, fakePair("10.1.0.2:5201", "10.1.0.2:5201", nil, nil)},
		{"udp-stream:rate=10000", time.Second, 0, fakePair("10.1.0.2:5201", "10.1.0.2:5201", nil, nil)},
		{"udp-stream:rate=10000", time.Second, 0, fakePair("[fd00::2]:5201", "[fd00::2]:5201", nil, nil)},
		{"tcp-stream:flows=4,max-rate=100Mbit/s", time.Second, 0,
			fakePair("10.1.0.2:5201", "10.1.0.2:5201", nil, nil)},
		{"udp-stream:rate=1000000,flows=2,max-rate=100Mbit/s", time.Second, 0,
			fakePair("10.1.0.2:5201", "10.1.0.2:5201", nil, nil)},
		{"udp-stream:rate=10Gbit/s,flows=4", time.Second, 0, fakePair("10.1.0.2:5201", "10.1.0.2:5201", nil, nil)},
		{"udp-stream-unpaced", time.Second, 0, fakePair("10.1.0.2:5201", "10.1.0.2:5201", nil, nil)},
		{"udp-stream-unpaced:flows=4,size=1400", time.Second, 0,
			fakePair("10.1.0.2:5201", "10.1.0.2:5201", nil, nil)},
		{"udp-stream:rate=1000,flows=3,size=64,direction=both", time.Second,
			time.Second, fakePair("10.1.0.2:5201", "10.1.0.2:5201", nil, nil)},
	} {
		w := mustParse(t, test.text, test.window, test.warmup)
		c, err := newCommands(test.pair, w)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&text, "%s for %s after %s: on CPUs %s, series of %s\n  %s\n  %s\n",
			test.text, test.window, test.warmup, c.clientCPU+" and "+c.serverCPU, c.step,
			host.Cmd{Args: c.server}, host.Cmd{Args: c.client})
	}
	golden.Check(t, "testdata/commands.golden", text.String())
}

// TestNeverEndless checks that no window becomes 0, which iperf3 treats as endless, and no rate 0, which is unpaced.
func TestNeverEndless(t *testing.T) {
	p := fakePair("10.1.0.2:5201", "10.1.0.2:5201", nil, nil)
	for _, d := range []time.Duration{0, 1, time.Millisecond, 999 * time.Millisecond} {
		c, err := newCommands(p, mustParse(t, "tcp-stream", d, d))
		if err != nil || c.window != time.Second {
			t.Errorf("a window of %s is %s, %v", d, c.window, err)
		}
	}
	w := mustParse(t, "udp-stream:rate=0.0001,size=64", time.Second, 0)
	if _, err := newCommands(p, w); !errors.Is(err, result.ErrNotSupported) {
		t.Errorf("a rate below a bit per second: %v", err)
	}
	p.MTU = 0
	if c, err := newCommands(p, mustParse(t, "udp-stream:rate=10", time.Second, 0)); err != nil || c.size != 1252 {
		t.Errorf("an unknown MTU: datagrams of %d bytes, %v", c.size, err)
	}
}

func TestSupports(t *testing.T) {
	for text, want := range map[string]string{
		"tcp-stream":                        "",
		"tcp-stream:flows=8,direction=both": "",
		"udp-stream:rate=1000":              "",
		"udp-stream":                        "rate=",
		"udp-stream:rate=10Gbit/s":          "",
		"udp-stream-unpaced":                "",
		"udp-stream-unpaced:size=8":         "size=8",
		"udp-stream:rate=1000,size=8":       "size=8",
		"udp-stream:rate=1000,offload=true": "offload",
		"tcp-stream:size=2000000":           "size=2000000",
		"tcp-rr":                            "tcp-rr",
		"udp-rr":                            "udp-rr",
		"tcp-crr":                           "tcp-crr",
		"tcp-rr-loaded":                     "tcp-rr-loaded",
	} {
		err := supports(mustParse(t, text, time.Second, 0), true, nil)
		switch {
		case want == "" && err != nil:
			t.Errorf("%s: %v", text, err)
		case want != "" && (!errors.Is(err, result.ErrNotSupported) || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v does not name %s", text, err, want)
		}
	}
	err := supports(mustParse(t, "tcp-stream", time.Second, 2*time.Minute), true, nil)
	if !errors.Is(err, result.ErrNotSupported) {
		t.Errorf("a warm-up of 2 minutes: %v", err)
	}
}
