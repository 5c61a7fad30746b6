package explain

import (
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
)

const blocks = 8

// A side holds the values of a target in addition to those that every run has.
type side struct {
	values map[string]float64
	facts  []result.Fact // of each run
	target []result.Fact
}

// experiment returns results of a case in a metric on the targets base and other.
func experiment(name string, base, other side) result.Results {
	role := result.Primary
	r := result.Results{
		Experiment: result.Experiment{ID: "2026-11-23-abcd", Baseline: "base",
			Targets: []result.Target{{Name: "base", Spec: result.SpecOf("lab:native")},
				{Name: "other", Spec: result.SpecOf("lab:vxlan")}},
			Cases:  []result.Case{{Name: "path/load", Metric: name, Role: role}},
			Design: result.Design{Kind: "randomised blocks", Blocks: blocks, Alpha: 0.05, Delta: 0.02}},
		Facts: map[string][]result.Fact{"base": base.target, "other": other.target},
	}
	for block := 1; block <= blocks; block++ {
		for i, s := range []side{base, other} {
			run := result.Run{ID: fmt.Sprintf("%d-%d", block, i), Case: "path/load", Target: []string{"base", "other"}[i],
				Block: block, Attempt: 1, Slot: i + 1, Window: 1, Facts: s.facts}
			for metricName, v := range s.values {
				// Each block has its own level, and each run a small deviation.
				v *= 1 + 0.001*float64(block) + 0.0001*float64((block*7+i*3)%5)
				run.Values = append(run.Values, result.NewValue(metric.Named(metricName), v))
			}
			r.Runs = append(r.Runs, run)
		}
	}
	return r
}

func explained(t *testing.T, r result.Results) []Explanation {
	t.Helper()
	c, err := compare.Compare(r)
	if err != nil {
		t.Fatal(err)
	}
	return Explain(r, c)
}

func facts(pairs ...string) []result.Fact {
	var list []result.Fact
	for i := 0; i < len(pairs); i += 2 {
		list = append(list, result.Fact{Name: pairs[i], Value: pairs[i+1]})
	}
	return list
}

// withCounters returns a side whose runs have counters: high values of the given ones, and nearly 1 for shares.
func withCounters(values map[string]float64, counters ...string) side {
	s := side{values: maps.Clone(values),
		facts: facts("counters.client", "here", "counters.server", "here and on the node")}
	for _, c := range counters {
		n := 1000.0
		if metric.IsShare(c) || c == metric.CPUPressure {
			n = 0.95
		}
		s.values[metric.OfCounter(c)+metric.OfServer] = n
	}
	return s
}

