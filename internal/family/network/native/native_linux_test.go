package native

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/knotmeter/knotmeter/internal/agent"
	"github.com/knotmeter/knotmeter/internal/agent/program"
	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/family/network"
	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/lab"
	"github.com/knotmeter/knotmeter/internal/lab/datapath"
	"github.com/knotmeter/knotmeter/internal/load/netload"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
)

// Arguments that make the test binary an agent, the parent of one, or the holder of a lab.
const (
	agentArgument  = "be-an-agent"
	parentArgument = "be-a-parent"
	holderArgument = "hold-a-lab"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == agentArgument {
		if program.ServeAgent(context.Background(), os.Stdin, os.Stdout) != nil {
			os.Exit(1)
		}
		return
	}
	if len(os.Args) > 1 && os.Args[1] == holderArgument {
		if err := lab.Hold(datapath.Kit); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if len(os.Args) > 1 && os.Args[1] == parentArgument {
		cmd := exec.Command(os.Args[0], agentArgument)
		cmd.Stdin, cmd.Stdout = os.Stdin, os.Stdout
		if err := cmd.Start(); err != nil {
			os.Exit(1)
		}
		fmt.Println(cmd.Process.Pid)
		_ = cmd.Wait()
		return
	}
	// Agents under the race detector need not wait for late reports.
	os.Setenv("GORACE", "atexit_sleep_ms=0")
	os.Exit(m.Run())
}

// pair returns this machine as client and server, with a server port chosen by the kernel.
func pair(t *testing.T, addr string) host.Pair {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	a := netip.MustParseAddr(addr)
	cpus := []int{0}
	last := []int{runtime.NumCPU() - 1}
	return host.Pair{
		Client: host.NewLocal("client", a, cpus, self, agentArgument),
		Server: host.NewLocal("server", a, last, self, agentArgument),
		Dial:   netip.AddrPortFrom(a, 0), Listen: netip.AddrPortFrom(a, 0),
		Shared: true, MTU: 1500,
	}
}

// do runs a workload with its own times. On a busy machine a short window may end too late, or have so little CPU time
// that there are no operations, or too few for the metric that the verdict is about; then do repeats it with a longer
// one.
func do(ctx context.Context, tool *Tool, p host.Pair, w netload.Spec) (m result.Measurement, err error) {
	for ; ; w.Duration *= 4 {
		m, err = tool.Run(ctx, p, network.Workload{Spec: w}, family.Times{Warmup: w.Warmup, Window: w.Duration})
		tooShort := func(why result.Warning) bool {
			return slices.Contains([]result.Code{result.NothingDone, result.MetricMissing, result.ShortWindow}, why.Code)
		}
		if err != nil || w.Duration > 10*time.Second || !slices.ContainsFunc(m.Invalid, tooShort) {
			return m, err
		}
	}
}

func short(w netload.Spec) netload.Spec {
	w.Duration, w.Warmup = 300*time.Millisecond, 50*time.Millisecond
	w, err := w.Resolved()
	if err != nil {
		panic(err)
	}
	return w
}

func number(t *testing.T, m result.Measurement, metric string) float64 {
	t.Helper()
	for _, v := range m.Values {
		if v.Metric == metric {
			return v.Number
		}
	}
	t.Errorf("no %s among %v", metric, m.Values)
	return 0
}

// quantileOf returns a quantile of all latencies, even if there are too few of them to report it.
func quantileOf(t *testing.T, m result.Measurement, q float64) float64 {
	t.Helper()
	h, err := netload.DecodeHistogram(m.Histograms[0].Encoded)
	if err != nil {
		t.Fatal(err)
	}
	return h.Quantile(q)
}

func fact(m result.Measurement, name string) string {
	for _, f := range m.Facts {
		if f.Name == name {
			return f.Value
		}
	}
	return ""
}

// scheduling reports whether a run is invalid for lack of CPU time, which may happen on a busy machine at any time.
func scheduling(invalid string) bool {
	return strings.Contains(invalid, "generator was late") || strings.Contains(invalid, "looks at the counters") ||
		strings.Contains(invalid, "no rate that was tried")
}

// TestTuned checks that connections have the segment size and the congestion control of the workload, in both
// directions.
func TestTuned(t *testing.T) {
	for _, direction := range []netload.Direction{netload.Forward, netload.Reverse} {
		w := short(netload.Spec{Kind: netload.TCPStream, MSS: 1000, Congestion: "reno", Direction: direction})
		m, err := do(t.Context(), New(), pair(t, "127.0.0.1"), w)
		if err != nil {
			t.Fatal(err)
		}
		// Time stamps take 12 bytes of each segment.
		if mss, control := number(t, m, "mss"), fact(m, "tcp.congestion"); mss != 988 || control != "reno" {
			t.Errorf("%s: segments of %g bytes, %s", direction, mss, control)
		}
	}
	w := short(netload.Spec{Kind: netload.TCPStream, Congestion: "there-is-none"})
	if _, err := do(t.Context(), New(), pair(t, "127.0.0.1"), w); err == nil ||
		!strings.Contains(err.Error(), `no congestion control "there-is-none"`) {
		t.Error(err)
	}
}

// TestWorkloads runs every workload over IPv4 and IPv6, in every direction, with one flow and several.
func TestWorkloads(t *testing.T) {
	tests := []struct {
		name    string
		w       netload.Spec
		metrics []string
	}{
		{"tcp-stream", netload.Spec{Kind: netload.TCPStream},
			[]string{"throughput", "cpu-per-gb", "retransmits", "rtt", "mss"}},
		{"tcp-stream reverse", netload.Spec{Kind: netload.TCPStream, Flows: 3, Direction: netload.Reverse},
			[]string{"throughput"}},
		{"tcp-stream both", netload.Spec{Kind: netload.TCPStream, Size: 4096, Direction: netload.Both},
			[]string{"throughput"}},
		{"udp-stream paced", netload.Spec{Kind: netload.UDPStream, Rate: 2000},
			[]string{"throughput", "rate", "loss", "jitter", "reordered", "cpu-per-op"}},
		{"udp-stream sweep", netload.Spec{Kind: netload.UDPStream, Size: 64}, []string{"throughput", "rate", "loss"}},
		{"udp-stream both", netload.Spec{Kind: netload.UDPStream, Rate: 1000, Flows: 2, Direction: netload.Both},
			[]string{"throughput", "loss"}},
		{"udp-stream offload", netload.Spec{Kind: netload.UDPStream, Rate: 20000, Size: 1000, Offload: true},
			[]string{"throughput", "loss"}},
		{"udp-stream-unpaced", netload.Spec{Kind: netload.UDPUnpaced},
			[]string{"throughput", "throughput-sent", "rate", "offered", "loss", "jitter"}},
		{"udp-stream-unpaced both", netload.Spec{Kind: netload.UDPUnpaced, Flows: 2, Direction: netload.Both},
			[]string{"throughput", "throughput-sent", "loss"}},
		{"tcp-rr", netload.Spec{Kind: netload.TCPRR}, []string{"rate", "p50", "p90", "max", "mean", "cpu-per-op"}},
		{"tcp-rr open", netload.Spec{Kind: netload.TCPRR, Rate: 500, Flows: 2},
			[]string{"rate", "p50", "lateness-p99", "offered"}},
		{"tcp-rr large", netload.Spec{Kind: netload.TCPRR, Request: 300000, Response: 700000}, []string{"rate", "p50"}},
		{"udp-rr", netload.Spec{Kind: netload.UDPRR, Flows: 2}, []string{"rate", "p50", "loss"}},
		{"ping", netload.Spec{Kind: netload.Ping, Flows: 2, Interval: 2 * time.Millisecond, Size: 1401},
			[]string{"rate", "p50", "min", "stddev", "loss", "cpu-per-op"}},
		{"tcp-crr", netload.Spec{Kind: netload.TCPCRR, Flows: 2}, []string{"rate", "p50", "failed"}},
		{"tcp-crr large", netload.Spec{Kind: netload.TCPCRR, Request: 300000, Response: 2}, []string{"rate", "p50"}},
		{"tcp-rr-loaded", netload.Spec{Kind: netload.TCPRRLoaded}, []string{"rate", "load-throughput", "retransmits"}},
	}
	tool := New()
	for _, addr := range []string{"127.0.0.1", "::1"} {
		for _, tt := range tests {
			t.Run(tt.name+" "+addr, func(t *testing.T) {
				m, err := do(t.Context(), tool, pair(t, addr), short(tt.w))
				// A busy machine may keep the sender waiting for the whole window.
				for again := 4; again > 0 && err == nil && numberOf(m, "throughput-sent") == 0; again-- {
					m, err = do(t.Context(), tool, pair(t, addr), short(tt.w))
				}
				if err != nil {
					t.Fatal(err)
				}
				check(t, m, tt.metrics)
			})
		}
	}
}

// check verifies what holds for every measurement.
func check(t *testing.T, m result.Measurement, metrics []string) {
	t.Helper()
	for _, why := range m.Invalid {
		if !scheduling(why.Text) {
			t.Errorf("invalid: %s", why.Text)
		}
	}
	for _, name := range metrics {
		few := func(w result.Warning) bool { return w.Code == result.FewSamples && w.Metric == name }
		if name == "p90" && slices.ContainsFunc(m.Warnings, few) {
			continue // a busy machine has answered too few requests, and the run says so
		}
		v := number(t, m, name)
		if v < 0 || v == 0 && (name == "throughput" || name == "rate" || name == "p50") {
			t.Errorf("%s = %g", name, v)
		}
	}
	seen := map[string]bool{}
	for _, v := range m.Values {
		if seen[v.Metric] {
			t.Errorf("%s is there twice", v.Metric)
		}
		seen[v.Metric] = true
	}
	for _, name := range []string{"tool.version", "cpu.client", "cpu.server", "generator.limited", "warmup.left-out"} {
		if fact(m, name) == "" {
			t.Errorf("no fact %s", name)
		}
	}
	for _, f := range m.Raw {
		if strings.HasSuffix(f.Name, ".request.json") && !bytes.Contains(f.Data, []byte("(left out)")) {
			t.Errorf("%s: %s", f.Name, f.Data)
		}
	}
	if len(m.Raw)%5 != 0 || len(m.Raw) == 0 || len(m.Series) != 1 {
		t.Errorf("%d raw files, %d series", len(m.Raw), len(m.Series))
	}
}

// TestRateKept checks that an open loop offers exactly its rate, however late some answers are.
func TestRateKept(t *testing.T) {
	w := netload.Spec{Kind: netload.TCPRR, Rate: 400, Duration: time.Second, Warmup: 100 * time.Millisecond}
	w, err := w.Resolved()
	if err != nil {
		t.Fatal(err)
	}
	m, err := do(t.Context(), New(), pair(t, "127.0.0.1"), w)
	if err != nil {
		t.Fatal(err)
	}
	if offered := number(t, m, "offered"); offered != 400 || len(m.Histograms) != 1 || m.Histograms[0].Count != 400 {
		t.Errorf("offered %g per second, latencies %v; want 400 of each", offered, m.Histograms)
	}
	if fact(m, "loop") != "open" {
		t.Errorf("loop is %q", fact(m, "loop"))
	}
}

// TestIdleLevelOfEachAgent checks that every new agent measures the idle level of its machine.
func TestIdleLevelOfEachAgent(t *testing.T) {
	tool := New()
	for range 2 {
		m, err := do(t.Context(), tool, pair(t, "127.0.0.1"), short(netload.Spec{Kind: netload.TCPRR}))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range m.Raw {
			if strings.HasSuffix(f.Name, ".request.json") && !bytes.Contains(f.Data, []byte(`"idle":`)) {
				t.Errorf("%s: %s", f.Name, f.Data)
			}
		}
	}
}

// TestLeavesNothing checks that both agents end when the context ends during a run.
func TestLeavesNothing(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	w := short(netload.Spec{Kind: netload.TCPStream})
	w.Duration = time.Minute
	_, err := do(ctx, New(), pair(t, "127.0.0.1"), w)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("error is %v", err)
	}
	if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); pid > 0 || err == nil {
		t.Errorf("a child is left: %d, %v", pid, err)
	}
}

