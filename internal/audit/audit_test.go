package audit

import (
	"flag"
	"fmt"
	"math"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/family/network"
	"github.com/knotmeter/knotmeter/internal/family/storage"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

var update = flag.Bool("update", false, "rewrite the lists in the documentation")

var families = family.List{network.Family(), storage.Family()}

// A change adds runs, facts or other evidence to a test.
type change func(*Evidence)

// evidence returns evidence with only what the changes add.
func evidence(changes ...change) Evidence {
	e := Evidence{Results: result.Results{Facts: map[string][]result.Fact{}}}
	e.Experiment.Baseline = "a"
	for _, c := range changes {
		c(&e)
	}
	return e
}

// run adds a run; values are "metric=9.4 Gbit/s", facts "name: value", both separated by semicolons.
func run(caseName, target, values, facts string) change {
	return func(e *Evidence) {
		block := 1
		for _, r := range e.Runs {
			if r.Case == caseName && r.Target == target {
				block++
			}
		}
		r := result.Run{ID: fmt.Sprintf("%04d", len(e.Runs)+1), Case: caseName,
			Target: target, Block: block, Attempt: 1, Slot: 1, Window: 1, Tool: "native"}
		for part := range strings.SplitSeq(values, ";") {
			name, text, ok := strings.Cut(strings.TrimSpace(part), "=")
			if !ok {
				continue
			}
			v, u, err := unit.Parse(text)
			if err != nil {
				panic(err)
			}
			better := metric.Neutral
			switch {
			case u == unit.Second && !strings.Contains(name, "."), name == "loss", metric.Quantile(name) > 0:
				better = metric.Lower
			case name == "throughput", name == "rate", name == "iops":
				better = metric.Higher
			}
			r.Values = append(r.Values, result.Value{Metric: name, Unit: u, Better: better, Number: v})
		}
		for part := range strings.SplitSeq(facts, ";") {
			if name, text, ok := strings.Cut(strings.TrimSpace(part), ": "); ok {
				r.Facts = append(r.Facts, result.Fact{Name: name, Value: text})
			}
		}
		e.Runs = append(e.Runs, r)
		if !slices.ContainsFunc(e.Experiment.Targets, func(t result.Target) bool { return t.Name == target }) {
			e.Experiment.Targets = append(e.Experiment.Targets,
				result.Target{Name: target, Spec: result.SpecOf(target), Underlay: "one"})
		}
		if _, known := e.Experiment.Case(caseName); !known {
			e.Experiment.Cases = append(e.Experiment.Cases, families.ImportedCase(caseName))
		}
	}
}

// withHistogram gives the last run a histogram of n operations.
func withHistogram(n int64) change {
	return func(e *Evidence) {
		r := &e.Runs[len(e.Runs)-1]
		r.Histograms = []result.Histogram{{Name: "latency", Count: n}}
	}
}

// cell adds a cell of a table; n is its line and its row.
func cell(n int, caseName, target, values string) change {
	return func(e *Evidence) {
		run(caseName, target, values, fmt.Sprintf("place: x.md:%d; table: the table; row: row %d", n, n))(e)
	}
}

// output adds a line of a tool's output in the same text.
func output(line int, caseName, target, values string) change {
	return run(caseName, target, values, fmt.Sprintf("place: x.md:%d; table: %s", line, TableOutput))
}

// below puts the run that a change adds into a section.
func below(section string, add change) change {
	return func(e *Evidence) {
		add(e)
		r := &e.Runs[len(e.Runs)-1]
		r.Facts = append(r.Facts, result.Fact{Name: FactSection, Value: section})
	}
}

// rounded adds a mean in a section, with two decimals, or a change that is claimed of it, with three.
func rounded(section, target string, number float64, against string) change {
	if against == "" {
		return below(section, run("vault", target, fmt.Sprintf("mean=%gs", number), "place: x:1; table: t; digit.mean: 0.01"))
	}
	return below(section, run("vault", target, fmt.Sprintf("mean.change=%gratio", number),
		"place: x:9; table: t; digit.mean.change: 0.001; against: "+against))
}

// withFacts adds facts of a target.
func withFacts(name, facts string) change {
	return func(e *Evidence) {
		for part := range strings.SplitSeq(facts, ";") {
			key, text, _ := strings.Cut(strings.TrimSpace(part), ": ")
			e.Facts[name] = append(e.Facts[name], result.Fact{Name: key, Value: text})
		}
		if !slices.ContainsFunc(e.Experiment.Targets, func(t result.Target) bool { return t.Name == name }) {
			e.Experiment.Targets = append(e.Experiment.Targets,
				result.Target{Name: name, Spec: result.SpecOf(name), Underlay: "one"})
		}
	}
}

// blocks adds a run of a case on a target for each value.
func blocks(caseName, target, metric, unitName string, values ...float64) change {
	return func(e *Evidence) {
		for _, v := range values {
			run(caseName, target, fmt.Sprintf("%s=%g%s", metric, v, unitName), "")(e)
		}
	}
}

const (
	bound = "node-node/tcp-stream"
	pods  = "pod-pod/other/tcp-stream"
	same  = "pod-pod/same/tcp-stream"
	rr    = "pod-pod/other/tcp-rr"
)

// tests returns for each rule evidence with one finding, with a part of its text, and evidence that the rule checks
// without finding.
func tests() []struct {
	rule string
	saw  string
	bad  Evidence
	good Evidence
} {
	return []struct {
		rule string
		saw  string
		bad  Evidence
		good Evidence
	}{
		{"closed-loop", "0.44 requests outstanding instead of 1",
			evidence(run("udp-rr", "a", "rate=3540/s;mean=125us", "")),
			evidence(run("udp-rr", "a", "rate=8006/s;mean=125us", ""))},
		{"closed-loop", "4.40 requests outstanding instead of 4",
			evidence(run(rr+":flows=4", "a", "rate=40000/s;mean=110us", "loop: closed")),
			evidence(run(rr+":flows=4", "a", "rate=40000/s;mean=100us", "loop: closed"))},
		{"closed-loop", "0.50 requests outstanding instead of 1", // of 100, 1 lost: 99 in 100 µs, 1 in 200 ms
			evidence(run("udp-rr", "a", "rate=99/s;mean=5ms;loss=1%;max=1ms", ""), withHistogram(100)),
			evidence(run("udp-rr", "a", "rate=99/s;mean=10.1ms;loss=1%;max=1ms", ""), withHistogram(100))},
		{"closed-loop", "instead of 1300",
			evidence(run("vault/sign", "a", "rate=500/s;mean=1.6s", "concurrency: 1300")),
			evidence(run("vault/sign", "a", "rate=780/s;mean=1.63s", "workers: 1300"))},
		{"receiver-above-sender", "3.00 Gbit/s received, 2.00 Gbit/s sent",
			evidence(run(pods, "a", "throughput=3 Gbit/s;throughput-sent=2 Gbit/s", "")),
			evidence(run(pods, "a", "throughput=2.01 Gbit/s;throughput-sent=2 Gbit/s", ""))},
		{"above-link", "1.40 Gbit/s over a link of 1.25 Gbit/s",
			evidence(run(pods, "a", "throughput=1.4 Gbit/s", ""), withFacts("a", "link-rate: 1.25 Gbit/s")),
			evidence(run(pods, "a", "throughput=1.2 Gbit/s", ""),
				withFacts("a", "link-rate: 1.25 Gbit/s"), run(same, "a", "throughput=30 Gbit/s", ""))},
		{"above-link", "both directions of a link of 10.0 Gbit/s",
			evidence(run(pods+":direction=both", "a", "throughput=23 Gbit/s", "link-rate: 10 Gbit/s")),
			evidence(run(pods+":direction=both", "a", "throughput=19 Gbit/s", "link-rate: 10 Gbit/s"))},
		{"above-link", "2.10 Gbit/s over both directions of a link of 1.00 Gbit/s",
			evidence(run("pod-pod/other/tcp-rr-loaded", "a", "load-throughput=2.1 Gbit/s", "link-rate: 1 Gbit/s")),
			evidence(run("pod-pod/other/tcp-rr-loaded", "a", "load-throughput=1.9 Gbit/s", "link-rate: 1 Gbit/s"))},
		{"above-link", "70.0 Mbit/s over",
			evidence(run(pods, "a", "throughput=70 Mbit/s", ""), withFacts("a", "underlay-rate: 60.0 Mbit/s")),
			evidence(run(pods, "a", "throughput=59 Mbit/s", ""), withFacts("a", "underlay-rate: 60.0 Mbit/s"))},
		{"above-link", "7.00 Mbit/s over a link of 5.00 Mbit/s", // of 1 s, in which 128 KiB more are 1.05 Mbit/s
			evidence(run(pods, "a", "throughput=7 Mbit/s", ""), withFacts("a", "link-rate: 5 Mbit/s")),
			evidence(run(pods, "a", "throughput=6 Mbit/s", ""), withFacts("a", "link-rate: 5 Mbit/s"))},
		{"zero", "throughput is 0",
			evidence(run(pods, "a", "throughput=0 Gbit/s", "")),
			evidence(run(pods, "a", "throughput=1 bit/s;retransmits=0;loss=0%", ""))},
		{"zero", "p50 is 0",
			evidence(run(rr, "a", "p50=0s", "")),
			evidence(run(rr, "a", "p50=1us;jitter=0s", ""))},
		{"order", "p90 is 3.00 ms, above p99 with 2.00 ms",
			evidence(run(rr, "a", "p50=1ms;p99=2ms;p90=3ms", "")),
			evidence(run(rr, "a", "p50=1ms;p99=3ms;p90=2ms;max=9ms;mean=2ms;min=1ms", ""))},
		{"order", "p99 is 3.00 ms, above max with 2.00 ms",
			evidence(run(rr, "a", "p99=3ms;max=2ms", "")),
			evidence(run(rr, "a", "p99=497ms;max=496ms;min=131ms;p50=130ms", ""))},
		{"order", "The mean is 10.0 ms",
			evidence(run(rr, "a", "min=1ms;max=9ms;mean=10ms", "")),
			evidence(run(rr, "a", "max=9ms;mean=9.01ms", ""))},
		{"order", "loss is 151 % of the whole",
			evidence(run("udp-stream", "a", "loss=151%", "")),
			evidence(run("udp-stream", "a", "loss=76%", ""))},
		{"failures-as-samples", "95.0 % of the requests ended with another status than 2xx, most of them with 3xx",
			evidence(run("vault/sign", "a", "mean=0.17s;status-2xx=0.05ratio;status-3xx=0.9ratio;status-5xx=0.05ratio", "")),
			evidence(run("vault/sign", "a", "mean=1.8s;status-2xx=1ratio", ""))},
		{"loss-and-rates", "a loss of 40.0 %",
			evidence(run("udp-stream", "a", "rate=600/s;offered=1000/s;loss=0%", "")),
			evidence(run("udp-stream", "a", "rate=600/s;offered=1000/s;loss=39.5%", ""))},
		{"outside-mesh", "Datagrams or pings between pods whose TCP connections alone a mesh takes over",
			evidence(run("pod-pod/other/udp-stream", "a", "loss=0%", "mesh.intercepted: yes")),
			evidence(run(pods, "a", "throughput=2 Gbit/s", "mesh.intercepted: yes"),
				run("node-node/udp-stream", "a", "loss=0%", "mesh.intercepted: not applicable"))},
		{"few-samples", "p99 of 71 samples; it takes 368",
			evidence(run(rr, "a", "p99=1ms", "samples: 71")),
			evidence(run(rr, "a", "p99=1ms", "samples: 368"))},
		{"mean-of-percentiles", "the mean of the p99 of 100 runs",
			evidence(run("vault", "a", "p99=5.48s", "aggregate: mean; runs: 100")),
			evidence(run("vault", "a", "p99=5.48s", "aggregate: median; runs: 100"))},
		{"saturated", "with 1300 requests outstanding: that is 796 op/s in all",
			evidence(run("vault", "a", "mean=1.6322s", "concurrency: 1300")),
			evidence(run(rr, "a", "mean=100us", ""))},
		{"saturated", "with 1300 requests outstanding: that is 700 op/s in all",
			evidence(run("vault", "a", "mean=1.6322s;rate=700/s", "concurrency: 1300")),
			evidence(run("vault", "a", "mean=1.6322s;rate=700/s", "concurrency: 9"))},
		{"saturated", "with 1300 requests outstanding: that is 10.0 op/s in all", // others fail
			evidence(run("vault", "a", "mean=1.6322s;rate=10/s;offered=790/s", "workers: 1300")),
			evidence(run("vault/sign", "a", "mean=1.7s;rate=190/s;offered=200/s", "workers: 1300"))},
		{"lossy-rate", "2.00 Gbit/s with a loss of 11.0 %",
			evidence(run("udp-stream", "a", "throughput=2 Gbit/s;loss=11%", "")),
			evidence(run("udp-stream", "a", "throughput=2 Gbit/s;loss=0.6%", ""))},
		{"above-bound", "16.3 Gbit/s, where node-node carries 9.16 Gbit/s",
			evidence(cell(1, bound, "a", "throughput=9.16 Gbit/s"),
				cell(2, "pod-svc/other/tcp-stream", "a", "throughput=16.3 Gbit/s")),
			evidence(cell(1, bound, "a", "throughput=9.16 Gbit/s"), cell(2, pods, "a", "throughput=9.21 Gbit/s"))},
		{"above-bound", "latency 81.7 µs, where node-node needs 113 µs",
			evidence(cell(1, "node-node/tcp-rr", "a", "latency=113.27us"), cell(2, rr, "a", "latency=81.74us")),
			evidence(cell(1, "node-node/tcp-rr", "a", "latency=113.27us"), cell(2, rr, "a", "latency=109.77us"))},
		{"above-bound", "12.0 Gbit/s, where node-node carries 10.0 Gbit/s on a",
			evidence(blocks(bound, "a", "throughput", "Gbit/s", 10, 10.1, 9.9, 10, 10.1, 9.9),
				blocks(pods, "b", "throughput", "Gbit/s", 12, 12.1, 11.9, 12, 12.1, 11.9)),
			evidence(blocks(bound, "a", "throughput", "Gbit/s", 10, 10.1, 9.9, 10, 10.1, 9.9),
				blocks(pods, "b", "throughput", "Gbit/s", 12, 9, 11.9, 12, 12.1, 11.9))},
		{"above-bound", "12.0 Gbit/s, where node-node carries 9.16 Gbit/s", // which fills a link of 10 Gbit/s
			evidence(cell(1, bound, "sriov", "throughput=9.16 Gbit/s"), cell(2, pods, "sriov", "throughput=12 Gbit/s")),
			evidence(cell(1, bound, "sriov", "throughput=8 Gbit/s"), cell(2, pods, "sriov", "throughput=9.4 Gbit/s"),
				cell(3, "node-node/tcp-rr", "macvlan", "latency=113us"), cell(4, rr, "macvlan", "latency=80us"))},
		{"above-bound", "9.00 Gbit/s, where node-node carries 5.00 Gbit/s", // of the same section
			evidence(below("A", cell(1, bound, "a", "throughput=5 Gbit/s")), below("A", cell(2, pods, "a",
				"throughput=9 Gbit/s")),
				below("B", cell(3, bound, "a", "throughput=20 Gbit/s")), below("B", cell(4, pods, "a", "throughput=19 Gbit/s"))),
			evidence(below("hosts", cell(1, bound, "a", "throughput=20 Gbit/s")),
				below("pods", cell(2, pods, "a", "throughput=9 Gbit/s")))},
		{"same-node-slower", "latency 983 µs within a node, latency 941 µs between nodes",
			evidence(cell(1, "pod-pod/same/tcp-crr", "a", "latency=982.92us"),
				cell(2, "pod-pod/other/tcp-crr", "a", "latency=940.65us")),
			evidence(cell(1, "pod-pod/same/tcp-crr", "a", "latency=265.07us"),
				cell(2, "pod-pod/other/tcp-crr", "a", "latency=857.6us"))},
		{"same-node-slower", "8.00 Gbit/s within a node, 10.0 Gbit/s between nodes",
			evidence(blocks(same, "a", "throughput", "Gbit/s", 8, 8.1, 7.9, 8, 8.1, 7.9),
				blocks(pods, "a", "throughput", "Gbit/s", 10, 10.1, 9.9, 10, 10.1, 9.9)),
			evidence(blocks(same, "a", "throughput", "Gbit/s", 12, 12, 12, 12, 12, 12),
				blocks(pods, "a", "throughput", "Gbit/s", 10, 10.1, 9.9, 10, 10.1, 9.9))},
		{"sources-disagree", "a factor of 1.53",
			evidence(cell(1, "tcp-stream", "a", "throughput=6.4 Gbit/s"), cell(2, "tcp-stream", "a", "throughput=9809 Mbit/s")),
			evidence(cell(1, "tcp-stream", "a", "throughput=12.0 Gbit/s"),
				cell(2, "tcp-stream", "a", "throughput=11927 Mbit/s"))},
		{"sources-disagree", "a factor of 1.53", // below different headings are different tests
			evidence(below("A", cell(1, "tcp-stream", "a", "throughput=6.4 Gbit/s")),
				below("A", cell(2, "tcp-stream", "a", "throughput=9809 Mbit/s")),
				below("B", cell(3, "tcp-stream", "a", "throughput=2 Gbit/s"))),
			evidence(cell(1, "tcp-stream", "a", "throughput=9.4 Gbit/s"), cell(2, "tcp-stream", "a", "throughput=9.5 Gbit/s"),
				below("B", cell(3, "tcp-stream", "a", "throughput=2 Gbit/s")))},
		{"sources-disagree", `"nodes" says 9.20 Gbit/s, "nodes" in table 2 3.10 Gbit/s`,
			evidence(run(bound, "a", "throughput=9.2 Gbit/s", "place: x:1; table: table 1; row: nodes"),
				run(bound, "a", "throughput=3.1 Gbit/s", "place: x:9; table: table 2; row: nodes")),
			evidence(run(bound, "a", "throughput=9.2 Gbit/s", "place: x:1; table: table 1; row: nodes"),
				run(bound, "a", "throughput=9.1 Gbit/s", "place: x:9; table: table 2; row: nodes"))},
		{"table-and-output", `"row 1" says throughput 2.00 Gbit/s, the output in line 9 1.78 Gbit/s`,
			evidence(cell(1, "udp-stream", "a", "throughput=2.0 Gbit/s"),
				output(9, "udp-stream-unpaced", "a", "throughput=1.78 Gbit/s")),
			evidence(cell(1, "udp-stream", "a", "throughput=2.0 Gbit/s"),
				output(9, "udp-stream-unpaced", "a", "throughput=1.99 Gbit/s"))},
		{"table-and-output", `"row 1" says throughput 8.00 Gbit/s`, // two runs, and their mean is not 8
			evidence(cell(1, "tcp-stream", "a", "throughput=8 Gbit/s"), cell(2, "udp-rr", "a", "rate=8/s"),
				output(8, "tcp-stream:flows=4", "a", "throughput=7.1 Gbit/s"),
				output(9, "tcp-stream:flows=4", "a", "throughput=7.5 Gbit/s")),
			evidence(cell(1, "tcp-stream", "a", "throughput=7.3 Gbit/s"), cell(2, "udp-rr", "a", "rate=8/s"),
				cell(3, "tcp-stream:flows=8", "a", "throughput=20 Gbit/s"), // of which there is no output
				cell(4, "tcp-stream", "b", "throughput=20 Gbit/s"),
				output(8, "tcp-stream:flows=4", "a", "throughput=7.1 Gbit/s"),
				output(9, "tcp-stream:flows=4", "a", "throughput=7.5 Gbit/s"))},
		{"sources-rank-otherwise", `From a to b it is +10.9 % by "row 1", -14.5 % by "row 2"`,
			evidence(cell(1, "tcp-stream", "a", "throughput=6.4 Gbit/s"), cell(1, "tcp-stream", "b", "throughput=7.1 Gbit/s"),
				cell(2, "tcp-stream", "a", "throughput=9809 Mbit/s"), cell(2, "tcp-stream", "b", "throughput=8391 Mbit/s")),
			evidence(cell(1, "tcp-stream", "a", "throughput=7.1 Gbit/s"), cell(1, "tcp-stream", "b", "throughput=8.8 Gbit/s"),
				cell(2, "tcp-stream", "a", "throughput=8391 Mbit/s"), cell(2, "tcp-stream", "b", "throughput=11497 Mbit/s"))},
		{"throughputs-oppose", `From a to b it is +32.0 % by "row 1", -32.3 % by "row 2"`, // Geneve without and with ztunnel
			evidence(cell(1, "pod-svc/other/tcp-stream:flows=4", "a", "throughput=7.22 Gbit/s"),
				cell(1, "pod-svc/other/tcp-stream:flows=4", "b", "throughput=9.53 Gbit/s"),
				cell(2, pods, "a", "throughput=6808.6 Mbit/s"), cell(2, pods, "b", "throughput=4608.3 Mbit/s")),
			evidence(cell(1, "pod-svc/other/tcp-stream:flows=4", "a", "throughput=7.22 Gbit/s"),
				cell(1, "pod-svc/other/tcp-stream:flows=4", "b", "throughput=11.9 Gbit/s"),
				cell(2, pods, "a", "throughput=6808.6 Mbit/s"), cell(2, pods, "b", "throughput=6663.8 Mbit/s"), // -2 %
				cell(3, same, "a", "throughput=20 Gbit/s"), cell(3, same, "b", "throughput=10 Gbit/s"),
				cell(4, "pod-svc/other/udp-stream-unpaced", "a", "throughput=2 Gbit/s;loss=3%"),
				cell(4, "pod-svc/other/udp-stream-unpaced", "b", "throughput=1 Gbit/s;loss=4%"))},
		{"throughputs-oppose", `From a to b it is +50.0 % by "row 1"`, // and not between two sizes
			evidence(cell(1, pods+":size=64", "a", "throughput=1 Gbit/s"), cell(1, pods+":size=64", "b",
				"throughput=1.5 Gbit/s"),
				cell(2, "pod-svc/other/tcp-stream", "a", "throughput=9 Gbit/s"),
				cell(2, "pod-svc/other/tcp-stream", "b", "throughput=6 Gbit/s")),
			evidence(cell(1, pods+":size=64", "a", "throughput=1 Gbit/s"), cell(1, pods+":size=64", "b",
				"throughput=1.5 Gbit/s"),
				cell(2, pods+":size=1024", "a", "throughput=9 Gbit/s"),
				cell(2, pods+":size=1024", "b", "throughput=6 Gbit/s"),
				cell(3, "pod-svc/other/tcp-stream", "a", "throughput=9 Gbit/s"),
				cell(3, "pod-svc/other/tcp-stream", "b", "throughput=9 Gbit/s"))},
		{"identical-numbers", "a and b report the same value in all 3 blocks",
			evidence(blocks(pods, "a", "throughput", "Gbit/s", 9.1, 9.2, 9.3),
				blocks(pods, "b", "throughput", "Gbit/s", 9.1, 9.2, 9.3)),
			evidence(blocks(pods, "a", "throughput", "Gbit/s", 9.1, 9.2, 9.3),
				blocks(pods, "b", "throughput", "Gbit/s", 9.1, 9.2, 9.4))},
		{"identical-numbers", "a and b report the same 3 numbers in run 0001 and run 0002",
			evidence(run(rr, "a", "p50=101us;p90=152us;p99=433us", ""), run(rr, "b", "p50=101us;p90=152us;p99=433us", "")),
			evidence(run(rr, "a", "p50=101us;p90=152us;p99=433us", ""), run(rr, "b", "p50=101us;p90=152us;p99=434us", ""))},
		{"identical-numbers", "All 3 figures of b",
			evidence(cell(1, "x", "a", "throughput=9.1 Gbit/s"), cell(2, "y", "a", "mean=1ms"), cell(3, "z", "a", "rate=7/s"),
				cell(1, "x", "b", "throughput=9.1 Gbit/s"), cell(2, "y", "b", "mean=1ms"), cell(3, "z", "b", "rate=7/s")),
			evidence(cell(1, "x", "a", "throughput=9.1 Gbit/s"), cell(2, "y", "a", "mean=1ms"), cell(3, "z", "a", "rate=7/s"),
				cell(1, "x", "b", "throughput=9.1 Gbit/s"), cell(2, "y", "b", "mean=1ms"), cell(3, "z", "b", "rate=8/s"))},
		{"identical-numbers", "All 3 numbers of b are those of a in x.md:1", // the other outputs differ
			evidence(output(1, "tcp-stream", "a", "throughput=9.41 Gbit/s;rate=8001/s;p50=101us"),
				output(2, "udp-stream", "a", "throughput=1 Gbit/s;rate=5001/s;p50=102us"),
				output(3, "tcp-stream", "b", "throughput=9.41 Gbit/s;rate=8001/s;p50=101us"),
				output(4, "udp-stream", "b", "throughput=2 Gbit/s;rate=5002/s;p50=103us")),
			evidence(output(1, "tcp-stream", "a", "throughput=9.41 Gbit/s;rate=8001/s;p50=101us"),
				output(2, "tcp-stream", "a", "throughput=9.41 Gbit/s;rate=8001/s;p50=101us"), // shown again
				output(3, "udp-stream", "b", "throughput=9.41 Gbit/s;rate=8001/s;p50=101us"),
				output(4, "tcp-stream", "b", "throughput=9.4 Gbit/s;rate=8e3/s;p50=1us"))},
		{"equal-percentiles", "p50 and p99 are equal on all 2 targets",
			evidence(cell(1, rr, "a", "p50=4894us;p99=4894us"), cell(1, rr, "b", "p50=4955us;p99=4955us")),
			evidence(cell(1, rr, "a", "p50=4894us;p99=4894us"), cell(1, rr, "b", "p50=4955us;p99=4956us"))},
		{"measured-once", "All 3 targets have 9.16 Gbit/s",
			evidence(cell(1, bound, "a", "throughput=9.16 Gbit/s"),
				cell(1, bound, "b", "throughput=9.16 Gbit/s"), cell(1, bound, "c", "throughput=9.16 Gbit/s")),
			evidence(cell(1, bound, "a", "throughput=9.16 Gbit/s"),
				cell(1, bound, "b", "throughput=9.16 Gbit/s"), cell(1, bound, "c", "throughput=9.17 Gbit/s"))},
		{"measured-once", "All 3 targets have 9.16 Gbit/s", // 9.41 is what a link of 10 carries
			evidence(cell(1, bound, "a", "throughput=9.16 Gbit/s"),
				cell(1, bound, "b", "throughput=9.16 Gbit/s"), cell(1, bound, "c", "throughput=9.16 Gbit/s")),
			evidence(cell(1, bound, "a", "throughput=9.41 Gbit/s"),
				cell(1, bound, "b", "throughput=9.41 Gbit/s"), cell(1, bound, "c", "throughput=9.41 Gbit/s"))},
		{"quantised", "12 of 16 latencies lie within 2.5 % of a multiple of 200 ms",
			evidence(apiLatencies(601, 403, 597, 604, 604, 340, 402, 601, 403, 417, 410, 442, 404, 613, 402, 461)...),
			evidence(apiLatencies(61, 75, 97, 104, 204, 340, 52, 133, 303, 217, 510, 442, 274, 653, 702, 561)...)},
		{"quantised", "8 of 8 latencies lie within 2.5 % of a multiple of 200 ms",
			evidence(blocks("api/deployment/scale", "a", "p50", "ms", 601, 403, 597, 604, 402, 598, 399, 601)),
			evidence(blocks("api/deployment/scale", "a", "p50", "ms", 5.4, 5.5, 5.4, 6.1, 5.2, 5.5, 5.7, 5.3))},
		{"no-counts", "1 of 1 figures of the table without the number of their runs",
			evidence(cell(1, "x", "a", "throughput=9.1 Gbit/s")),
			evidence(run("x", "a", "throughput=9.1 Gbit/s", "place: x:1; table: t; row: x; runs: 100"))},
		{"no-counts", "1 of 1 figures of t without the number of their runs.", // but with their spread
			evidence(run("x", "a", "mean=9s;mean.sd=1s", "place: x:1; table: t; row: x")),
			evidence(run("x", "a", "mean=9s;mean.sd=1s", "place: x:1; table: t; row: x; runs: 100"))},
		{"no-counts", "Fewer than 6 valid runs in 1 of 1 pairs of case and target; the least is 4",
			evidence(blocks(pods, "a", "throughput", "Gbit/s", 1, 2, 3, 4)),
			evidence(blocks(pods, "a", "throughput", "Gbit/s", 1, 2, 3, 4, 5, 6))},
		{"peak", "The only figure is a maximum: 9.10 Gbit/s",
			evidence(run("x", "a", "throughput=9.1 Gbit/s", "aggregate: max")),
			evidence(run("x", "a", "throughput=9.1 Gbit/s", "aggregate: max"),
				run("x", "a", "throughput=8 Gbit/s", "aggregate: mean"))},
		{"unlisted", "c has figures and is not among the 2 configurations",
			evidence(cell(1, "x", "a", "rate=1/s"), cell(1, "x", "b", "rate=2/s"),
				cell(1, "x", "c", "rate=3/s"), withFacts("a", "listed: x:1"), withFacts("b", "listed: x:2")),
			evidence(cell(1, "x", "a", "rate=1/s"), cell(1, "x", "b", "rate=2/s"),
				withFacts("a", "listed: x:1"), withFacts("b", "listed: x:2"))},
		{"unlisted", "b is listed as tested and has no figures",
			evidence(cell(1, "x", "a", "rate=1/s"), withFacts("a", "listed: x:1"), withFacts("b", "listed: x:2")),
			evidence(cell(1, "x", "a", "rate=1/s"), withFacts("a", "listed: x:1"))},
		{"no-data", `The column "IPsec" has no figure`,
			evidence(gap(7, GapColumn), cell(1, "x", "a", "rate=1/s")), evidence(cell(1, "x", "a", "rate=1/s"))},
		{"no-data", "2 empty cells among figures: lines 7, 9",
			evidence(gap(7, GapCell), gap(9, GapCell), cell(1, "x", "a", "rate=1/s")),
			evidence(cell(1, "x", "a", "rate=1/s"))},
		{"links-differ", "The link of b has 1.25 Gbit/s, that of a 12.5 Gbit/s",
			evidence(withFacts("a", "link-rate: 12.5 Gbit/s"), withFacts("b", "link-rate: 1.25 Gbit/s")),
			evidence(withFacts("a", "link-rate: 12.5 Gbit/s"), withFacts("b", "link-rate: 12.5 Gbit/s"))},
		{"above-storage-limit", "5.90 kop/s, where the class promises 2.40 kop/s at most",
			evidence(run("randread", "a", "iops=5900/s", ""), withFacts("a", "limit-iops: 2400/s")),
			evidence(run("randread", "a", "iops=2450/s", ""), withFacts("a", "limit-iops: 2400/s"))},
		{"above-storage-limit", "7.00 kop/s, where the size of the VM promises 6.40 kop/s at most",
			evidence(run("storage/randread-4k-qd64", "a", "rate=7000/s", "limit-iops: 16000/s"),
				withFacts("a", "vm-limit-iops: 6400/s")),
			evidence(run("storage/randread-4k-qd64", "a", "rate=6500/s", "limit-iops: 16000/s"),
				withFacts("a", "vm-limit-iops: 6400/s"))},
		{"links-differ", "The link of b has 5.00 Gbit/s, that of a 12.5 Gbit/s",
			evidence(withFacts("a", "vm-link-rate: 12.5 Gbit/s"), withFacts("b", "vm-link-rate: 5 Gbit/s")),
			evidence(withFacts("a", "vm-link-rate: 12.5 Gbit/s"),
				withFacts("b", "vm-link-rate: 5 Gbit/s; link-rate: 12.5 Gbit/s"))},
		{"burst", "3.00 kop/s in the first 2 s, 500 op/s in the second half",
			evidence(seconds(run("storage/randread-4k-qd64", "a", "rate=1000/s", ""),
				3000, 3000, 700, 500, 500, 500, 500, 500, 500, 500)),
			evidence(seconds(run("storage/randread-4k-qd64", "a", "rate=1000/s", ""), 600, 500, 500, 500, 500, 500, 500))},
		{"memory-volume", "in memory (tmpfs)",
			evidence(run("storage/randread-4k-qd1", "a", "p50=90us", ""),
				withFacts("a", "backing: memory"), withFacts("a", "filesystem: tmpfs")),
			evidence(run("storage/randread-4k-qd1", "a", "p50=90us", ""), withFacts("a", "backing: disk"))},
		{"faster-than-disk", "2.00 µs for a random read.",
			evidence(run("storage/randread-4k-qd1", "a", "p50=2us", "")),
			evidence(run("storage/randread-4k-qd1", "a", "p50=90us", ""))},
		{"faster-than-disk", "90.0 µs for a random read, of a disk that is said to rotate",
			evidence(run("storage/randread-4k-qd1", "a", "p50=90us", ""), withFacts("a", "device-rotational: yes")),
			evidence(run("storage/randread-4k-qd1", "a", "p50=6ms", ""), withFacts("a", "device-rotational: yes"))},
		{"faster-than-disk", "of a disk that is said to rotate",
			evidence(run("storage/randread-4k-qd1", "a", "p50=90us", ""),
				withFacts("a", "device-rotational: yes"), withFacts("a", "device: sda1 on sda")),
			evidence(run("storage/randread-4k-qd1", "a", "p50=90us", ""),
				withFacts("a", "device-rotational: yes"), withFacts("a", "device: vda"))},
		{"faster-than-local", "90.0 µs for a random read, where a, a disk of the machine itself, takes 200 µs",
			evidence(run("storage/randread-4k-qd1", "a", "p50=200us", ""), run("storage/randread-4k-qd1", "b", "p50=90us", ""),
				withFacts("a", "kind: local"), withFacts("a", "backing: disk"), withFacts("b", "kind: kube")),
			evidence(run("storage/randread-4k-qd1", "a", "p50=80us", ""), run("storage/randread-4k-qd1", "b", "p50=90us", ""),
				withFacts("a", "kind: local"), withFacts("a", "backing: disk"), withFacts("b", "kind: kube"))},
		{"page-cache", "went through the page cache",
			evidence(run("storage/read-1m-qd4", "a", "throughput=1Gbit/s", "import.file: x; fio.direct: 0")),
			evidence(run("storage/read-1m-qd4", "a", "throughput=1Gbit/s", "import.file: x; fio.direct: 1"))},
		{"page-cache", "went through the page cache",
			evidence(run("storage/write-4k-qd1", "a", "rate=1/s", "import.file: x; fio.ioengine: sync")),
			evidence(run("storage/write-4k-qd1-fdatasync", "a",
				"rate=1/s;sync-mean=1ms", "import.file: x; fio.ioengine: sync"))},
		{"depth-without-effect", "iodepth=16 with ioengine sync.",
			evidence(run("storage/read-4k-qd16", "a", "rate=1/s", "import.file: x; fio.ioengine: sync; fio.iodepth: 16")),
			evidence(run("storage/read-4k-qd16", "a", "rate=1/s", "import.file: x; fio.ioengine: libaio; fio.iodepth: 16"))},
		{"jobs-at-once", "4 jobs ran at the same time",
			evidence(run("storage/read_iops", "a", "rate=1/s", "import.file: x; fio.size: 2G; fio.jobs-at-once: 4")),
			evidence(run("storage/read_iops", "a", "rate=1/s", "import.file: x; fio.size: 2G"))},
		{"small-file", "The file has 67.1 MB, which is 0.54 s at 1.00 Gbit/s",
			evidence(run("storage/read-1m-qd4", "a", "throughput=1Gbit/s", "import.file: x; fio.size: 64m")),
			evidence(run("storage/read-1m-qd4", "a", "throughput=1Gbit/s", "import.file: x; fio.size: 10Gi"))},
		{"unwritten", "The job reads /dev/sdb",
			evidence(run("storage/randread-4k-qd4", "a", "rate=1/s",
				"import.file: x; fio.size: 1g; fio.touched: device; fio.filename: /dev/sdb")),
			evidence(run("storage/randread-4k-qd4", "a", "rate=1/s", "import.file: x; fio.size: 1g; fio.filename: /mnt/x"))},
		{"no-latency", "gtod_reduce=1",
			evidence(run("storage/randread-4k-qd4", "a", "rate=1/s", "import.file: x; fio.size: 1g; fio.gtod-reduce: 1")),
			evidence(run("storage/randread-4k-qd4", "a", "rate=1/s", "import.file: x; fio.size: 1g; fio.gtod-reduce: 0"))},
		{"etcd-floor", "12.0 ms",
			evidence(run("storage/write-2300-qd1-fdatasync", "a", "sync-p99=12ms", "")),
			evidence(run("storage/write-2300-qd1-fdatasync", "a", "sync-p99=9ms", ""))},
		{"percent-base", "+25.7 % of min is relative to b: from a with 10.2 ms to b with 13.8 ms it is +34.6 %",
			evidence(vault("a", "min", 0.010233, 0), vault("b", "min", 0.013774, 0), claims("a", "b", "min", 0.25710886)),
			evidence(vault("a", "min", 0.010233, 0), vault("b", "min", 0.013774, 0), claims("a", "b", "min", 0.346))},
		{"percent-base", "p99 is said to be +50.0 %",
			evidence(vault("a", "p99", 1, 0), vault("b", "p99", 1.2, 0), claims("a", "b", "p99", 0.5)),
			evidence(vault("a", "p99", 1, 0), vault("b", "p99", 1.2, 0), claims("a", "b", "p99", 0.2))},
		{"percent-base", "+8.10 % of mean is relative to b", // rounded: 1.2 % may be 1.25 %
			evidence(rounded("", "a", 1.70, ""), rounded("", "b", 1.85, ""), rounded("", "a", 0.081, "b")),
			evidence(rounded("x", "a", 1.70, ""), rounded("x", "b", 1.85, ""),
				rounded("y", "a", 1.60, ""), rounded("y", "b", 1.62, ""), rounded("y", "a", 0.012, "b"))},
		{"not-carried", "it lies between -2.80 % and +13.7 %",
			evidence(vault("a", "p99", 5.480679, math.Sqrt(2.263700)),
				vault("b", "p99", 5.780422, math.Sqrt(3.016106)), claims("a", "b", "p99", 0.05185)),
			evidence(vault("a", "mean", 1.632200, math.Sqrt(0.002057)),
				vault("b", "mean", 1.651549, math.Sqrt(0.001610)), claims("a", "b", "mean", 0.01171))},
	}
}

// seconds gives the run that a change adds a series of its rate.
func seconds(add change, values ...float64) change {
	return func(e *Evidence) {
		add(e)
		e.Runs[len(e.Runs)-1].Series = []result.Series{{Name: "rate", Unit: unit.PerSecond, Step: 1, Values: values}}
	}
}

// apiLatencies returns cells of a table in milliseconds.
func apiLatencies(ms ...float64) (changes []change) {
	for i, v := range ms {
		changes = append(changes, cell(i+1, "verb"+strconv.Itoa(i), "a", fmt.Sprintf("p50=%gms", v)))
	}
	return changes
}

func gap(line int, what string) change {
	return run("gap", "gap", "", fmt.Sprintf("place: x.md:%d; gap: %s; row: IPsec", line, what))
}

func vault(target, metric string, mean, sd float64) change {
	return run("vault", target, fmt.Sprintf("%s=%gs;%s.sd=%gs", metric, mean, metric, sd),
		"place: x:1; table: t; runs: 100; aggregate: mean")
}

func claims(target, against, metric string, fraction float64) change {
	return run("vault", target, fmt.Sprintf("%s.change=%gratio", metric, fraction),
		"place: x:9; table: u; against: "+against)
}

func TestRules(t *testing.T) {
	tested := map[string]bool{}
	for _, c := range tests() {
		tested[c.rule] = true
		bad, good := examinationOf(c.rule, Examine(c.bad)), examinationOf(c.rule, Examine(c.good))
		if len(bad.Findings) != 1 || !strings.Contains(bad.Findings[0].Saw, c.saw) {
			t.Errorf("%s: wanted one finding with %q, got %+v", c.rule, c.saw, bad.Findings)
		}
		if len(good.Findings) != 0 || good.Checked == 0 {
			t.Errorf("%s: wanted nothing in clean evidence, after a look: looked at %d, got %+v",
				c.rule, good.Checked, good.Findings)
		}
		for _, f := range bad.Findings {
			if f.Rule != c.rule || f.Why == "" || f.Severity == "" {
				t.Errorf("%s: the finding is not complete: %+v", c.rule, f)
			}
		}
	}
	for _, r := range rules {
		if !tested[r.Name] {
			t.Errorf("rule %s has no test", r.Name)
		}
		if (r.checkRun == nil) == (r.checkAll == nil) || r.About == "" || r.Why == "" {
			t.Errorf("rule %s is not complete", r.Name)
		}
	}
}

func examinationOf(rule string, all []Examination) Examination {
	i := slices.IndexFunc(all, func(x Examination) bool { return x.Rule.Name == rule })
	if i < 0 {
		return Examination{}
	}
	return all[i]
}

func TestCheckIsStable(t *testing.T) {
	for _, c := range tests() {
		if first, again := Check(c.bad), Check(c.bad); !reflect.DeepEqual(first, again) {
			t.Errorf("%s: two checks differ:\n%+v\n%+v", c.rule, first, again)
		}
	}
	if found := Check(Evidence{}); found == nil || len(found) != 0 {
		t.Errorf("nothing gives %+v, wanted an empty list", found)
	}
}

// TestCheckRun checks that CheckRun finds everything that needs only the run, and names the run.
// TestCopiesAcrossSources checks that copies of outputs and of columns are found in another source.
func TestCopiesAcrossSources(t *testing.T) {
	column := func(target string) change {
		return func(e *Evidence) {
			for i := range 3 {
				cell(i+1, "x", target, fmt.Sprintf("throughput=9.%d1 Gbit/s", i+1))(e)
			}
		}
	}
	imported := func(target, values string) Evidence {
		e := evidence(run(rr, target, values, ""))
		e.Experiment.Imported, e.Source = "netperf", target+".dir"
		return e
	}
	copied := "p50=101us;p90=152us;p99=433us"
	for _, c := range []struct {
		earlier, later Evidence
		want           string
	}{
		{evidence(output(7, rr, "a", copied)), evidence(output(1, rr, "b", copied)),
			"All 3 numbers of b are those of a in x.md:7."},
		{evidence(output(7, rr, "a", copied)), evidence(output(1, rr, "a", copied)), ""}, // a page and its next version
		{imported("a", copied), imported("b", copied), "All 3 numbers of b are those of a in run 0001 of a.dir."},
		{evidence(output(7, rr, "a", copied)), imported("b", copied), "All 3 numbers of b are those of a in x.md:7."},
		{evidence(column("a")), evidence(column("b")),
			"All 3 figures of b in the table are those of a in the table of earlier."},
	} {
		var seen Seen
		if c.earlier.Source == "" {
			c.earlier.Source = "earlier"
		}
		c.earlier.Seen, c.later.Seen = &seen, &seen
		Examine(c.earlier)
		var got string
		for _, f := range examinationOf("identical-numbers", Examine(c.later)).Findings {
			got += f.Saw
		}
		if got != c.want {
			t.Errorf("found %q, wanted %q", got, c.want)
		}
	}
}

func TestCheckRun(t *testing.T) {
	e := evidence(run("udp-rr", "a", "rate=3540/s;mean=125us", ""))
	found := CheckRun(e.Experiment.Cases[0], e.Runs[0])
	if len(found) != 1 || found[0].Rule != "closed-loop" ||
		!slices.Equal(found[0].Runs, []string{"0001"}) || found[0].Severity != Error {
		t.Errorf("got %+v", found)
	}
	if found := CheckRun(result.Case{}, result.Run{}); found == nil || len(found) != 0 {
		t.Errorf("a run without values gives %+v", found)
	}
}

// TestOnlyWhatCounts checks that invalid runs, and runs of repeated attempts, are skipped.
func TestOnlyWhatCounts(t *testing.T) {
	e := evidence(run(rr, "a", "p50=0s", ""), run(rr, "a", "p50=0s", ""))
	e.Runs[0].Invalid = []result.Warning{{Code: result.ShortWindow, Text: "the window was short"}}
	e.Runs[1].Block = 7
	again := e.Runs[1]
	again.ID, again.Attempt, again.Values = "0003", 2, []result.Value{{Metric: "p50",
		Unit: unit.Second, Number: 1, Better: metric.Lower}}
	e.Runs = append(e.Runs, again)
	if x := examinationOf("zero", Examine(e)); len(x.Findings) != 0 || x.Checked != 1 {
		t.Errorf("looked at %d, found %+v", x.Checked, x.Findings)
	}
}

func TestMergesRunsThatAreAlike(t *testing.T) {
	x := examinationOf("zero", Examine(evidence(blocks(pods, "a", "throughput", "Gbit/s", 0, 1, 0, 0))))
	if len(x.Findings) != 1 || !slices.Equal(x.Findings[0].Runs, []string{"0001", "0003", "0004"}) ||
		!strings.Contains(x.Findings[0].Saw, "3 runs are alike") {
		t.Errorf("got %+v", x.Findings)
	}
}

// TestClosedLoopAllowsForTheEndsOfTheWindow checks that a request under way at the end of a short window is tolerated.
func TestClosedLoopAllowsForTheEndsOfTheWindow(t *testing.T) {
	e := evidence(run(rr, "a", "rate=9000/s;mean=100us;max=100ms", "loop: closed"))
	if found := CheckRun(e.Experiment.Cases[0], e.Runs[0]); len(found) != 0 {
		t.Errorf("got %+v", found)
	}
	e.Runs[0].Window = 100
	if found := CheckRun(e.Experiment.Cases[0], e.Runs[0]); len(found) != 1 {
		t.Errorf("in a long window got %+v", found)
	}
}

// TestClosedLoopOfFewRequests checks that a run of few requests gives a warning instead of an error.
func TestClosedLoopOfFewRequests(t *testing.T) {
	e := evidence(run(rr, "a", "rate=80/s;mean=3ms;max=5ms", "loop: closed"))
	if found := CheckRun(e.Experiment.Cases[0], e.Runs[0]); len(found) != 1 || found[0].Severity != Warning {
		t.Errorf("got %+v", found)
	}
}

func TestOutstanding(t *testing.T) {
	for _, c := range []struct {
		caseName, facts string
		want            float64
	}{
		{rr, "", 1}, {rr, "loop: closed", 1}, {rr, "loop: open", 0},
		{rr + ":rate=500", "", 0}, {rr + ":flows=8,request=2", "", 8},
		{pods, "", 0}, {"vault", "concurrency: 1300", 1300}, {"vault", "workers: unknown", 0}, {"vault", "loop: closed", 1},
	} {
		e := evidence(run(c.caseName, "a", "", c.facts))
		if got := outstanding(measuredRun{Run: &e.Runs[0], planned: e.Experiment.Cases[0]}); got != c.want {
			t.Errorf("%s with %q: %g outstanding, wanted %g", c.caseName, c.facts, got, c.want)
		}
	}
}

// TestOddNumbers checks that NaN, infinities and extreme numbers do not cause a panic.
func TestOddNumbers(t *testing.T) {
	for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1),
		math.MaxFloat64, -math.MaxFloat64, math.SmallestNonzeroFloat64} {
		for _, c := range tests() {
			e := c.bad
			e.Runs = slices.Clone(e.Runs)
			for i := range e.Runs {
				e.Runs[i].Values = slices.Clone(e.Runs[i].Values)
				for j := range e.Runs[i].Values {
					e.Runs[i].Values[j].Number = v
				}
			}
			Check(e)
		}
	}
}

