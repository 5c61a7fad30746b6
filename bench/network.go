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

	"github.com/knotmeter/knotmeter/internal/agentprogram"
	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/family/network"
	"github.com/knotmeter/knotmeter/internal/family/network/native"
	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/load/netload"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// How long a run of ours warms up and measures, and how long a run of iperf3 lasts; its ramp on a veth pair is a few
// milliseconds.
const (
	warmup    = 200 * time.Millisecond
	window    = time.Second
	iperfTime = 2 * time.Second
)

// port is where servers listen.
const port = 5201

// benchNetwork compares the native load generator with programs that do the same work and prints a table: iperf3 for
// streams, blocking C programs for requests. It needs root, cc and iperf3.
//
// All of it runs between two network namespaces of its own that one veth pair joins, with client and server pinned to
// the same CPUs for both programs, in interleaved pairs whose order alternates.
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
	contests, err := contests(ctx, dir)
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "comparison\tpairs\tours\treference\tratio\tquartiles\twanted\tCPU ratio\t")
	for _, c := range contests {
		if !matching.MatchString(c.name) {
			continue
		}
		list, err := c.measure(ctx, wire, *pairs, *verbose)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		fmt.Fprintln(table, c.line(list))
	}
	return table.Flush()
}

// serveAgent makes this program an agent.
func serveAgent(ctx context.Context, _ []string) error {
	return agentprogram.Serve(ctx, os.Stdin, os.Stdout)
}

// A contest is one workload in both programs.
type contest struct {
	name      string
	unit      unit.Unit
	higher    bool    // is better
	wanted    float64 // ratio
	ours      contestant
	reference contestant
}

// A contestant runs a program once.
type contestant func(ctx context.Context, w *wire) (achievement, error)

// An achievement is what one run gave: the number compared, and the work done in all, for its cost.
type achievement struct {
	value float64
	work  float64 // bytes, operations or datagrams over the whole run
	cost  float64 // CPU seconds of the machine per work; filled in by [costed]
}

func (c contest) format(v float64) string { return unit.Format(v, c.unit) }

// contests lists what is compared. C programs are compiled into dir.
func contests(ctx context.Context, dir string) ([]contest, error) {
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
	udp := func(size int) contest {
		return contest{
			fmt.Sprintf("udp-stream %d B against iperf3", size), unit.PerSecond, true, 1.3,
			nativeTool(native.New(), network.Spec{Kind: network.UDPStream, Size: size, Rate: netload.Unpaced}, metric.Rate),
			iperf3(size, "-u", "-b", "0", "-l", strconv.Itoa(size)),
		}
	}
	stream, request := network.Spec{Kind: network.TCPStream}, network.Spec{Kind: network.TCPRR}
	return []contest{
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
			nativeTool(native.New(), network.Spec{Kind: network.TCPCRR}, metric.Rate), cProgram(crr, false),
		},
		udp(64),
		udp(1400),
		{
			"tcp-stream, CPUs sampled against not", unit.BitPerSecond, true, 0.99,
			nativeTool(native.New(), stream, metric.Throughput), nativeTool(unsampled(), stream, metric.Throughput),
		},
		{
			"tcp-rr, CPUs sampled against not", unit.Second, false, 1.01,
			nativeTool(native.New(), request, metric.P50), nativeTool(unsampled(), request, metric.P50),
		},
	}, nil
}

// compile compiles a reference program.
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
func (c contest) measure(ctx context.Context, w *wire, pairs int, verbose bool) ([]pair[achievement], error) {
	one := func(run contestant) func() (achievement, error) {
		return func() (achievement, error) { return costed(ctx, w, run) }
	}
	return interleave(pairs, one(c.ours), one(c.reference), func(p pair[achievement]) {
		if x, y := p.ours.value, p.theirs.value; verbose {
			fmt.Fprintf(os.Stderr, "%s: %s  %s  %.3f\n", c.name, c.format(x), c.format(y), x/y)
		}
	})
}

// costed runs a program and counts what its work took of the machine's CPUs.
func costed(ctx context.Context, w *wire, run contestant) (achievement, error) {
	before, err := busy()
	if err != nil {
		return achievement{}, err
	}
	a, err := run(ctx, w)
	if err != nil {
		return a, err
	}
	after, err := busy()
	a.cost = (after - before) / a.work
	return a, err
}

// busy is the machine's CPU seconds so far, all modes that are not idle.
func busy() (float64, error) {
	file, err := os.Open("/proc/stat")
	if err != nil {
		return 0, err
	}
	defer file.Close()
	stat, err := netload.ParseStat(file)
	sum := 0.0
	for _, t := range stat {
		sum += t.Busy()
	}
	return sum, err
}