// TestAgentsLiveOn checks that agents of a pool carry out several runs, and that only the run in which an agent dies
// fails.
func TestAgentsLiveOn(t *testing.T) {
	pool := agent.NewPool()
	defer pool.Close()
	p := pair(t, "127.0.0.1")
	p.Client, p.Server = pool.On(p.Client), pool.On(p.Server)
	tool := New()
	var first []string
	for i, w := range []netload.Spec{{Kind: netload.TCPStream}, {Kind: netload.UDPRR}, {Kind: netload.TCPCRR}} {
		m, err := do(t.Context(), tool, p, short(w))
		if err != nil {
			t.Fatal(err)
		}
		check(t, m, nil)
		if now := agentProcesses(t); i > 0 && !slices.Equal(now, first) || len(now) != 2 {
			t.Errorf("run %d: the agents are %v, before %v", i, now, first)
		} else {
			first = now
		}
	}
	endless := short(netload.Spec{Kind: netload.TCPRR})
	endless.Duration = time.Minute
	time.AfterFunc(200*time.Millisecond, func() {
		if pid, err := strconv.Atoi(first[0]); err == nil {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	began := time.Now()
	if _, err := do(t.Context(), tool, p, endless); err == nil || time.Since(began) >= endless.Duration {
		t.Errorf("a run whose agent was killed: %v after %v", err, time.Since(began))
	}
	if _, err := do(t.Context(), tool, p, short(netload.Spec{Kind: netload.TCPRR})); err != nil {
		t.Errorf("the run after it: %v", err)
	}
	if now := agentProcesses(t); len(now) != 2 || slices.Equal(now, first) {
		t.Errorf("the agents are %v, before %v", now, first)
	}
	pool.Close()
	if now := agentProcesses(t); len(now) != 0 {
		t.Errorf("agents are left: %v", now)
	}
}

// TestParentKilled checks that an agent ends within two seconds after its parent is killed, even if its input stays
// open.
func TestParentKilled(t *testing.T) {
	w := short(netload.Spec{Kind: netload.TCPRR})
	w.Duration = time.Minute
	r, err := New().plan(pair(t, "127.0.0.1"), w)
	if err != nil {
		t.Fatal(err)
	}
	r.server.config.Idle = 0
	body, err := json.Marshal(r.server.config)
	if err != nil {
		t.Fatal(err)
	}
	parent := exec.Command(os.Args[0], parentArgument)
	in, err := parent.StdinPipe() // shared with the agent, and stays open
	if err != nil {
		t.Fatal(err)
	}
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	token, _ := r.token.MarshalText()
	fmt.Fprintf(in, `{"id":1,"verb":%q,"token":%q,"body":%s}`+"\n", netload.Verb, token, body)
	pid := 0
	lines := bufio.NewScanner(out)
	for ready := false; (pid == 0 || !ready) && lines.Scan(); {
		if n, err := strconv.Atoi(lines.Text()); err == nil {
			pid = n
		} else {
			ready = strings.Contains(lines.Text(), `"event":"`+agent.Ready)
		}
	}
	if err := parent.Process.Kill(); err != nil || pid == 0 {
		t.Fatalf("agent %d, %v", pid, err)
	}
	for deadline := time.Now().Add(2 * time.Second); alive(pid); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			syscall.Kill(pid, syscall.SIGKILL)
			t.Fatal("the agent outlived its parent")
		}
	}
	_ = parent.Wait()
}

// alive reports whether a process runs and is not a zombie.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !bytes.Contains(stat, []byte(") Z "))
}

