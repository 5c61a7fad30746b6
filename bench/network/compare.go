//go:build linux

package network

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/family/network"
	"github.com/knotmeter/knotmeter/internal/family/network/native"
	"github.com/knotmeter/knotmeter/internal/host"
	netload "github.com/knotmeter/knotmeter/internal/load/net"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/stats"
	"github.com/knotmeter/knotmeter/internal/target"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// How long a run of ours warms up and measures, and how long a run of iperf3 lasts; its ramp on a veth
// pair is a few milliseconds.
const (
	warmup = 200 * time.Millisecond
	window = time.Second
)

// port is where servers listen.
const port = 5201

// A comparison is one workload in both programs.
type comparison struct {
	name      string
	unit      unit.Unit
	higher    bool    // is better
	wanted    float64 // ratio
	ours      func(ctx context.Context, w *wire) (figure, error)
	reference func(ctx context.Context, w *wire) (figure, error)
}

// A figure is what one run gave: the number compared, and the work done in all, for its cost.
type figure struct {
	value float64
	work  float64 // bytes, operations or datagrams over the whole run
	cost  float64 // CPU seconds of the machine per work; filled in by measure
}

// A pair is two runs back to back.
type pair struct{ ours, reference figure }

func (c comparison) format(v float64) string { return unit.Format(v, c.unit) }

// comparisons lists what is compared. C programs are compiled into dir.
func comparisons(ctx context.Context, dir string) ([]comparison, error) {
	rr, err := compile(ctx, dir, "tcp_rr")
	if err != nil {
		return nil, err
	}
	crr, err := compile(ctx, dir, "tcp_crr")
	if err != nil {
		return nil, err
	}
	udp := func(size int) comparison {
		return comparison{
			name: fmt.Sprintf("udp-stream %d B against iperf3", size), unit: unit.PerSecond, higher: true, wanted: 1.3,
			ours:      ours(network.Spec{Kind: network.UDPStream, Size: size, Rate: netload.Unpaced}, metric.Rate),
			reference: iperf3(size, "-u", "-b", "0", "-l", strconv.Itoa(size)),
		}
	}
	return []comparison{
		{
			"tcp-stream 128 KiB against iperf3", unit.BitPerSecond, true, 1.1,
			ours(network.Spec{Kind: network.TCPStream}, metric.Throughput), iperf3(0, "-l", "128K"),
		},
		{
			"tcp-rr 1 B, p50, against C", unit.Second, false, 1.05,
			ours(network.Spec{Kind: network.TCPRR}, metric.P50), program(rr, true),
		},
		{
			"tcp-crr against C", unit.PerSecond, true, 0.97,
			ours(network.Spec{Kind: network.TCPCRR}, metric.Rate), program(crr, false),
		},
		udp(64),
		udp(1400),
	}, nil
}

// compile compiles a reference program.
func compile(ctx context.Context, dir, name string) (string, error) {
	out := filepath.Join(dir, name)
	source := filepath.Join("bench", "network", "reference", name+".c")
	text, err := exec.CommandContext(ctx, "cc", "-O2", "-o", out, source).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("compile %s.c (run from the repository's root): %w: %s", name, err, text)
	}
	return out, nil
}

// measure runs the pairs, alternating which program is first.
func (c comparison) measure(ctx context.Context, w *wire, o options) ([]pair, error) {
	var pairs []pair
	for i := range o.pairs {
		var p pair
		sides := []struct {
			run func(context.Context, *wire) (figure, error)
			to  *figure
		}{{c.ours, &p.ours}, {c.reference, &p.reference}}
		if i%2 == 1 {
			slices.Reverse(sides)
		}
		for _, s := range sides {
			before, err := busy()
			if err != nil {
				return nil, err
			}
			if *s.to, err = s.run(ctx, w); err != nil {
				return nil, err
			}
			after, err := busy()
			if err != nil {
				return nil, err
			}
			s.to.cost = (after - before) / s.to.work
		}
		if o.verbose {
			x, y := p.ours.value, p.reference.value
			fmt.Fprintf(os.Stderr, "%s: %s  %s  %.3f\n", c.name, c.format(x), c.format(y), x/y)
		}
		pairs = append(pairs, p)
	}
	return pairs, nil
}

// busy is the machine's CPU seconds so far, all modes that are not idle.
func busy() (float64, error) {
	file, err := os.Open("/proc/stat")
	if err != nil {
		return 0, err
	}
	defer file.Close()
	stat, err := netload.ParseStat(file)
	if err != nil {
		return 0, err
	}
	sum := 0.0
	for _, t := range stat {
		sum += t.Busy()
	}
	return sum, nil
}

// ours runs the native tool, as it always runs: with histogram and series.
func ours(spec network.Spec, of string) func(context.Context, *wire) (figure, error) {
	tool := native.New()
	return func(ctx context.Context, w *wire) (figure, error) {
		full, err := spec.Resolved()
		if err != nil {
			return figure{}, err
		}
		times := family.Times{Warmup: warmup, Window: window}
		m, err := tool.Run(ctx, w.pair(port), network.Workload{Path: target.NodeNode, Spec: full}, times)
		if err != nil {
			return figure{}, err
		}
		var f figure
		for _, v := range m.Values {
			if v.Metric == of {
				f.value = v.Number
			}
			if v.Metric == metric.Throughput {
				f.work = v.Number / 8 * (warmup + window).Seconds()
			}
			if v.Metric == metric.Rate && f.work == 0 {
				f.work = v.Number * (warmup + window).Seconds()
			}
		}
		if f.value == 0 || len(m.Invalid) > 0 {
			return f, fmt.Errorf("no %s; invalid: %v", of, m.Invalid)
		}
		return f, nil
	}
}

