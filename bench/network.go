package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/knotmeter/knotmeter/internal/agent/program"
	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/family/network"
	"github.com/knotmeter/knotmeter/internal/family/network/native"
	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/load/netload"
	"github.com/knotmeter/knotmeter/internal/machine"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// Times of a run of Knotmeter, and of one of iperf3, whose ramp on a veth pair takes a few milliseconds.
const (
	warmup    = 200 * time.Millisecond
	window    = time.Second
	iperfTime = 2 * time.Second
)

// port is the port of servers.
const port = 5201

// benchNetwork compares the native load generator with programs for the same work and prints a table: with iperf3 for
// streams, with blocking C programs for requests. It needs root, cc and iperf3.
//
// The programs run in interleaved pairs in alternating order, between two network namespaces connected by a veth pair.
// Client and server are pinned to the same CPUs in both programs.
func benchNetwork(ctx context.Context, args []string) error {
	var only, cpus string
	var client, server int
	set := flag.NewFlagSet("network", flag.ContinueOnError)
	pairs := set.Int("pairs", 15, "interleaved pairs per comparison")
	set.StringVar(&only, "only", "", "comparisons whose name matches this expression")
	set.StringVar(&cpus, "cpus", "0,"+strconv.Itoa(runtime.NumCPU()-1), "CPUs of client and server")
	verbose := set.Bool("v", false, "print every pair")
	if err := set.Parse(args); err != nil {
		return err
	}
	matching, err := regexp.Compile(only)
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	if _, err := fmt.Sscanf(cpus, "%d,%d", &client, &server); err != nil {
		return fmt.Errorf("-cpus=%s is not two numbers: %w", cpus, err)
	}
	if *pairs < 1 {
		return errors.New("-pairs is below 1")
	}
	dir, err := os.MkdirTemp("", "knotmeter-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	wire, err := newWire(client, server)
	if err != nil {
		return err
	}
	defer wire.Close()
	benchmarks, err := listBenchmarks(ctx, dir)
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "comparison\tpairs\tours\treference\tratio\tquartiles\twanted\tCPU ratio\t")
	for _, b := range benchmarks {
		if !matching.MatchString(b.name) {
			continue
		}
		list, err := b.measure(ctx, wire, *pairs, *verbose)
		if err != nil {
			return fmt.Errorf("%s: %w", b.name, err)
		}
		fmt.Fprintln(table, b.row(list))
	}
	return table.Flush()
}

// serveAgent runs the agent.
func serveAgent(ctx context.Context, _ []string) error {
	return program.ServeAgent(ctx, os.Stdin, os.Stdout)
}

// A benchmark is the comparison of two programs with one workload.
type benchmark struct {
	name         string
	unit         unit.Unit
	higherBetter bool
	wanted       float64 // ratio of the medians, ours to the reference
	ours         runner
	reference    runner
}

// A runner runs a program once.
type runner func(ctx context.Context, w *wire) (measurement, error)

// A measurement is the result of one run.
type measurement struct {
	value float64 // the compared number
	work  float64 // bytes, operations or datagrams over the whole run
	cost  float64 // CPU seconds of the machine per unit of work; set by [measureCost]
}

func (b benchmark) format(v float64) string { return unit.Format(v, b.unit) }

