package native

import (
	"encoding/json"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/knotmeter/knotmeter/internal/family/network"
	"github.com/knotmeter/knotmeter/internal/golden"
	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/load/netload"
	"github.com/knotmeter/knotmeter/internal/machine"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/profile"
	"github.com/knotmeter/knotmeter/internal/result"
)

func histogram(t *testing.T, n int, at time.Duration) string {
	t.Helper()
	h := netload.NewHistogram()
	for i := range n {
		h.Record(int64(at) + int64(i)*10)
	}
	return h.Encode()
}

// base returns a valid run of one second on two machines with two CPUs each.
func base(t *testing.T, w netload.Spec) sides {
	t.Helper()
	w.Duration, w.Warmup = time.Second, 200*time.Millisecond
	w, err := w.Resolved()
	if err != nil {
		t.Fatal(err)
	}
	cost := netload.Cost{Window: 1, CPUs: 2, Busiest: 0.9, Hottest: 1,
		AgentUser: 0.1, AgentSystem: 0.3, Voluntary: 1000, Involuntary: 10, Idle: 0.1, Memory: 2e9, IdleMemory: 1.5e9,
		Machine: machine.CPUTimes{machine.User: 0.1, machine.System: 0.6, machine.SoftIRQ: 0.4, machine.Idle: 0.9}}
	side := func(role netload.Role, cpu int) netload.Report {
		return netload.Report{Role: role, Version: "v1 go1", Window: 1, Cost: cost, ReceivedAll: true,
			Threads: []netload.Thread{{Work: "tcp-stream", Pinned: cpu,
				CPUs: []int{cpu}, User: 0.1, System: 0.5, Lifetime: 1.2}}}
	}
	return sides{Spec: w, Client: side(netload.Client, 0), Server: side(netload.Server, 1)}
}

func requests(t *testing.T) sides {
	s := base(t, netload.Spec{Kind: netload.TCPRR})
	s.Client.Operations = netload.Tally{Warm: 2000, Window: 10_000, After: 1}
	s.Server.Answered = 12_001
	s.Client.Steps = []uint64{1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000}
	s.Client.Latency = histogram(t, 10_000, 50*time.Microsecond)
	s.Client.TCP = &netload.TCP{RTT: 40e-6, RTTVar: 5e-6, Cwnd: 10, PMTU: 1500, MSS: 1448, Congestion: "cubic"}
	s.Client.Layers = map[profile.Layer]float64{profile.User: 0.1, profile.TCP: 0.3, profile.Bridge: 0}
	s.Client.Counters = map[string]float64{metric.QueueDrops: 3, metric.SoftnetSqueezes: 2,
		metric.OfNode + metric.QueueDrops: 1}
	s.Server.Counters, s.Server.OfNode = map[string]float64{metric.QueueDrops: 4, metric.SoftnetSqueezes: 2}, true
	s.Server.Layers = map[profile.Layer]float64{profile.User: 0.2, profile.VXLAN: 0.1}
	return s
}

func stream(t *testing.T) sides {
	s := base(t, netload.Spec{Kind: netload.TCPStream})
	s.Client.Sent = netload.Tally{Warm: 2e8, Window: 1e9, After: 1e5}
	s.Server.Received = netload.Tally{Warm: 2e8, Window: 1e9, After: 1e5}
	s.Server.Steps = []uint64{1e8, 1e8, 1e8, 1e8, 1e8, 1e8, 1e8, 1e8, 1e8, 1e8}
	s.Client.Steps = make([]uint64, 10)
	s.Client.Unsampled = "sample CPU 0: permission denied"
	s.Client.Uncounted = "read the kernel's counters: permission denied"
	s.Client.TCP = &netload.TCP{Retransmits: 3, RTT: 40e-6, Cwnd: 10, PMTU: 1500, MSS: 1448, Congestion: "cubic"}
	return s
}