// TestRules checks that each rule is supported by the difference it is about, contradicted without it or with the
// opposite one, and not observable without data.
func TestRules(t *testing.T) {
	fast, slow := map[string]float64{metric.Throughput: 10e9}, map[string]float64{metric.Throughput: 8e9}
	with := func(values map[string]float64, more map[string]float64) map[string]float64 {
		all := map[string]float64{}
		for _, m := range []map[string]float64{values, more} {
			for name, v := range m {
				all[name] = v
			}
		}
		return all
	}
	full := map[string]float64{metric.CPUBusiest: 0.97, metric.OfLayer(metric.CPUPerGB, "tcp"): 0.4}
	heavy := map[string]float64{metric.CPUBusiest: 0.97, metric.OfLayer(metric.CPUPerGB, "tcp"): 0.4,
		metric.OfLayer(metric.CPUPerGB, "vxlan"): 0.1}
	quick := map[string]float64{metric.P50: 20e-6, metric.OfLayer(metric.CPUPerOp, "tcp"): 15e-6}
	busy := map[string]float64{metric.P50: 30e-6, metric.OfLayer(metric.CPUPerOp, "tcp"): 25e-6}
	late := map[string]float64{metric.P50: 30e-6, metric.OfLayer(metric.CPUPerOp, "tcp"): 15e-6}
	wide := map[string]float64{metric.MSS: 1000, metric.Cwnd: 1250, metric.RTT: 1e-3, metric.CPUBusiest: 0.2}
	narrow := map[string]float64{metric.MSS: 1000, metric.Cwnd: 1000, metric.RTT: 1e-3, metric.CPUBusiest: 0.2}
	for _, test := range []struct {
		rule, metric string
		good, bad    side
	}{
		{"cpu-layers", metric.Throughput, side{values: with(fast, full)}, side{values: with(slow, heavy)}},
		{"cpu-layers", metric.P50, side{values: quick}, side{values: busy}},
		{"waiting", metric.P50, side{values: quick}, side{values: late}},
		{"other-programs", metric.P50, side{values: with(quick, map[string]float64{metric.Rate: 50e3})},
			side{values: with(late, map[string]float64{metric.Rate: 33e3,
				metric.OfLayer(metric.CPUPerOp, metric.Programs): 10e-6})}},
		{"rate-limit", metric.Throughput, side{values: fast, target: facts("underlay-rate", "unlimited")},
			side{values: slow, target: facts("underlay-rate", "8.5 Gbit/s")}},
		{"smaller-segments", metric.Throughput, side{values: with(fast, map[string]float64{metric.MSS: 8948})},
			side{values: with(slow, map[string]float64{metric.MSS: 1448})}},
		{"mtu-too-large", metric.Throughput, side{values: fast, target: facts("tunnel-mtu", "fits: pods 1450")},
			side{values: slow, target: facts("tunnel-mtu", "does not fit: pods 1500")}},
		{"retransmissions", metric.Throughput,
			side{values: with(fast, map[string]float64{metric.MSS: 1448, metric.Retransmits: 1})},
			side{values: with(slow, map[string]float64{metric.MSS: 1448, metric.Retransmits: 5000})}},
		{"congestion-control", metric.Throughput, side{values: fast, facts: facts("tcp.congestion", "bbr")},
			side{values: slow, facts: facts("tcp.congestion", "cubic")}},
		{"offloads", metric.Throughput, side{values: fast, facts: facts("offloads.client", "tso gso")},
			side{values: slow, facts: facts("offloads.client", "gso")}},
		{"window", metric.Throughput,
			side{values: with(fast, wide)}, side{values: with(slow, narrow)}},
		{"confidential-vm", metric.Throughput, side{values: fast, target: facts(result.ConfidentialVM, "no sign seen")},
			side{values: slow, target: facts(result.ConfidentialVM, "CPU flag tdx_guest")}},
		{"one-cpu", metric.Throughput,
			side{values: fast, facts: facts("cpu.client", "0", "cpu.server", "1", "cpu.shared", "true")},
			side{values: slow, facts: facts("cpu.client", "0", "cpu.server", "0", "cpu.shared", "true")}},
		{"steal", metric.Throughput, side{values: with(fast, map[string]float64{metric.CPUSteal: 0.001})},
			side{values: with(slow, map[string]float64{metric.CPUSteal: 0.2})}},
		{"proxy", metric.Throughput, side{values: fast, target: facts("underlay-header", "bare packets")},
			side{values: slow, target: facts("underlay-header", "tcp:15008 tls", "proxy", "HAProxy 2.6.12")}},
		{"proxy", metric.Throughput, side{values: fast, target: facts("mesh", "none (sockets of the pods)")},
			side{values: slow, facts: facts(result.MeshIntercepted, "yes (port 15008 is between them)"),
				target: facts("mesh", "Istio (a container)")}},
		{"encryption", metric.Throughput, side{values: fast, target: facts("encryption", "none (a config map)")},
			side{values: slow, target: facts("encryption", "wireguard (a config map)")}},
		{"encapsulation", metric.Throughput, side{values: fast, target: facts("underlay-header", "bare packets")},
			side{values: slow, target: facts("underlay-header", "ipv4 udp:8472 vxlan:1 ethernet")}},
		{"rate-limit", metric.Throughput, withCounters(fast), withCounters(slow, metric.QueueOverlimits)},
		{"rate-limit", metric.Throughput, side{values: fast, target: facts("node-speed", "25000 Mbit/s")},
			side{values: slow, target: facts("node-speed", "9000 Mbit/s")}},
		{"flow-limit", metric.Throughput,
			side{values: map[string]float64{metric.Throughput: 9.3e9}, target: facts("provider", "aws")},
			side{values: map[string]float64{metric.Throughput: 4.9e9}, target: facts("provider", "aws")}},
		{"bounce-buffers", metric.P50, side{values: quick}, side{values: with(busy, map[string]float64{
			metric.OfLayer(metric.CPUPerOp, "bounce"): 4e-6})}},
		{"throttling", metric.Throughput, withCounters(fast), withCounters(slow, metric.CPUThrottled)},
		{"throttling", metric.Rate, // runs without the kernel's counters, which tell how often they were throttled
			side{values: map[string]float64{metric.Rate: 4e6, metric.OfCounter(metric.CPUThrottled): 0}},
			side{values: map[string]float64{metric.Rate: 2e6, metric.OfCounter(metric.CPUThrottled): 100}}},
		{"receiver-window", metric.Throughput, side{values: with(fast, map[string]float64{metric.RwndLimited: 0.1})},
			side{values: with(slow, map[string]float64{metric.RwndLimited: 0.9})}},
		{"send-buffer", metric.Throughput, side{values: with(fast, map[string]float64{metric.SndLimited: 0.1})},
			side{values: with(slow, map[string]float64{metric.SndLimited: 0.9})}},
		{"legacy-routing", metric.Throughput, side{values: fast, target: facts("cni-settings", "routing-mode=native")},
			side{values: slow, target: facts("cni-settings", "enable-host-legacy-routing=true routing-mode=native")}},
		{"starved", metric.Throughput, withCounters(fast), withCounters(slow, metric.CPUPressure)},
		{"listen-overflows", metric.Throughput, withCounters(fast), withCounters(slow, metric.ListenOverflows)},
		{"conntrack-full", metric.Throughput, withCounters(fast), withCounters(slow, metric.ConntrackDrops)},
		{"conntrack-full", metric.Throughput, withCounters(fast), withCounters(slow, metric.ConntrackUsed)},
		{"conntrack-races", metric.Throughput, withCounters(fast), withCounters(slow, metric.ConntrackInsertFailed)},
		{"receive-buffer", metric.Throughput, withCounters(fast), withCounters(slow, metric.ReceiveBufferErrors)},
		{"checksums", metric.Throughput, withCounters(fast), withCounters(slow, metric.ChecksumErrors)},
		{"fragments", metric.Throughput, withCounters(fast), withCounters(slow, metric.Fragments)},
		{"queue-drops", metric.Throughput, withCounters(fast), withCounters(slow, metric.QueueDrops)},
		{"nic-allowance", metric.Throughput, withCounters(fast), withCounters(slow, metric.AllowanceExceeded)},
		{"ring-drops", metric.Throughput, withCounters(fast), withCounters(slow, metric.RingDrops)},
		{"softnet-drops", metric.Throughput, withCounters(fast), withCounters(slow, metric.SoftnetDrops)},
		{"softnet-squeezes", metric.Throughput, withCounters(fast), withCounters(slow, metric.SoftnetSqueezes)},
		{"connection-retries", metric.Throughput, withCounters(fast), withCounters(slow, metric.SYNRetransmitted)},
		{"softirq-cpu", metric.Throughput, side{values: with(fast, map[string]float64{metric.CPUBusiestSoftIRQ: 0.5})},
			side{values: with(slow, map[string]float64{metric.CPUBusiestSoftIRQ: 0.9})}},
		{"packet-filter", metric.P50, side{values: quick}, side{values: with(quick, map[string]float64{metric.P50: 30e-6,
			metric.OfLayer(metric.CPUPerOp, "netfilter"): 10e-6})}},
	} {
		t.Run(test.rule+"/"+test.metric, func(t *testing.T) {
			check := func(base, other side, want State) {
				t.Helper()
				list := explained(t, experiment(test.metric, base, other))
				if len(list) != 1 {
					t.Fatalf("%d explanations", len(list))
				}
				i := slices.IndexFunc(list[0].Causes, func(c Cause) bool { return c.Rule == test.rule })
				if c := list[0].Causes[i]; c.State != want || len(c.Evidence) == 0 || (c.Remedy != "") != (want == Supported) {
					t.Errorf("%+v", c)
				}
				if want == Supported && !strings.Contains(list[0].Sentence, list[0].Causes[0].Cause) {
					t.Error(list[0].Sentence)
				}
			}
			check(test.good, test.bad, Supported)
			check(test.bad, test.good, Supported) // which of them is the baseline makes no difference
			poor, main := test.good, test.metric
			poor.values = map[string]float64{}
			for name, v := range test.good.values {
				poor.values[name] = v
			}
			poor.values[main] = test.bad.values[main]
			// The rest of a latency is waiting, and a flow's limit appears in its rate.
			if test.rule != "waiting" && test.rule != "flow-limit" {
				check(test.good, poor, Contradicted)
			}
			bare := func(s side) side { return side{values: map[string]float64{main: s.values[main]}} }
			check(bare(test.good), bare(test.bad), NotObservable)
		})
	}
}