// listBenchmarks returns all benchmarks. C programs are compiled into dir.
func listBenchmarks(ctx context.Context, dir string) ([]benchmark, error) {
	rr, err := compile(ctx, dir, "tcp_rr")
	if err != nil {
		return nil, err
	}
	threads, err := compile(ctx, dir, "tcp_rr", "-DSECOND_THREAD", "-pthread")
	if err != nil {
		return nil, err
	}
	crr, err := compile(ctx, dir, "tcp_crr")
	if err != nil {
		return nil, err
	}
	udp := func(size int) benchmark {
		return benchmark{
			fmt.Sprintf("udp-stream %d B against iperf3", size), unit.PerSecond, true, 1.3,
			nativeTool(native.New(), netload.Spec{Kind: netload.UDPStream, Size: size, Rate: netload.Unpaced}, metric.Rate),
			iperf3(size, "-u", "-b", "0", "-l", strconv.Itoa(size)),
		}
	}
	stream, request := netload.Spec{Kind: netload.TCPStream}, netload.Spec{Kind: netload.TCPRR}
	return []benchmark{
		{
			"tcp-stream 128 KiB against iperf3", unit.BitPerSecond, true, 1.1,
			nativeTool(native.New(), stream, metric.Throughput), iperf3(0, "-l", "128K"),
		},
		{
			"tcp-rr 1 B, p50, against C", unit.Second, false, 1.05,
			nativeTool(native.New(), request, metric.P50), cProgram(rr, true),
		},
		{
			"tcp-rr, C with a second thread against C", unit.Second, false, 1.05,
			cProgram(threads, true), cProgram(rr, true),
		},
		{
			"tcp-crr against C", unit.PerSecond, true, 0.97,
			nativeTool(native.New(), netload.Spec{Kind: netload.TCPCRR}, metric.Rate), cProgram(crr, false),
		},
		udp(64),
		udp(1400),
		{
			"tcp-stream, CPUs sampled against not", unit.BitPerSecond, true, 0.99,
			nativeTool(native.New(), stream, metric.Throughput),
			nativeTool(toolWithoutSampling(), stream, metric.Throughput),
		},
		{
			"tcp-rr, CPUs sampled against not", unit.Second, false, 1.01,
			nativeTool(native.New(), request, metric.P50), nativeTool(toolWithoutSampling(), request, metric.P50),
		},
	}, nil
}

// compile compiles a reference program, and returns the path of the binary.
func compile(ctx context.Context, dir, name string, flags ...string) (string, error) {
	out := filepath.Join(dir, strings.Join(append([]string{name}, flags...), ""))
	source := filepath.Join("bench", "reference", name+".c")
	args := append([]string{"-O2", "-o", out, source}, flags...)
	text, err := exec.CommandContext(ctx, "cc", args...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("compile %s.c (run from the repository's root): %w: %s", name, err, text)
	}
	return out, nil
}

// measure runs the pairs.
func (b benchmark) measure(ctx context.Context, w *wire, pairs int, verbose bool) ([]pair[measurement], error) {
	once := func(run runner) func() (measurement, error) {
		return func() (measurement, error) { return measureCost(ctx, w, run) }
	}
	return interleave(pairs, once(b.ours), once(b.reference), func(p pair[measurement]) {
		if x, y := p.ours.value, p.theirs.value; verbose {
			fmt.Fprintf(os.Stderr, "%s: %s  %s  %.3f\n", b.name, b.format(x), b.format(y), x/y)
		}
	})
}

// measureCost runs a program once and adds its cost in CPU time of the machine.
func measureCost(ctx context.Context, w *wire, run runner) (measurement, error) {
	before, err := busySeconds()
	if err != nil {
		return measurement{}, err
	}
	m, err := run(ctx, w)
	if err != nil {
		return m, err
	}
	after, err := busySeconds()
	m.cost = (after - before) / m.work
	return m, err
}

// busySeconds returns the CPU seconds of the machine since it booted, in all modes but idle ones.
func busySeconds() (float64, error) {
	stat, err := machine.ReadCPUStat()
	sum := 0.0
	for _, t := range stat {
		sum += t.Busy()
	}
	return sum, err
}

// row returns the benchmark's row of the table.
func (b benchmark) row(pairs []pair[measurement]) string {
	r := ratioOf(pairs, func(m measurement) float64 { return m.value })
	cost := ratioOf(pairs, func(m measurement) float64 { return m.cost })
	sign, verdict := "<=", "reached"
	if b.higherBetter {
		sign = ">="
	}
	if b.higherBetter && r.ofMedians < b.wanted || !b.higherBetter && r.ofMedians > b.wanted {
		verdict = "NOT reached"
	}
	return fmt.Sprintf("%s\t%d\t%s\t%s\t%.3f\t%.3f to %.3f\t%s %.2f %s\t%.3f\t", b.name, len(pairs),
		b.format(r.ours), b.format(r.theirs), r.ofMedians, r.q1, r.q3, sign, b.wanted, verdict, cost.ofMedians)
}

// toolWithoutSampling returns the native tool without sampling of CPUs.
func toolWithoutSampling() *native.Tool {
	tool := native.New()
	tool.Bare = true
	return tool
}