// A broken host cannot start its agent.
type broken struct{ host.Host }

func (broken) Run(context.Context, host.Cmd) error { return host.ErrNoCommand }

func TestErrors(t *testing.T) {
	p := pair(t, "127.0.0.1")
	p.Server = broken{p.Server}
	_, err := do(t.Context(), New(), p, short(netload.Spec{Kind: netload.TCPRR}))
	if !errors.Is(err, host.ErrNoCommand) || !strings.HasPrefix(err.Error(), "server") {
		t.Errorf("error is %v", err)
	}
	p = pair(t, "127.0.0.1")
	p.Client = broken{p.Client}
	_, err = do(t.Context(), New(), p, short(netload.Spec{Kind: netload.TCPRR}))
	if !errors.Is(err, host.ErrNoCommand) || !strings.HasPrefix(err.Error(), "client") {
		t.Errorf("error is %v", err)
	}
	p = pair(t, "127.0.0.1")
	p.Listen = netip.MustParseAddrPort("192.0.2.1:0") // not an address of this machine
	_, err = do(t.Context(), New(), p, short(netload.Spec{Kind: netload.TCPRR}))
	if err == nil || !strings.Contains(err.Error(), "192.0.2.1") || !strings.HasPrefix(err.Error(), "server") {
		t.Errorf("error is %v", err)
	}
}