// TestLocal checks the candidates of a case that uses only a node's CPUs and memory: nothing about packets, and no end
// of a path is named.
func TestLocal(t *testing.T) {
	of := func(rate, others, stolen, throttled float64, more ...result.Fact) side {
		return side{target: more, values: map[string]float64{metric.Rate: rate, metric.CPUOthers: others,
			metric.CPUSteal: stolen, metric.OfCounter(metric.CPUThrottled): throttled}}
	}
	for _, test := range []struct {
		worse    side
		rule     string // supported
		evidence string
	}{
		{of(3e6, 0.3, 0, 0), "starved", "share of the time in which other programs had the CPUs 30.1 % instead of 0 %"},
		{of(3e6, 0, 0.3, 0), "steal", "stolen 30.1 % instead of 0 %"},
		{of(3e6, 0, 0, 10), "throttling", "throttled periods per second 10"},
		{of(3e6, 0.01, 0, 0), "", ""},
		{of(3e6, 0, 0, 0, facts("cpu-model", "AMD EPYC 7763")...), "cpu-model",
			"AMD EPYC 7763 instead of Intel Xeon 8370C"},
	} {
		r := experiment(metric.Rate, of(4e6, 0, 0, 0, facts("cpu-model", "Intel Xeon 8370C")...), test.worse)
		r.Experiment.Cases[0].Load.Local = true
		var names, supported, evidence []string
		for _, c := range explained(t, r)[0].Causes {
			names = append(names, c.Rule)
			if c.State == Supported {
				supported, evidence = append(supported, c.Rule), c.Evidence
			}
		}
		slices.Sort(names)
		if !slices.Equal(names, []string{"confidential-vm", "cpu-model", "starved", "steal", "throttling"}) {
			t.Errorf("candidates %q", names)
		}
		if strings.Join(supported, " ") != test.rule || !strings.HasPrefix(strings.Join(evidence, "; "), test.evidence) ||
			strings.Contains(strings.Join(evidence, "; "), "client") {
			t.Errorf("%s: %q, because of %q", test.rule, supported, evidence)
		}
	}
}