// nativeTool returns a runner of the native tool with histograms and series as in any experiment. Its value is that of
// the metric.
func nativeTool(tool *native.Tool, spec netload.Spec, metricName string) runner {
	return func(ctx context.Context, w *wire) (measurement, error) {
		full, err := spec.Resolved()
		if err != nil {
			return measurement{}, err
		}
		times := family.Times{Warmup: warmup, Window: window}
		m, err := tool.Run(ctx, w.pair(port), network.Workload{Path: result.NodeNode, Spec: full}, times)
		if err != nil {
			return measurement{}, err
		}
		run := result.Run{Values: m.Values}
		compared, found := run.Value(metricName)
		if !found || compared.Number == 0 || len(m.Invalid) > 0 {
			return measurement{}, fmt.Errorf("no %s; invalid: %v", metricName, m.Invalid)
		}
		out := measurement{value: compared.Number}
		if v, ok := run.Value(metric.Throughput); ok {
			out.work = v.Number / 8 * (warmup + window).Seconds()
		} else if v, ok := run.Value(metric.Rate); ok {
			out.work = v.Number * (warmup + window).Seconds()
		}
		return out, nil
	}
}

// iperf3 returns a runner of iperf3. Its value is received bit/s, or with a size in bytes received datagrams/s.
func iperf3(size int, args ...string) runner {
	return func(ctx context.Context, w *wire) (measurement, error) {
		at := strconv.Itoa(port)
		out, err := w.runBoth(ctx, []string{"iperf3", "-s", "-1", "-p", at, "-A", strconv.Itoa(w.server.cpu)},
			append([]string{"iperf3", "-c", w.server.Addr().String(), "-p", at, "-J",
				"-t", fmt.Sprint(iperfTime.Seconds()), "-A", strconv.Itoa(w.client.cpu)}, args...))
		if err != nil {
			return measurement{}, err
		}
		var r struct {
			End struct {
				SumReceived struct{ Bytes, Seconds float64 } `json:"sum_received"`
			}
		}
		if err := json.Unmarshal(out, &r); err != nil {
			return measurement{}, fmt.Errorf("iperf3's output: %w", err)
		}
		sum := r.End.SumReceived
		if sum.Bytes == 0 || sum.Seconds == 0 {
			return measurement{}, fmt.Errorf("iperf3 received nothing: %s", out)
		}
		if size > 0 {
			return measurement{value: sum.Bytes / float64(size) / sum.Seconds, work: sum.Bytes}, nil
		}
		return measurement{value: sum.Bytes * 8 / sum.Seconds, work: sum.Bytes}, nil
	}
}

// cProgram returns a runner of a reference program. Its value is the median latency in seconds, or the rate per second.
func cProgram(path string, latency bool) runner {
	return func(ctx context.Context, w *wire) (measurement, error) {
		addr, at := w.server.Addr().String(), strconv.Itoa(port)
		out, err := w.runBoth(ctx, []string{path, "server", addr, at, strconv.Itoa(w.server.cpu)},
			[]string{path, "client", addr, at, strconv.Itoa(w.client.cpu),
				strconv.FormatInt(warmup.Milliseconds(), 10), strconv.FormatInt(window.Milliseconds(), 10)})
		if err != nil {
			return measurement{}, err
		}
		var rate, p50, p99 float64
		if _, err := fmt.Sscan(string(out), &rate, &p50, &p99); err != nil {
			return measurement{}, fmt.Errorf("output %q: %w", bytes.TrimSpace(out), err)
		}
		m := measurement{value: rate, work: rate * (warmup + window).Seconds()}
		if latency {
			m.value = p50 / 1e9
		}
		return m, nil
	}
}

// runBoth runs a server and a client until the client ends, then ends the server. It returns the client's output.
func (w *wire) runBoth(ctx context.Context, server, client []string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	serving, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- w.server.Run(serving, host.Cmd{Args: server}) }()
	out, err := w.runClient(ctx, client)
	stop()
	if serr := <-ended; err != nil && serr != nil && !errors.Is(serr, context.Canceled) {
		err = errors.Join(err, serr)
	}
	return out, err
}

// runClient runs a client, and repeats that while the server refuses connections.
func (w *wire) runClient(ctx context.Context, client []string) ([]byte, error) {
	for {
		// The server needs a few milliseconds to listen.
		time.Sleep(30 * time.Millisecond)
		var out bytes.Buffer
		err := w.client.Run(ctx, host.Cmd{Args: client, Stdout: &out})
		if err == nil || ctx.Err() != nil || !strings.Contains(err.Error()+out.String(), "refused") {
			return out.Bytes(), err
		}
	}
}
