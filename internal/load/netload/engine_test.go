package netload

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/knotmeter/knotmeter/internal/machine"
)

func TestPacer(t *testing.T) {
	tests := []struct {
		name string
		p    Pacer
		now  int64
		done uint64
		n    uint64
		wait int64
	}{
		{"the first is due at once", Pacer{Rate: 1000}, 0, 0, 1, 0},
		{"the second not yet", Pacer{Rate: 1000}, 0, 1, 0, 1e6},
		{"just before", Pacer{Rate: 1000}, 999_999, 1, 0, 1},
		{"just in time", Pacer{Rate: 1000}, 1e6, 1, 1, 0},
		{"late by some", Pacer{Rate: 1000}, 5_500_000, 1, 5, 0},
		{"an offset", Pacer{Rate: 1000, Offset: 250_000}, 0, 0, 0, 250_000},
		{"an offset, due", Pacer{Rate: 1000, Offset: 250_000}, 1_250_000, 0, 2, 0},
		{"ahead of the plan", Pacer{Rate: 10}, 0, 5, 0, 500_000_000},
		{"unpaced", Pacer{Rate: Unpaced}, 1000, 0, 1001, 0},
		{"a plan that is not a whole number of ns", Pacer{Rate: 3e8}, 1000, 0, 301, 0},
		{"the next after all runs", Pacer{Rate: 1e-12}, 1e9, 0, 1, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			n, wait := tt.p.Due(tt.now, tt.done)
			if n != tt.n || wait != tt.wait {
				t.Errorf("Due(%d, %d) = %d, %d; want %d, %d", tt.now, tt.done, n, wait, tt.n, tt.wait)
			}
		})
	}
}

// TestPacerPlan checks that, however time passes, exactly the scheduled operations become due, and that the flows of a
// run together keep its rate.
func TestPacerPlan(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		rate := math.Exp(r.Float64()*18) + 0.1
		flows := 1 + r.IntN(8)
		var all uint64
		const second = int64(1e9)
		for i := range flows {
			p := NewPacer(rate, i, flows)
			var done uint64
			for now := int64(0); now < second; now += 1 + r.Int64N(5e7) {
				n, wait := p.Due(now, done)
				done += n
				if next := p.Planned(done); next <= now || n == 0 && wait != next-now {
					t.Fatalf("rate %g flow %d/%d at %d: done %d, next planned at %d, wait %d", rate, i, flows, now, done, next, wait)
				}
				if done > 0 && p.Planned(done-1) > now {
					t.Fatalf("rate %g: %d begun at %d, planned at %d", rate, done-1, now, p.Planned(done-1))
				}
			}
			all += p.Until(second)
		}
		if diff := math.Abs(float64(all) - rate); diff > 1+float64(flows) {
			t.Errorf("%d flows at %g per second plan %d in a second", flows, rate, all)
		}
	}
}

func TestMeter(t *testing.T) {
	line := NewTimeline(200*time.Millisecond, 250*time.Millisecond)
	m := NewMeter(line)
	for _, at := range []int64{-5, 0, 199_999_999, 200e6, 299_999_999, 300e6, 449_999_999, 450e6, 1e12} {
		m.Add(at, 10)
	}
	if got, want := m.Tally(), (Tally{Warm: 30, Window: 40, After: 20}); got != want {
		t.Errorf("tally %+v, want %+v", got, want)
	}
	if got := fmt.Sprint(m.AddSteps(nil)); got != "[20 10 10]" {
		t.Errorf("steps %s", got)
	}
	if got := fmt.Sprint(m.AddSteps(m.AddSteps(nil))); got != "[40 20 20]" {
		t.Errorf("sum of steps %s", got)
	}
}

// observe passes datagrams with these numbers to a sequence. They were sent 1 ms apart and took 1 ms each.
func observe(s *sequence, numbers ...uint64) {
	for _, n := range numbers {
		s.Observe(n, int64(n)*1e6, int64(n)*1e6+1e6)
	}
}