func datagrams(t *testing.T) sides {
	s := base(t, netload.Spec{Kind: netload.UDPStream, Rate: 1000, Size: 1000})
	s.Client.Sent = netload.Tally{Warm: 200, Window: 1000}
	s.Client.Planned = 1000
	s.Server.Received = netload.Tally{Warm: 198, Window: 991, After: 1}
	s.Server.Arrived, s.Server.Gaps, s.Server.Reordered, s.Server.Jitter = 990, 10, 2, 20e-6
	s.Server.Steps = []uint64{100, 100, 100, 100, 100, 100, 100, 100, 100, 91}
	s.Client.Steps = make([]uint64, 10)
	return s
}

// TestSearchStep checks that the rates of a search have the step of its grid, and those of a given rate none.
func TestSearchStep(t *testing.T) {
	searched := datagrams(t)
	searched.Spec.Rate, searched.Spec.Loss = 0, 0.02
	searched.Client.Sweep = &netload.SweepReport{Rate: 1000, Step: 0.019}
	for _, s := range []sides{searched, datagrams(t)} {
		want := 0.0
		if s.Client.Sweep != nil {
			want = s.Client.Sweep.Step
		}
		m, err := merge(s)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{metric.Throughput, metric.Rate} {
			if v, has := (result.Run{Values: m.Values}).Value(name); !has || v.Step != want {
				t.Errorf("%s has a step of %g, wanted %g", name, v.Step, want)
			}
		}
	}
}

// TestMergeGolden compares the merged measurements of a few runs with golden files.
func TestMergeGolden(t *testing.T) {
	open := requests(t)
	open.Spec.Rate, open.Client.Planned = 10_000, 10_000
	open.Client.Late = histogram(t, 1000, time.Microsecond)
	open.Shared = true
	unpaced := datagrams(t)
	unpaced.Spec.Kind, unpaced.Spec.Rate, unpaced.Client.Planned = netload.UDPUnpaced, 0, 0
	unpaced.Client.Sent.Window, unpaced.Client.Threads[0].System = 2000, 1.1
	tests := map[string]sides{"tcp-rr": requests(t), "tcp-rr-open-shared": open,
		"tcp-stream": stream(t), "udp-stream": datagrams(t), "udp-stream-unpaced": unpaced}
	for name, s := range tests {
		t.Run(name, func(t *testing.T) {
			m, err := merge(s)
			if err != nil {
				t.Fatal(err)
			}
			for i := range m.Histograms {
				m.Histograms[i].Encoded = "" // compressed: depends on the compressor's version
			}
			got := describe(m)
			golden.Check(t, "testdata/"+name+".golden", got)
		})
	}
}

// describe returns a measurement as text.
func describe(m result.Measurement) string {
	var b strings.Builder
	for _, v := range m.Values {
		fmt.Fprintf(&b, "value %s %.6g %s %s\n", v.Metric, v.Number, v.Unit, v.Better)
	}
	for _, s := range m.Series {
		fmt.Fprintf(&b, "series %s %s %g %g\n", s.Name, s.Unit, s.Step, s.Values)
	}
	for _, h := range m.Histograms {
		fmt.Fprintf(&b, "histogram %s %s %d\n", h.Name, h.Unit, h.Count)
	}
	for _, f := range m.Facts {
		fmt.Fprintf(&b, "fact %s = %s\n", f.Name, f.Value)
	}
	for _, why := range m.Invalid {
		fmt.Fprintf(&b, "invalid %s: %s\n", why.Code, why.Text)
	}
	for _, w := range m.Warnings {
		fmt.Fprintf(&b, "warning %s: %s\n", w.Code, w.Text)
	}
	return b.String()
}