// TestDocumentationListsTheRules checks that the documentation lists every rule in its own words; -update writes the
// list.
func TestDocumentationListsTheRules(t *testing.T) {
	const path, end = "../../docs/audit.md", "<!-- end of rules -->"
	const begin = "<!-- rules: written by go test ./internal/audit -update -->\n"
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	from, to := strings.Index(text, begin), strings.Index(text, end)
	if from < 0 || to < from {
		t.Fatalf("%s has no place for the rules", path)
	}
	var list strings.Builder
	list.WriteString("\n| rule | severity | what it expects | why it matters |\n|---|---|---|---|\n")
	for _, r := range rules {
		why := r.Why
		if r.More != "" {
			why += " (" + r.More + ")"
		}
		fmt.Fprintf(&list, "| `%s` | %s | %s | %s |\n", r.Name, r.Severity, r.About, why)
	}
	list.WriteString("\n")
	want := text[:from+len(begin)] + list.String() + text[to:]
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if text != want {
		t.Errorf("%s does not list the rules as they are; run the test with -update", path)
	}
}

func FuzzCheck(f *testing.F) {
	f.Add("pod-pod/other/tcp-rr:flows=4", "p99", "s", 0.1, 2.0, "samples", "71")
	f.Add("node-node/tcp-stream", "throughput", "bit/s", 1e9, 0.0, "link-rate", "10 Gbit/s")
	f.Fuzz(func(_ *testing.T, caseName, of, u string, x, y float64, name, text string) {
		v := func(n float64) []result.Value {
			return []result.Value{
				{Metric: of, Unit: unit.Unit(u), Better: metric.Lower, Number: n},
				{Metric: "rate", Unit: unit.PerSecond, Better: metric.Higher, Number: y},
				{Metric: "mean", Unit: unit.Second, Number: x},
			}
		}
		facts := []result.Fact{{Name: name, Value: text}}
		e := Evidence{Results: result.Results{Facts: map[string][]result.Fact{"a": facts}}}
		for i := range 9 {
			e.Runs = append(e.Runs, result.Run{ID: strconv.Itoa(i), Case: caseName,
				Target: []string{"a", "b"}[i%2], Block: i / 2, Values: v(x * float64(i)), Facts: facts, Window: y})
		}
		Check(e)
	})
}