// TestLayersShare checks the share of CPU time in a latency, block by block.
func TestLayersShare(t *testing.T) {
	list := explained(t, experiment(metric.P50,
		side{values: map[string]float64{metric.P50: 20e-6, metric.OfLayer(metric.CPUPerOp, "tcp"): 18e-6}},
		side{values: map[string]float64{metric.P50: 30e-6, metric.OfLayer(metric.CPUPerOp, "tcp"): 18e-6,
			metric.OfLayer(metric.CPUPerOp, "netfilter"): 5e-6}}))
	first := list[0].Causes[0]
	if first.Share == nil || first.Share.Estimate < 0.48 || first.Share.Estimate > 0.52 {
		t.Errorf("%+v", first)
	}
	if !strings.Contains(first.Evidence[0], "netfilter +5.0") || strings.Contains(first.Evidence[0], "tcp") {
		t.Error(first.Evidence)
	}
}

// TestBusyMachine checks that constant CPU time of other programs is not part of an operation, although longer
// operations contain more of it.
func TestBusyMachine(t *testing.T) {
	const busy = 0.5 // CPUs
	of := func(latency float64) side {
		return side{values: map[string]float64{metric.P50: latency, metric.Rate: 1 / latency,
			metric.OfLayer(metric.CPUPerOp, "tcp"): 15e-6, metric.OfLayer(metric.CPUPerOp, metric.Programs): busy * latency}}
	}
	list := explained(t, experiment(metric.P50, of(20e-6), of(300e-6)))[0]
	if causes := list.Supported(); len(causes) != 1 || causes[0].Rule != "waiting" {
		t.Errorf("%+v", causes)
	}
}