func TestSupports(t *testing.T) {
	for _, k := range netload.Kinds() {
		if err := New().Supports(network.Workload{Spec: netload.Spec{Kind: k}}); err != nil {
			t.Errorf("%s: %v", k, err)
		}
	}
	err := New().Supports(network.Workload{Spec: netload.Spec{Kind: netload.UDPStream, Size: netload.MinDatagram - 1}})
	if !errors.Is(err, result.ErrNotSupported) {
		t.Errorf("a tiny datagram: %v", err)
	}
	for path, want := range map[result.Path]bool{result.PodPodOther: true, result.PodSvcOther: false} {
		err := New().Supports(network.Workload{Path: path, Spec: netload.Spec{Kind: netload.Ping}})
		if (err == nil) != want || err != nil && !errors.Is(err, result.ErrNotSupported) {
			t.Errorf("pings on %s: %v", path, err)
		}
	}
}

// TestSecret checks that no raw file has the token.
func TestSecret(t *testing.T) {
	r, err := New().plan(pair(t, "127.0.0.1"), short(netload.Spec{Kind: netload.TCPRR}))
	if err != nil {
		t.Fatal(err)
	}
	token, err := r.token.MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	if request := r.request(&r.client); request.Token != string(token) {
		t.Fatalf("the agent does not get the token, but %s", request.Token)
	}
	for _, f := range r.raw(pair(t, "127.0.0.1")) {
		if bytes.Contains(f.Data, token) {
			t.Errorf("%s has the token", f.Name)
		}
	}
}