func TestSequence(t *testing.T) {
	far := uint64(recent)
	tests := []struct {
		name                                 string
		numbers                              []uint64
		received, reordered, duplicate, gaps uint64
	}{
		{"none", nil, 0, 0, 0, 0},
		{"in order", []uint64{0, 1, 2, 3}, 4, 0, 0, 0},
		{"one lost", []uint64{0, 1, 3}, 3, 0, 0, 1},
		{"the first ones lost", []uint64{5}, 1, 0, 0, 5},
		{"swapped", []uint64{0, 2, 1, 3}, 4, 1, 0, 0},
		{"late by three", []uint64{0, 2, 3, 4, 1}, 5, 1, 0, 0},
		{"twice", []uint64{0, 1, 1, 2}, 3, 0, 1, 0},
		{"twice and late", []uint64{0, 2, 1, 1, 2}, 3, 1, 2, 0},
		{"three times zero", []uint64{0, 0, 0}, 1, 0, 2, 0},
		{"a gap as long as the memory", []uint64{0, far + 10, 11, 11}, 3, 1, 1, far + 8},
		{"older than the memory", []uint64{0, far + 10, 3}, 3, 1, 0, far + 8},
		{"numbers that share a place", []uint64{1, far + 1, far + 1}, 2, 0, 1, far},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newSequence(Timeline{0, 1e18})
			observe(s, tt.numbers...)
			got := []uint64{s.Received, s.Reordered, s.Duplicate, s.Gaps()}
			want := []uint64{tt.received, tt.reordered, tt.duplicate, tt.gaps}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("received, reordered, duplicate, gaps = %v, want %v", got, want)
			}
		})
	}
}

// TestSequencePattern compares the account with a known random pattern of loss, reordering and duplication.
func TestSequencePattern(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for round := range 50 {
		line := Timeline{1e9, 3e9}
		s := newSequence(line)
		var arriving []uint64
		lost, inWindow := uint64(0), uint64(0)
		const n = 4000
		for i := range uint64(n) {
			if r.Float64() < 0.05 && i != n-1 {
				lost++
				continue
			}
			arriving = append(arriving, i)
			if line.In(int64(i) * 1e6) {
				inWindow++
			}
		}
		for range 100 { // swap neighbours
			i := r.IntN(len(arriving) - 2)
			arriving[i], arriving[i+1] = arriving[i+1], arriving[i]
		}
		reordered, highest := uint64(0), int64(-1)
		for _, a := range arriving {
			if int64(a) < highest {
				reordered++
			}
			highest = max(highest, int64(a))
		}
		duplicates := 0
		for _, a := range arriving {
			observe(s, a)
			if r.Float64() < 0.01 {
				observe(s, a)
				duplicates++
			}
		}
		if s.Gaps() != lost || s.Reordered != reordered || s.Duplicate != uint64(duplicates) || s.Arrived != inWindow {
			t.Fatalf("round %d: lost %d, reordered %d, duplicate %d, in window %d; want %d, %d, %d, %d", round,
				s.Gaps(), s.Reordered, s.Duplicate, s.Arrived, lost, reordered, duplicates, inWindow)
		}
	}
}

// TestJitter checks that transits alternating by d give a jitter that converges to d (RFC 3550: the mean deviation of
// the difference between neighbours), and that the offset of the clocks has no effect.
func TestJitter(t *testing.T) {
	s := newSequence(Timeline{0, 1e18})
	for i := range uint64(1000) {
		s.Observe(i, int64(i)*1e6, int64(i)*1e6+7e12+int64(i%2)*50_000)
	}
	if j := s.Jitter(); math.Abs(j-50_000) > 1 {
		t.Errorf("jitter %g ns, want 50000", j)
	}
	even := newSequence(Timeline{0, 1e18})
	observe(even, 0, 1, 2, 3)
	if even.Jitter() != 0 {
		t.Errorf("jitter of an even flow is %g", even.Jitter())
	}
}

// offer returns the trial at a rate on a path that drops everything above its capacity, as a policer does, from a
// sender that is limited to ceiling.
func offer(rate, capacity, ceiling float64) Trial {
	sent := min(rate, ceiling)
	return Trial{Rate: rate, Achieved: sent, Sent: uint64(sent), Received: uint64(min(sent, capacity))}
}