// TestGates checks that each reason for an invalid run is found, and no other.
func TestGates(t *testing.T) {
	tests := []struct {
		name  string
		base  func(*testing.T) sides
		spoil func(*sides)
		want  string // "" for valid
	}{
		{"nothing wrong", requests, func(*sides) {}, ""},
		{"nothing wrong, stream", stream, func(*sides) {}, ""},
		{"nothing wrong, datagrams", datagrams, func(*sides) {}, ""},
		{"agent failed", requests, func(s *sides) { s.Server.Failure = "read: broken" }, "agent failed: read: broken"},
		{"short window", stream, func(s *sides) { s.Client.Cost.Window = 0.5 }, "could not watch its window"},
		{"throttled", stream, func(s *sides) { s.Server.Cost.Throttled = 2 }, "throttled by its cgroup 2 times"},
		{"throttled by a limit that was asked for", stream, func(s *sides) {
			s.Server.Cost.Throttled, s.CPULimit = 2, "500m"
		}, ""},
		{"datagrams not sent", datagrams, missRate, ""},
		{"requests late", requests, func(s *sides) {
			s.Spec.Rate, s.Client.Planned = 10_000, 10_000
			s.Client.Late = histogramAt(20 * time.Millisecond)
		}, "generator was late"},
		{"nothing received", stream, func(s *sides) { *s = empty(*s) }, "nothing was received"},
		{"no operation", requests, func(s *sides) { *s = empty(*s) }, "no operation was completed"},
		{"received more than was sent", stream, func(s *sides) { s.Server.Received.Window++ }, "counters disagree"},
		{"lost bytes of a stream", stream, func(s *sides) { s.Server.Received.Window-- }, "counters disagree"},
		{"not read to the end", stream, func(s *sides) { s.Server.Received.Window--; s.Server.ReceivedAll = false }, ""},
		{"answers that nobody had", requests, func(s *sides) { s.Server.Answered += 1000 }, "counters disagree"},
		{"answers that nobody gave", requests, func(s *sides) { s.Server.Answered -= 1000 }, "counters disagree"},
		{"pings, which a kernel answers", requests, func(s *sides) { s.Spec.Kind, s.Server.Answered = netload.Ping, 0 }, ""},
		{"at the limit", requests, func(s *sides) { s.fail(100, 9900) }, ""},
		{"above the limit", requests, func(s *sides) { s.fail(101, 9899) },
			"101 of 10000 requests failed (1.01 %; the limit is 1.00 %)"},
		{"above the limit, cycles", requests, func(s *sides) {
			s.Spec.Kind = netload.TCPCRR
			s.fail(200, 9800)
			s.Client.Failure = "flow 0 (tcp-cycle): connect: connection refused, 0.100 s after the start"
		}, "200 of 10000 requests failed (2.00 %; the limit is 1.00 %), the first with flow 0 (tcp-cycle): connect:"},
		{"an open loop that was not done", requests, func(s *sides) {
			s.Spec.Rate, s.Client.Planned = 10_000, 10_000
			s.fail(0, 5000)
			s.Client.Unfinished, s.Client.Waited = 5000, waits(5000, time.Second)
		}, "(50.0 %; the limit is 1.00 %), of them 5000 for which there was no time: lower the rate"},
		{"a connection that died", requests, func(s *sides) {
			s.Client.Unfinished, s.Client.Waited = 1, waits(1, time.Second)
		}, "1 of 1 flows had no answer any more"},
		{"duplicates", datagrams, func(s *sides) { s.Server.Received.Window += 500; s.Server.Duplicate = 500 }, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := tt.base(t)
			tt.spoil(&s)
			m, err := merge(s)
			if err != nil {
				t.Fatal(err)
			}
			all := strings.Join(result.Texts(m.Invalid), "; ")
			if tt.want == "" && all != "" || !strings.Contains(all, tt.want) || len(m.Invalid) > 1 {
				t.Errorf("invalid for %q, want %q", all, tt.want)
			}
		})
	}
}

// TestBothDirections checks that throughput is the sum of both directions, and that each is reported.
func TestBothDirections(t *testing.T) {
	for name, s := range map[string]sides{"tcp-stream": stream(t), "udp-stream": datagrams(t)} {
		bits := 8.0
		if name == "udp-stream" {
			bits *= 1000
		}
		s.Server.Received.Window, s.Client.Received.Window = 700, 300
		for direction, want := range map[netload.Direction][3]float64{
			netload.Both: {1000 * bits, 700 * bits, 300 * bits}, netload.Forward: {1000 * bits, -1, -1},
		} {
			s.Spec.Direction = direction
			m, err := merge(s)
			if err != nil {
				t.Fatal(err)
			}
			got := [3]float64{numberOf(m, "throughput"), numberOf(m, "throughput-tx"), numberOf(m, "throughput-rx")}
			if got != want {
				t.Errorf("%s %s: throughput, -tx and -rx are %g, want %g", name, direction, got, want)
			}
		}
	}
}