// TestMaxRate checks that streams and datagrams stay below max-rate, in both directions and over all flows, whether a
// rate is given or searched for.
func TestMaxRate(t *testing.T) {
	const most = 50e6
	for _, text := range []string{
		"tcp-stream:max-rate=50Mbit/s", "tcp-stream:direction=reverse,flows=4,max-rate=50Mbit/s",
		"udp-stream:rate=1000000,size=1000,max-rate=50Mbit/s", "udp-stream:size=1000,max-rate=50Mbit/s",
	} {
		w, err := netload.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		w.Warmup, w.Duration = 500*time.Millisecond, time.Second
		m, err := do(t.Context(), New(), pair(t, "127.0.0.1"), w)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		i := slices.IndexFunc(m.Values, func(v result.Value) bool { return v.Metric == network.Metric(w) })
		// Data in flight when the window begins may arrive in it.
		if i < 0 || m.Values[i].Number <= 0 || m.Values[i].Number > 1.2*most {
			t.Errorf("%s: %+v", text, m.Values)
		}
	}
}

// TestIdle checks that an idle run lasts its window, sends nothing, and reports the use of the machine.
func TestIdle(t *testing.T) {
	w, err := netload.Parse("idle")
	if err != nil {
		t.Fatal(err)
	}
	w.Duration = 500 * time.Millisecond
	begin := time.Now()
	m, err := do(t.Context(), New(), pair(t, "127.0.0.1"), w)
	if err != nil || len(m.Invalid) > 0 {
		t.Fatalf("%v, %+v", err, m.Invalid)
	}
	if took := time.Since(begin); took < w.Duration {
		t.Errorf("it took %s, less than its window", took)
	}
	r := result.Run{Values: m.Values}
	for _, name := range []string{metric.CPUUnloaded, metric.CPUBusy, metric.Memory, metric.MemoryIdleLevel} {
		if v, has := r.Value(name); !has || v.Number < 0 {
			t.Errorf("%s is %+v", name, v)
		}
	}
	if v, has := r.Value(metric.Rate); has || len(m.Series) > 0 {
		t.Errorf("a run without requests has the rate %+v and the series %+v", v, m.Series)
	}
}