func TestSweep(t *testing.T) {
	tests := []struct {
		name              string
		capacity, ceiling float64
		want              float64
	}{
		{"a path of 100 k", 100e3, 1e6, 100e3},
		{"a slow path", 500, 1e6, 500},
		{"close to the ceiling", 990e3, 1e6, 990e3},
		{"faster than the generator", 5e6, 1e6, 1e6},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newSweep(0.001, 4000)
			for {
				rate, done := s.Next()
				if done {
					break
				}
				s.Record(offer(rate, tt.capacity, tt.ceiling))
			}
			if got := s.passed; got > tt.want*1.002 || got < tt.want*0.97 {
				t.Errorf("found %g after %d trials, want %g", got, len(s.trials), tt.want)
			}
			// The step is that of the last interval, wide only if the trials ran out; the generator's limit is no grid.
			if step := s.Step(); step > 0.03 && len(s.trials) < s.MaxTrials || (step > 0) != (s.failed > 0) ||
				s.passed*(1+step) < tt.want*0.99 {
				t.Errorf("found %g with a step of %g", s.passed, step)
			}
			if len(s.trials) > s.MaxTrials {
				t.Errorf("%d trials", len(s.trials))
			}
		})
	}
}

// TestSweepEnds checks that a sweep ends whatever the trials report, with a rate to measure at.
func TestSweepEnds(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 500 {
		s := newSweep(0.001, 4000)
		for n := 0; ; n++ {
			rate, done := s.Next()
			if done {
				break
			}
			if n > s.MaxTrials || rate <= 0 || math.IsNaN(rate) {
				t.Fatalf("trial %d at %g", n, rate)
			}
			sent := uint64(r.IntN(1000))
			s.Record(Trial{Rate: rate, Achieved: float64(r.IntN(100_000)), Sent: sent, Received: uint64(r.IntN(int(sent) + 1))})
		}
		if s.passed == 0 && s.Fallback() < 1 {
			t.Fatalf("no rate to measure at: %+v", s)
		}
	}
}

// A bufferedPath carries capacity datagrams per second. Its buffer takes holds more before any is lost, as that of a
// receiver does.
type bufferedPath struct{ capacity, holds float64 }

// send returns the trial at a rate for a time in seconds. Datagrams in the buffer at the end count as received.
func (p bufferedPath) send(rate, seconds float64) Trial {
	sent := min(rate, 1e6) * seconds
	return Trial{Rate: rate, Achieved: sent / seconds, Sent: uint64(sent),
		Received: uint64(min(sent, p.capacity*seconds+p.holds))}
}

// TestSweepOutlastsBuffers checks that the final rate is what the path carries, whatever the size of the buffer: trials
// outlast the buffer, and windows step down until one stays below the threshold.
func TestSweepOutlastsBuffers(t *testing.T) {
	for _, p := range []bufferedPath{{10e3, 4000}, {85e3, 4000}, {85e3, 200}, {300e3, 10e3}, {700e3, 15e3}} {
		s := newSweep(0.001, p.holds)
		for {
			rate, done := s.Next()
			if done {
				break
			}
			s.Record(p.send(rate, s.Duration(rate).Seconds()))
		}
		rate, windows := s.passed, 0
		for {
			windows++
			window := p.send(rate, 2)
			if window.Loss() <= s.Threshold {
				break
			}
			rate = StepDown(rate, float64(window.Received)/2, windows)
		}
		if s.passed > 2*p.capacity || rate < 0.95*p.capacity || rate > p.capacity+p.holds || windows > 3 {
			t.Errorf("%+v: the search found %g, and window %d held %g", p, s.passed, windows, rate)
		}
	}
}

func TestSweepNothingPasses(t *testing.T) {
	s := newSweep(0, 4000)
	for {
		rate, done := s.Next()
		if done {
			break
		}
		s.Record(Trial{Rate: rate, Achieved: min(rate, 1000), Sent: 1000, Received: 900})
	}
	if s.passed != 0 || s.Fallback() <= 0 || s.Fallback() >= 1000 {
		t.Errorf("rate %g, fallback %g", s.passed, s.Fallback())
	}
}