// iperf3 runs iperf3 once; with a size the figure is datagrams received per second.
func iperf3(size int, args ...string) func(context.Context, *wire) (figure, error) {
	return func(ctx context.Context, w *wire) (figure, error) {
		ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
		defer cancel()
		var out bytes.Buffer
		server := host.Cmd{Args: []string{"iperf3", "-s", "-1", "-p", strconv.Itoa(port), "-A", strconv.Itoa(w.server.cpu)}}
		client := host.Cmd{Stdout: &out, Args: append([]string{
			"iperf3", "-c", w.server.Addr().String(), "-p", strconv.Itoa(port), "-J", "-t", "2",
			"-A", strconv.Itoa(w.client.cpu),
		}, args...)}
		if err := both(ctx, w, server, client); err != nil {
			return figure{}, err
		}
		var r struct {
			End struct {
				SumReceived struct {
					Bytes   float64 `json:"bytes"`
					Seconds float64 `json:"seconds"`
				} `json:"sum_received"`
			} `json:"end"`
		}
		if err := json.Unmarshal(out.Bytes(), &r); err != nil {
			return figure{}, fmt.Errorf("iperf3's output: %w", err)
		}
		sum := r.End.SumReceived
		if sum.Bytes == 0 || sum.Seconds == 0 {
			return figure{}, fmt.Errorf("iperf3 received nothing: %s", out.String())
		}
		if size > 0 {
			return figure{value: sum.Bytes / float64(size) / sum.Seconds, work: sum.Bytes}, nil
		}
		return figure{value: sum.Bytes * 8 / sum.Seconds, work: sum.Bytes}, nil
	}
}

// program runs a reference program once; the figure is its median latency or its rate.
func program(path string, latency bool) func(context.Context, *wire) (figure, error) {
	return func(ctx context.Context, w *wire) (figure, error) {
		ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
		defer cancel()
		var out bytes.Buffer
		at := []string{w.server.Addr().String(), strconv.Itoa(port)}
		server := host.Cmd{Args: []string{path, "server", at[0], at[1], strconv.Itoa(w.server.cpu)}}
		client := host.Cmd{Stdout: &out, Args: []string{path, "client", at[0], at[1], strconv.Itoa(w.client.cpu),
			strconv.FormatInt(warmup.Milliseconds(), 10), strconv.FormatInt(window.Milliseconds(), 10)}}
		if err := both(ctx, w, server, client); err != nil {
			return figure{}, err
		}
		var rate, p50, p99 float64
		if _, err := fmt.Sscan(out.String(), &rate, &p50, &p99); err != nil {
			return figure{}, fmt.Errorf("output %q: %w", strings.TrimSpace(out.String()), err)
		}
		f := figure{value: rate, work: rate * (warmup + window).Seconds()}
		if latency {
			f.value = p50 / 1e9
		}
		return f, nil
	}
}

// both runs a server and a client to the client's end, then ends the server.
func both(ctx context.Context, w *wire, server, client host.Cmd) error {
	serving, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- w.server.Run(serving, server) }()
	err := retry(ctx, w, client)
	stop()
	if serr := <-ended; err != nil && serr != nil && !errors.Is(serr, context.Canceled) {
		err = errors.Join(err, serr)
	}
	return err
}

// retry runs a client until its server listens.
func retry(ctx context.Context, w *wire, client host.Cmd) error {
	for {
		// The server needs a few milliseconds, and a client that comes too early is a client's failure.
		time.Sleep(30 * time.Millisecond)
		err := w.client.Run(ctx, client)
		out, _ := client.Stdout.(*bytes.Buffer)
		if err == nil || ctx.Err() != nil || !strings.Contains(err.Error()+out.String(), "refused") {
			return err
		}
		out.Reset()
	}
}

// A summary is what pairs say together.
type summary struct {
	ours, reference float64 // medians
	ratio           float64 // of the medians
	low, high       float64 // quartiles of the pairs' ratios
	cost            float64 // ratio of the medians of CPU time per unit of work
}

func summarise(pairs []pair) summary {
	column := func(get func(pair) float64) []float64 {
		var v []float64
		for _, p := range pairs {
			v = append(v, get(p))
		}
		return v
	}
	ratios := stats.Summarise(column(func(p pair) float64 { return p.ours.value / p.reference.value }))
	s := summary{
		ours:      stats.Median(column(func(p pair) float64 { return p.ours.value })),
		reference: stats.Median(column(func(p pair) float64 { return p.reference.value })),
		low:       ratios.Q1, high: ratios.Q3,
		cost: stats.Median(column(func(p pair) float64 { return p.ours.cost })) /
			stats.Median(column(func(p pair) float64 { return p.reference.cost })),
	}
	s.ratio = s.ours / s.reference
	return s
}