// TestTrial checks that a plan has the two targets and the better one with each factor, and that results give the
// effect of each factor.
func TestTrial(t *testing.T) {
	values := func(v float64) side { return side{values: map[string]float64{metric.Throughput: v, metric.MSS: 1448}} }
	fast, slow := values(10e9), values(5e9)
	fast.target, slow.target = facts("underlay-rate", "unlimited"), facts("underlay-rate", "5.5 Gbit/s")
	slow.values[metric.MSS] = 1388
	r := experiment(metric.Throughput, fast, slow)
	r.Experiment.Cases[0].Workload = "tcp-stream"
	r.Experiment.Targets[0].Spec, r.Experiment.Targets[1].Spec = result.SpecOf("lab:native"),
		result.SpecOf("lab:native?rate=5.5Gbit/s")
	trial, ok := NewConfirmationPlan(explained(t, r)[0], r.Experiment)
	const limited = "lab:native?label=base with rate=5.5Gbit/s&rate=5.5Gbit/s"
	if want := []string{"lab:native", "lab:native?rate=5.5Gbit/s", limited}; !ok || !slices.Equal(trial.Targets, want) ||
		!slices.Equal(trial.Cases, []string{"path/load", "path/load:mss=1406"}) {
		t.Fatalf("%+v", trial)
	}
	if trial.Matches(r.Experiment) {
		t.Error("the experiment is taken for its own trial")
	}
	for _, run := range slices.Clone(r.Runs) {
		if run.Target != "base" {
			continue
		}
		arm := func(name, target string, share float64) {
			again := run
			v, _ := run.Value(metric.Throughput)
			again.Case, again.Target = name, target
			again.Values = []result.Value{result.NewValue(metric.Named(metric.Throughput), v.Number*share)}
			r.Runs = append(r.Runs, again)
		}
		arm("path/load:mss=1406", "base", 0.9)
		arm("path/load", "base with rate=5.5Gbit/s", 0.5)
	}
	list := trial.Confirm(r, metric.Throughput)
	if len(list) != 2 || list[0].Factor != "rate=5.5Gbit/s" || list[1].Factor != "mss=1406" ||
		math.Abs(float64(list[0].Part)+0.5) > 0.01 || math.Abs(float64(list[1].Part)+0.1) > 0.01 ||
		list[1].Share == nil || !strings.Contains(list[1].Sentence, "are smaller packets (mss=1406)") {
		t.Errorf("%+v", list)
	}
	if _, ok := NewConfirmationPlan(Explanation{better: "base", worse: "other"}, r.Experiment); ok {
		t.Error("a trial of nothing")
	}
}

// TestAlone checks that a single target's loss against its bound is explained, and that no loss is not.
func TestAlone(t *testing.T) {
	node := map[string]float64{metric.P50: 20e-6, metric.OfLayer(metric.CPUPerOp, "tcp"): 15e-6}
	pod := map[string]float64{metric.P50: 30e-6, metric.OfLayer(metric.CPUPerOp, "tcp"): 15e-6,
		metric.OfLayer(metric.CPUPerOp, "veth"): 9e-6}
	for _, test := range []struct {
		pod  map[string]float64
		want string // in the sentence
	}{{pod, "veth +9.0"}, {node, ""}} {
		r := experiment(metric.P50, side{values: node}, side{values: test.pod})
		r.Experiment.Targets = r.Experiment.Targets[:1]
		r.Experiment.Cases[0].Bound = "node/load"
		r.Experiment.Cases = append(r.Experiment.Cases,
			result.Case{Name: "node/load", Metric: metric.P50, Role: result.Exploratory})
		for i := range r.Runs {
			if r.Runs[i].Target == "base" {
				r.Runs[i].Case = "node/load"
			}
			r.Runs[i].Target = "base"
		}
		list := Explain(r, compare.Comparison{})
		switch {
		case test.want == "" && len(list) > 0:
			t.Errorf("%+v", list)
		case test.want != "" && (len(list) != 1 || !strings.Contains(list[0].Sentence, test.want) ||
			list[0].Baseline != "node/load"):
			t.Errorf("%+v", list)
		}
	}
}

// TestNothingToExplain checks that equal targets have no explanation, and that missing data give no cause.
func TestNothingToExplain(t *testing.T) {
	same := side{values: map[string]float64{metric.Throughput: 10e9}}
	if list := explained(t, experiment(metric.Throughput, same, same)); len(list) > 0 {
		t.Errorf("%+v", list)
	}
	slow := side{values: map[string]float64{metric.Throughput: 8e9}}
	list := explained(t, experiment(metric.Throughput, same, slow))
	if len(list) != 1 || !strings.HasPrefix(list[0].Sentence, "No cause found") ||
		!strings.HasSuffix(list[0].Sentence, "of them cannot be observed here.") {
		t.Errorf("%+v", list)
	}
}

// TestPage checks that the documentation has every rule.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/explain.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rules {
		if !strings.Contains(string(page), fmt.Sprintf("| `%s` | %s |", r.name, r.cause)) {
			t.Errorf("docs/explain.md has no %s: %s", r.name, r.cause)
		}
		if r.remedy == "" || r.source == "" {
			t.Errorf("%s has no remedy or no source", r.name)
		}
	}
}