func TestHistogram(t *testing.T) {
	h := NewHistogram()
	for i := range int64(1000) {
		h.Record((i + 1) * 1000)
	}
	if sd := h.Stddev(); math.Abs(sd-288.7e-6) > 0.5e-6 { // of 1 to 1000 µs
		t.Errorf("standard deviation %g s", sd)
	}
	h.Record(-5)
	h.Record(math.MaxInt64)
	if h.Count() != 1002 {
		t.Errorf("count %d", h.Count())
	}
	if p := h.Quantile(0.5); math.Abs(p-500e-6) > 2e-6 {
		t.Errorf("median %g s", p)
	}
	if m := h.Max(); math.Abs(m-100)/100 > 0.001 {
		t.Errorf("max %g s", m)
	}
	back, err := DecodeHistogram(h.Encode())
	if err != nil || back.Count() != h.Count() || back.Quantile(0.99) != h.Quantile(0.99) {
		t.Errorf("decoded: %v, %v", back, err)
	}
	if _, err := DecodeHistogram("nonsense"); err == nil {
		t.Error("nonsense was decoded")
	}
	if text := NewHistogram().Encode(); text != "" {
		t.Errorf("an empty histogram is %q", text)
	}
}

// TestAddFailed checks that failures never lower a quantile, however fast they were, and that they count with their
// time if that is longer.
func TestAddFailed(t *testing.T) {
	answered := func() *Histogram {
		h := NewHistogram()
		for ms := range int64(1000) {
			h.Record((ms + 1) * 1e6)
		}
		return h
	}
	for _, test := range []struct {
		name        string
		failed      []time.Duration
		p50, p99, x float64
	}{
		{"none", nil, 0.5, 0.99, 1},
		{"fast ones", []time.Duration{time.Microsecond, 0, time.Millisecond, time.Millisecond}, 0.502, 0.994, 1},
		{"slow ones", []time.Duration{5 * time.Second, 7 * time.Second}, 0.501, 0.992, 7},
		{"an hour", []time.Duration{time.Hour}, 0.501, 0.991, 100},
	} {
		h, failed := answered(), NewHistogram()
		for _, d := range test.failed {
			failed.Record(int64(d))
		}
		h.AddFailed(failed)
		near := func(got, want float64) bool { return math.Abs(got/want-1) < 2e-3 }
		quantiles := near(h.Quantile(0.5), test.p50) && near(h.Quantile(0.99), test.p99)
		if h.Count() != 1000+int64(len(test.failed)) || !quantiles || !near(h.Max(), test.x) {
			t.Errorf("%s: %d, p50 %g, p99 %g, max %g", test.name, h.Count(), h.Quantile(0.5), h.Quantile(0.99), h.Max())
		}
	}
	all, failed := NewHistogram(), NewHistogram()
	failed.Record(2e9)
	if all.AddFailed(failed); all.Count() != 1 || all.Min() < 1.99 {
		t.Errorf("nothing was answered: %d from %g s on", all.Count(), all.Min())
	}
}

// TestFailures checks that exactly the limit of failed requests is allowed.
func TestFailures(t *testing.T) {
	for _, test := range []struct {
		failed, all uint64
		many        bool
	}{{0, 0, false}, {0, 100, false}, {1, 100, false}, {1, 99, true}, {5, 1000, false}, {1366, 4100, true}} {
		if got := TooManyFailed(test.failed, test.all); got != test.many {
			t.Errorf("%d of %d: %t", test.failed, test.all, got)
		}
	}
	if got, want := Failures(1366, 4100), "1366 of 4100 requests failed (33.3 %; the limit is 1.00 %)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestCost(t *testing.T) {
	before := machine.CPUStat{0: {machine.User: 1}, 1: {machine.System: 1, machine.Idle: 1}}
	after := machine.CPUStat{0: {machine.User: 1.5, machine.SoftIRQ: 0.25, machine.Idle: 0.25},
		1: {machine.System: 1.1, machine.Idle: 1.9}}
	c := Cost{Window: 1, Idle: 0.1}
	c.setTimes(before, after)
	near := func(a, b float64) bool { return math.Abs(a-b) < 1e-9 }
	if !near(c.Machine.Busy(), 0.85) || !near(c.Used(), 0.75) || !near(c.Busiest, 0.75) || c.Hottest != 0 || c.CPUs != 2 {
		t.Errorf("%+v", c)
	}
}