func missRate(s *sides) {
	s.Client.Sent.Window, s.Server.Received.Window, s.Server.Arrived = 900, 800, 800
}

// TestRateMissed checks the report of a rate of datagrams that the sender cannot reach.
func TestRateMissed(t *testing.T) {
	s := datagrams(t)
	missRate(&s)
	m, err := merge(s)
	if err != nil {
		t.Fatal(err)
	}
	if numberOf(m, "throughput-sent") != 7.2e6 || numberOf(m, "throughput") != 6.4e6 || numberOf(m, "offered") != 900 {
		t.Errorf("%s", describe(m))
	}
	const said = "warning rate-missed: the sender sent 7.20 Mbit/s of the 8.00 Mbit/s that were asked for: "
	if text := describe(m); !strings.Contains(text, said) || !strings.Contains(text, "fact generator.limited = yes") {
		t.Errorf("%s", text)
	}
}

func histogramAt(d time.Duration) string {
	h := netload.NewHistogram()
	h.Record(int64(d))
	return h.Encode()
}

func waits(n int64, d time.Duration) string {
	h := netload.NewHistogram()
	for range n {
		h.Record(int64(d))
	}
	return h.Encode()
}

// fail changes a run to have lost requests that failed and done ones that succeeded.
func (s *sides) fail(lost, done uint64) {
	s.Client.Lost, s.Client.Operations.Window = lost, done
	s.Server.Answered = s.Client.Operations.Total()
	s.Client.Latency = waits(int64(done), 50*time.Microsecond)
	s.Client.Waited = waits(int64(lost), 200*time.Millisecond)
}

// TestThrottledByLimit checks that throttling by a limit that the user set is a warning.
func TestThrottledByLimit(t *testing.T) {
	s := stream(t)
	s.Client.Cost.Throttled, s.CPULimit = 3, "500m"
	m, err := merge(s)
	if err != nil {
		t.Fatal(err)
	}
	const said = "warning throttled: the client's CPU was throttled 3 times by its limit of 500m, which was asked for\n"
	if text := describe(m); !strings.Contains(text, said) || !strings.Contains(text, "value kernel.cpu-throttled 3 ") {
		t.Errorf("%s", text)
	}
}

// TestFailuresInLatency checks that quantiles include failed requests, and the warning about them.
func TestFailuresInLatency(t *testing.T) {
	s := requests(t)
	s.Spec.Kind = netload.UDPRR
	s.fail(50, 9950)
	m, err := merge(s)
	if err != nil || len(m.Invalid) > 0 {
		t.Fatal(err, m.Invalid)
	}
	if m.Histograms[0].Count != 10_000 || numberOf(m, "loss") != 0.005 ||
		numberOf(m, "p99") > 1e-3 || numberOf(m, "p99.9") < 0.1999 || numberOf(m, "max") < 0.2 {
		t.Errorf("%s", describe(m))
	}
	const said = "50 of 10000 requests failed (0.5 %; the limit is 1.00 %): they count as no faster than " +
		"the slowest answer"
	if text := strings.Join(result.Texts(m.Warnings), "; "); text != said {
		t.Error(text)
	}
}

func empty(s sides) sides {
	for _, r := range []*netload.Report{&s.Client, &s.Server} {
		r.Sent, r.Received, r.Operations, r.Answered, r.Latency = netload.Tally{}, netload.Tally{}, netload.Tally{}, 0, ""
	}
	return s
}

// TestFewSamples checks that percentiles without enough samples are left out with a warning.
func TestFewSamples(t *testing.T) {
	s := requests(t)
	s.Client.Latency = histogram(t, 367, time.Millisecond)
	s.Client.Operations = netload.Tally{Window: 367}
	s.Server.Answered = 367
	m, err := merge(s)
	if err != nil {
		t.Fatal(err)
	}
	text := describe(m)
	if strings.Contains(text, "value p99 ") || strings.Contains(text, "value p99.9 ") ||
		!strings.Contains(text, "value p90 ") || len(m.Warnings) != 2 ||
		!strings.Contains(text, "warning few-samples: p99 needs 368 operations, there were 367") || len(m.Invalid) > 0 {
		t.Errorf("%s", text)
	}
	// Too few for the median, which the verdict is about: the run must not count.
	s.Client.Latency = histogram(t, 2, time.Millisecond)
	s.Client.Operations, s.Server.Answered = netload.Tally{Window: 2}, 2
	if m, err = merge(s); err != nil {
		t.Fatal(err)
	}
	if len(m.Invalid) != 1 || m.Invalid[0].Code != result.MetricMissing {
		t.Errorf("%+v", m.Invalid)
	}
}

