package iperf3

import (
	"context"
	"errors"
	"math"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/family/familytest"
	"github.com/knotmeter/knotmeter/internal/family/network"
	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/load/netload"
	"github.com/knotmeter/knotmeter/internal/result"
)

func TestConformance(t *testing.T) {
	var last host.Pair
	familytest.Suite(t, familytest.Config{
		Tool:    Tool{},
		Pair:    func(t *testing.T) host.Pair { last = namespacePair(t, netip.MustParseAddr("127.0.0.1")); return last },
		Running: func(t *testing.T) []string { return left(t, last) },
		Workloads: []family.Workload{
			network.Workload{Spec: mustParse(t, "tcp-stream", 0, 0)},
			network.Workload{Spec: mustParse(t, "udp-stream:rate=2000", 0, 0)},
			network.Workload{Spec: mustParse(t, "udp-stream-unpaced", 0, 0)},
			network.Workload{Spec: mustParse(t, "tcp-rr", 0, 0)},
		},
	})
}

// TestWorkloads checks that every direction, address family and number of flows gives a complete measurement.
func TestWorkloads(t *testing.T) {
	for _, text := range []string{
		"tcp-stream:direction=reverse,flows=2", "tcp-stream:direction=both,size=16384",
		"udp-stream:rate=2000,direction=reverse,flows=2,size=1400", "udp-stream:rate=2000,direction=both",
		"udp-stream-unpaced:size=1400", "udp-stream-unpaced:size=1400,flows=4,direction=both",
	} {
		for _, addr := range []string{"127.0.0.1", "::1"} {
			t.Run(text+"/"+addr, func(t *testing.T) {
				p := namespacePair(t, netip.MustParseAddr(addr))
				w := mustParse(t, text, time.Second, 0)
				m, err := do(t.Context(), p, w)
				if err != nil {
					t.Fatal(err)
				}
				for _, problem := range familytest.Check(network.Workload{Spec: w}, m) {
					t.Error(problem)
				}
				if w.Flows > 1 && !strings.Contains(strings.Join(result.Texts(m.Warnings), "\n"), "one thread") && !newer(t, m) {
					t.Errorf("no warning about one thread: %v", m.Warnings)
				}
				want := []string{"throughput", "cpu-agents-per-gb", "cpu-time-client", "cpu-time-server"}
				switch {
				case w.Kind == netload.UDPUnpaced:
					want = append(want, "loss", "jitter", "rate", "offered", "reordered", "throughput-sent")
				case w.Kind == netload.UDPStream:
					want = append(want, "loss", "jitter", "rate", "offered", "reordered")
				default:
					want = append(want, "retransmits", "rtt", "cwnd-bytes", "pmtu")
				}
				for _, name := range want {
					if _, ok := value(m, name); !ok {
						t.Errorf("there is no %s", name)
					}
				}
			})
		}
	}
}

func newer(t *testing.T, m result.Measurement) bool {
	t.Helper()
	for _, f := range m.Facts {
		if f.Name == "tool.version" {
			o := output{}
			o.Start.Version = f.Value
			return o.threaded()
		}
	}
	t.Error("no version")
	return false
}

func value(m result.Measurement, name string) (float64, bool) {
	v, ok := result.Run{Values: m.Values}.Value(name)
	return v.Number, ok
}

// TestAccuracyOfRate checks that, on a path of known rate to which more is offered, throughput is the path's rate and
// loss is the rest, even with a warm-up, where the client's own figure is wrong.
func TestAccuracyOfRate(t *testing.T) {
	const limit = 60e6 // bit/s on the wire
	p := namespacePair(t, netip.MustParseAddr("127.0.0.1"))
	err := inside(p.Client.(*namespaceHost).ns, func() error { return shape(limit / 8) })
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EOPNOTSUPP) {
		t.Skip("this kernel has no tbf (CONFIG_NET_SCH_TBF)")
	}
	if err != nil {
		t.Fatal(err)
	}
	w := mustParse(t, "udp-stream:size=1400,rate=8000", time.Second, time.Second)
	m, err := do(t.Context(), p, w)
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Invalid) > 0 {
		t.Fatalf("the machine was too busy for this: %v", m.Invalid)
	}
	// lo counts 14 bytes of Ethernet header, 20 of IP and 8 of UDP per datagram. Less arrives if the sender waits for a
	// CPU for longer than the bucket's queue lasts, 4 ms; more never arrives.
	want := limit * 1400 / 1442
	got, _ := value(m, "throughput")
	if got > 1.02*want || got < 0.7*want {
		t.Errorf("throughput is %.4g bit/s, the path carries %.4g", got, want)
	}
	rate, _ := value(m, "rate")
	offered, _ := value(m, "offered")
	loss, _ := value(m, "loss")
	if wantLoss := 1 - rate/offered; wantLoss < 0.2 || math.Abs(loss-wantLoss) > 0.05 {
		t.Errorf("loss is %.3f, sent were %.0f and received %.0f a second", loss, offered, rate)
	}
}

// shape limits lo by a token bucket with a queue of 30 kB; rate is in bytes per second.
func shape(rate uint64) error {
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return err
	}
	const burst = 20000
	return netlink.QdiscAdd(&netlink.Tbf{
		QdiscAttrs: netlink.QdiscAttrs{LinkIndex: lo.Attrs().Index,
			Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT},
		Rate:   rate,
		Limit:  30000,
		Buffer: uint32(netlink.Xmittime(rate, burst)),
	})
}

// TestErrorsOfIperf3 checks that the server's own error is preferred to the client's view of it, and that failed
// pinning is an error.
func TestErrorsOfIperf3(t *testing.T) {
	p := namespacePair(t, netip.MustParseAddr("127.0.0.1"))
	w := mustParse(t, "tcp-stream", time.Second, 0)

	elsewhere := p
	elsewhere.Listen = netip.MustParseAddrPort("192.0.2.7:5201")
	if _, err := do(t.Context(), elsewhere, w); err == nil ||
		!strings.Contains(err.Error(), "Cannot assign requested address") ||
		!strings.Contains(err.Error(), "server on server") {
		t.Errorf("listening on an address that is not there: %v", err)
	}
	pinned := p
	pinned.Client = &namespaceHost{name: "client", addr: p.Client.Addr(), ns: p.Client.(*namespaceHost).ns,
		cpus: []int{1 << 14}}
	if _, err := do(t.Context(), pinned, w); err == nil || !strings.Contains(strings.ToLower(err.Error()), "affinity") {
		t.Errorf("pinned to a CPU that is not there: %v", err)
	}
	if got := left(t, p); len(got) > 0 {
		t.Errorf("left behind: %v", got)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := do(ctx, p, w); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("after the deadline: %v", err)
	}
	if got := left(t, p); len(got) > 0 {
		t.Errorf("left behind after a deadline: %v", got)
	}
}