// line is one line of the table.
func (c contest) line(pairs []pair[achievement]) string {
	r := ratioOf(pairs, func(a achievement) float64 { return a.value })
	cost := ratioOf(pairs, func(a achievement) float64 { return a.cost })
	sign, verdict := "<=", "reached"
	if c.higher {
		sign = ">="
	}
	if c.higher && r.of < c.wanted || !c.higher && r.of > c.wanted {
		verdict = "NOT reached"
	}
	return fmt.Sprintf("%s\t%d\t%s\t%s\t%.3f\t%.3f to %.3f\t%s %.2f %s\t%.3f\t", c.name, len(pairs),
		c.format(r.ours), c.format(r.theirs), r.of, r.q1, r.q3, sign, c.wanted, verdict, cost.of)
}

// unsampled is the native tool without samples of the CPUs.
func unsampled() *native.Tool {
	tool := native.New()
	tool.Bare = true
	return tool
}

// nativeTool runs the native tool, as it always runs: with histogram and series.
func nativeTool(tool *native.Tool, spec network.Spec, of string) contestant {
	return func(ctx context.Context, w *wire) (achievement, error) {
		full, err := spec.Resolved()
		if err != nil {
			return achievement{}, err
		}
		times := family.Times{Warmup: warmup, Window: window}
		m, err := tool.Run(ctx, w.pair(port), network.Workload{Path: targets.NodeNode, Spec: full}, times)
		if err != nil {
			return achievement{}, err
		}
		run := result.Run{Values: m.Values}
		compared, found := run.Value(of)
		if !found || compared.Number == 0 || len(m.Invalid) > 0 {
			return achievement{}, fmt.Errorf("no %s; invalid: %v", of, m.Invalid)
		}
		a := achievement{value: compared.Number}
		if v, bytes := run.Value(metric.Throughput); bytes {
			a.work = v.Number / 8 * (warmup + window).Seconds()
		} else if v, operations := run.Value(metric.Rate); operations {
			a.work = v.Number * (warmup + window).Seconds()
		}
		return a, nil
	}
}

// iperf3 runs iperf3 once; with a size the value is datagrams received per second.
func iperf3(size int, args ...string) contestant {
	return func(ctx context.Context, w *wire) (achievement, error) {
		at := strconv.Itoa(port)
		out, err := w.both(ctx, []string{"iperf3", "-s", "-1", "-p", at, "-A", strconv.Itoa(w.server.cpu)},
			append([]string{"iperf3", "-c", w.server.Addr().String(), "-p", at, "-J",
				"-t", fmt.Sprint(iperfTime.Seconds()), "-A", strconv.Itoa(w.client.cpu)}, args...))
		if err != nil {
			return achievement{}, err
		}
		var r struct {
			End struct {
				SumReceived struct{ Bytes, Seconds float64 } `json:"sum_received"`
			}
		}
		if err := json.Unmarshal(out, &r); err != nil {
			return achievement{}, fmt.Errorf("iperf3's output: %w", err)
		}
		sum := r.End.SumReceived
		if sum.Bytes == 0 || sum.Seconds == 0 {
			return achievement{}, fmt.Errorf("iperf3 received nothing: %s", out)
		}
		if size > 0 {
			return achievement{value: sum.Bytes / float64(size) / sum.Seconds, work: sum.Bytes}, nil
		}
		return achievement{value: sum.Bytes * 8 / sum.Seconds, work: sum.Bytes}, nil
	}
}

// cProgram runs a reference program once; the value is its median latency or its rate.
func cProgram(path string, latency bool) contestant {
	return func(ctx context.Context, w *wire) (achievement, error) {
		addr, at := w.server.Addr().String(), strconv.Itoa(port)
		out, err := w.both(ctx, []string{path, "server", addr, at, strconv.Itoa(w.server.cpu)},
			[]string{path, "client", addr, at, strconv.Itoa(w.client.cpu),
				strconv.FormatInt(warmup.Milliseconds(), 10), strconv.FormatInt(window.Milliseconds(), 10)})
		if err != nil {
			return achievement{}, err
		}
		var rate, p50, p99 float64
		if _, err := fmt.Sscan(string(out), &rate, &p50, &p99); err != nil {
			return achievement{}, fmt.Errorf("output %q: %w", bytes.TrimSpace(out), err)
		}
		a := achievement{value: rate, work: rate * (warmup + window).Seconds()}
		if latency {
			a.value = p50 / 1e9
		}
		return a, nil
	}
}

// both runs a server and a client to the client's end, then ends the server. It returns what the client printed.
func (w *wire) both(ctx context.Context, server, client []string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	serving, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- w.server.Run(serving, host.Cmd{Args: server}) }()
	out, err := w.retry(ctx, client)
	stop()
	if serr := <-ended; err != nil && serr != nil && !errors.Is(serr, context.Canceled) {
		err = errors.Join(err, serr)
	}
	return out, err
}

// retry runs a client until its server listens.
func (w *wire) retry(ctx context.Context, client []string) ([]byte, error) {
	for {
		// The server needs a few milliseconds, and a client that comes too early is a client's failure.
		time.Sleep(30 * time.Millisecond)
		var out bytes.Buffer
		err := w.client.Run(ctx, host.Cmd{Args: client, Stdout: &out})
		if err == nil || ctx.Err() != nil || !strings.Contains(err.Error()+out.String(), "refused") {
			return out.Bytes(), err
		}
	}
}