// TestShared checks that the CPU time of a shared machine counts once.
func TestShared(t *testing.T) {
	apart := stream(t)
	together := stream(t)
	together.Shared = true
	one, err1 := merge(apart)
	two, err2 := merge(together)
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	// 1.1 CPU seconds less the idle level of 0.1, for one GB.
	if a, b := numberOf(one, "cpu-per-gb"), numberOf(two, "cpu-per-gb"); a != 2 || b != 1 {
		t.Errorf("cpu-per-gb is %g apart, %g together", a, b)
	}
}

func numberOf(m result.Measurement, metric string) float64 {
	for _, v := range m.Values {
		if v.Metric == metric {
			return v.Number
		}
	}
	return -1
}

// TestLimited checks that a thread that was always on its CPU is reported as the limit.
func TestLimited(t *testing.T) {
	s := stream(t)
	s.Client.Threads[0].System = 1.1
	m, err := merge(s)
	if err != nil {
		t.Fatal(err)
	}
	if text := describe(m); !strings.Contains(text, "generator.limited = yes\nfact generator.limited.why = a tcp-stream "+
		"thread of the client was on its CPU for 100 % of the run, 92 % in the kernel") {
		t.Errorf("%s", text)
	}
}

// TestMetrics checks that the metrics of every workload include its verdict's, and none twice.
func TestMetrics(t *testing.T) {
	for _, k := range netload.Kinds() {
		main := network.Metric(netload.Spec{Kind: k})
		var names []string
		for _, m := range metricsOf(k) {
			names = append(names, m.Name)
		}
		if !slices.Contains(names, main) {
			t.Errorf("%s is judged by %s, which is not in the list", k, main)
		}
		if slices.Sort(names); len(slices.Compact(names)) != len(metricsOf(k)) {
			t.Errorf("%s has a metric twice: %s", k, names)
		}
	}
}

func FuzzReport(f *testing.F) {
	f.Add([]byte(`{"role":"client","latency":"x"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var r netload.Report
		if json.Unmarshal(b, &r) == nil {
			_, _ = merge(sides{Spec: netload.Spec{Kind: netload.TCPRR}, Client: r, Server: r})
		}
	})
}

// TestIdleLevelOfABusyMachine checks that the agents' own time is a cost even with a high idle level.
func TestIdleLevelOfABusyMachine(t *testing.T) {
	s := stream(t)
	s.Shared = true
	s.Client.Cost.Idle, s.Server.Cost.Idle = 5, 5
	m, err := merge(s)
	if err != nil {
		t.Fatal(err)
	}
	if got := numberOf(m, "cpu-per-gb"); math.Abs(got-0.8) > 1e-9 {
		t.Errorf("cpu-per-gb is %g, want the 0.8 CPU seconds of the agents", got)
	}
}

func TestPlacement(t *testing.T) {
	pair := host.Pair{Client: host.NewLocal("a", netip.Addr{}, []int{0, 1}),
		Server: host.NewLocal("b", netip.Addr{}, []int{2, 3}), Shared: true}
	for text, together := range map[string]bool{
		"tcp-rr": true, "udp-rr": true, "tcp-crr": true, "tcp-rr:rate=1000": false,
		"tcp-rr:flows=4": false, "tcp-stream": false, "udp-stream": false, "tcp-rr-loaded": false,
	} {
		w, err := netload.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		client, server := cpus(pair, w)
		if got := slices.Equal(client, server); got != together {
			t.Errorf("%s: client on %v, server on %v", text, client, server)
		}
	}
	pair.Shared = false
	if client, server := cpus(pair, netload.Spec{Kind: netload.TCPRR, Flows: 1}); slices.Equal(client, server) {
		t.Errorf("two machines: client on %v, server on %v", client, server)
	}
}