func TestHello(t *testing.T) {
	h := hello{Purpose: flowPurpose, Flow: 513, Token: NewToken()}
	b := h.append(nil)
	got, err := parseHello(b)
	if len(b) != helloSize || err != nil || got != h || !got.Token.Equal(h.Token) || got.Token.Equal(NewToken()) {
		t.Errorf("%v, %v", got, err)
	}
	for n := range b {
		if _, err := parseHello(b[:n]); !errors.Is(err, errHello) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	if !isAck(appendAck(nil, 513), 513) || isAck(appendAck(nil, 512), 513) || isAck(nil, 0) {
		t.Error("acknowledgements")
	}
	text := fmt.Sprintf("%v %s %#v %+v", h.Token, h.Token, h.Token, h)
	if strings.Contains(text, fmt.Sprintf("%x", h.Token[:2])) {
		t.Errorf("the token shows: %s", text)
	}
}

func FuzzParseHello(f *testing.F) {
	f.Add(hello{Purpose: controlPurpose, Flow: 1, Token: Token{1}}.append(nil))
	f.Add([]byte("KNM1"))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := parseHello(b)
		if err != nil {
			if !errors.Is(err, errHello) {
				t.Errorf("%v", err)
			}
			return
		}
		if string(h.append(nil)) != string(b[:helloSize]) {
			t.Errorf("%x became %x", b, h.append(nil))
		}
	})
}

func TestParseMeminfo(t *testing.T) {
	for text, want := range map[string]float64{
		"MemTotal:       8000 kB\nMemFree:        1000 kB\nMemAvailable:   6000 kB\nHugePages_Total:       0\n": 2000 << 10,
		"MemTotal:       8000 kB\nMemFree:        1000 kB\n":                                                    0,
		"MemTotal:       8000 kB\nMemAvailable:   9000 kB\n":                                                    0,
		"MemTotal:       8000 kB\nMemAvailable:   some kB\n":                                                    0,
		"": 0,
	} {
		if got := ParseMeminfo(strings.NewReader(text)); got != want {
			t.Errorf("%q gives %g bytes, want %g", text, got, want)
		}
	}
}

func TestFlows(t *testing.T) {
	tests := []struct {
		w    Spec
		want string
	}{
		{Spec{Kind: TCPStream, Flows: 2}, "[{0 tcp-stream client} {1 tcp-stream client}]"},
		{Spec{Kind: TCPStream, Direction: Reverse}, "[{0 tcp-stream server}]"},
		{Spec{Kind: UDPStream, Direction: Both}, "[{0 udp-stream client} {1 udp-stream server}]"},
		{Spec{Kind: UDPUnpaced, Direction: Reverse}, "[{0 udp-stream server}]"},
		{Spec{Kind: TCPRR}, "[{0 tcp-request }]"},
		{Spec{Kind: UDPRR}, "[{0 udp-request }]"},
		{Spec{Kind: TCPCRR, Flows: 2}, "[{0 tcp-cycle } {1 tcp-cycle }]"},
		{Spec{Kind: Ping, Flows: 2}, "[{0 ping } {1 ping }]"},
		{Spec{Kind: TCPRRLoaded}, "[{0 tcp-request } {1 tcp-stream client} {2 tcp-stream server}]"},
	}
	for _, tt := range tests {
		w, err := tt.w.Resolved()
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(flows(w)); got != tt.want {
			t.Errorf("%+v: %s, want %s", tt.w, got, tt.want)
		}
	}
}

func TestValidate(t *testing.T) {
	good := Config{Role: Client, Token: NewToken(), Addr: netip.MustParseAddrPort("127.0.0.1:1"),
		Workload: Spec{Kind: TCPRR, Flows: 1, Request: 1, Response: 1, Duration: time.Second}}
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	tests := map[string]func(*Config){
		"role":     func(c *Config) { c.Role = "judge" },
		"token":    func(c *Config) { c.Token = Token{} },
		"address":  func(c *Config) { c.Addr = netip.AddrPort{} },
		"port":     func(c *Config) { c.Addr = netip.MustParseAddrPort("127.0.0.1:0") },
		"workload": func(c *Config) { c.Workload.Kind = "sctp" },
		"resolved": func(c *Config) { c.Workload.Flows = 0 },
		"window":   func(c *Config) { c.Workload.Duration = 0 },
		"idle":     func(c *Config) { c.Idle = -1 },
		"cpu":      func(c *Config) { c.CPUs = []int{-1} },
		"datagram": func(c *Config) {
			c.Workload = Spec{Kind: UDPStream, Flows: 1,
				Size: 8, Rate: 1, Direction: Forward, Duration: time.Second}
		},
	}
	for name, spoil := range tests {
		bad := good
		spoil(&bad)
		if err := bad.Validate(); !errors.Is(err, ErrConfig) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
