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
		{"proxy", metric.Throughput, side{values: fast, facts: facts("underlay-header", "bare packets")},
			side{values: slow, facts: facts("underlay-header", "tcp:15008 tls")}},
		{"proxy", metric.Throughput, side{values: fast, target: facts("mesh", "none")},
			side{values: slow, facts: facts(result.MeshIntercepted, "yes"), target: facts("mesh", "istio")}},
		{"encryption", metric.Throughput, side{values: fast, target: facts("encryption", "none")},
			side{values: slow, target: facts("encryption", "wireguard")}},
		{"encapsulation", metric.Throughput, side{values: fast, facts: facts("underlay-header", "bare packets")},
			side{values: slow, facts: facts("underlay-header", "ipv4 udp:8472 vxlan:1 ethernet")}},
		{"encapsulation", metric.Throughput, side{values: fast, target: facts("encapsulation", "none")},
			side{values: slow, target: facts("encapsulation", "vxlan")}},
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
			found := Supported
			if slices.Contains(settings, test.rule) {
				found = Differs
			}
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
				if want == found && !strings.Contains(list[0].Sentence, list[0].Causes[0].Cause) {
					t.Error(list[0].Sentence)
				}
			}
			check(test.good, test.bad, found)
			check(test.bad, test.good, found) // which of them is the baseline makes no difference
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

// settings lists the rules about settings, which support nothing until something shows their harm.
var settings = []string{"confidential-vm", "cpu-model", "one-cpu", "mtu-too-large", "proxy", "encryption",
	"encapsulation", "offloads", "smaller-segments", "congestion-control", "legacy-routing"}

// TestHarm checks that a setting that differs is a cause only together with a measurement that shows its effect, and
// not if CPU time that costs more limits nothing.
func TestHarm(t *testing.T) {
	layer := func(name string) string { return metric.OfLayer(metric.CPUPerGB, name) }
	base := map[string]float64{metric.Throughput: 10e9, metric.CPUBusiest: 0.97, metric.CPUAgents: 1.8, metric.MSS: 8948,
		metric.Retransmits: 0, layer("tcp"): 0.4}
	for _, test := range []struct {
		rule      string
		good, bad []result.Fact // of the targets and of the runs
		shown     map[string]float64
	}{
		{"confidential-vm", facts(result.ConfidentialVM, result.NoConfidentialSign),
			facts(result.ConfidentialVM, "CPU flag tdx_guest"), map[string]float64{layer("bounce"): 0.1}},
		{"one-cpu", facts("cpu.client", "0", "cpu.server", "1", "cpu.shared", "true"),
			facts("cpu.client", "0", "cpu.server", "0", "cpu.shared", "true"), map[string]float64{metric.CPUAgents: 0.9}},
		{"mtu-too-large", facts("tunnel-mtu", "fits"), facts("tunnel-mtu", "does not fit"),
			map[string]float64{metric.Retransmits: 5e5}},
		{"proxy", facts("proxy", "none"), facts("proxy", "hbone"), map[string]float64{layer("user"): 0.2}},
		{"encryption", facts("encryption", "none"), facts("encryption", "wireguard"),
			map[string]float64{layer("crypto"): 0.2}},
		{"encryption", facts("encryption", "none"), facts("encryption", "wireguard", "wireguard", "wireguard-go"),
			map[string]float64{layer(metric.Programs): 0.9}},
		{"encapsulation", facts("encapsulation", "none"), facts("encapsulation", "vxlan"),
			map[string]float64{layer("vxlan"): 0.1}},
		{"encapsulation", facts("encapsulation", "none"), facts("encapsulation", "ipip", "ipip", "eBPF"),
			map[string]float64{layer("ebpf"): 0.1}},
		{"offloads", facts("offloads.client", "tso gso"), facts("offloads.client", "none"),
			map[string]float64{layer("ip"): 0.1, layer("softirq"): 0.1}},
		{"smaller-segments", nil, nil, map[string]float64{metric.MSS: 1448, layer("ip"): 0.1, layer("softirq"): 0.1}},
		{"legacy-routing", facts("cni-settings", "routing-mode=native"),
			facts("cni-settings", "enable-host-legacy-routing=true"), map[string]float64{layer("netfilter"): 0.1}},
	} {
		state := func(more map[string]float64, busiest float64) State {
			values := maps.Clone(base)
			maps.Copy(values, more)
			values[metric.Throughput], values[metric.CPUBusiest] = 8e9, busiest
			r := experiment(metric.Throughput, side{values: base, facts: test.good, target: test.good},
				side{values: values, facts: test.bad, target: test.bad})
			list := explained(t, r)[0].Causes
			return list[slices.IndexFunc(list, func(c Cause) bool { return c.Rule == test.rule })].State
		}
		unshown := map[string]float64{}
		if test.rule == "smaller-segments" {
			unshown[metric.MSS] = 1448
		}
		if got := state(unshown, 0.97); got != Differs {
			t.Errorf("%s that nothing shows: %s", test.rule, got)
		}
		if got := state(test.shown, 0.97); got != Supported {
			t.Errorf("%s with %v: %s", test.rule, test.shown, got)
		}
		_, programs := test.shown[layer(metric.Programs)]
		if got := state(test.shown, 0.3); got != Differs && test.rule != "mtu-too-large" && !programs {
			t.Errorf("%s with %v on an idle CPU: %s", test.rule, test.shown, got)
		}
	}
}

// TestHelpfulSetting checks that a setting that helps is no cause of what packet rules cost, and whose causes they are.
func TestHelpfulSetting(t *testing.T) {
	layer := func(name string) string { return metric.OfLayer(metric.CPUPerGB, name) }
	x := explained(t, experiment(metric.Throughput,
		side{values: map[string]float64{metric.Throughput: 1e9, metric.CPUBusiest: 0.97, layer("tcp"): 0.5,
			layer("netfilter"): 5}, facts: facts("tcp.congestion", "reno")},
		side{values: map[string]float64{metric.Throughput: 9e9, metric.CPUBusiest: 0.97, layer("tcp"): 0.5},
			facts: facts("tcp.congestion", "bbr")}))[0]
	if x.Worse != "base" || x.Better != "other" || x.Target != "other" ||
		!strings.HasPrefix(x.Sentence, "base has more work in the packet filter") ||
		strings.Contains(x.Sentence, "congestion") {
		t.Errorf("%+v", x)
	}
	if d := x.Differing(); len(d) != 1 || d[0].Rule != "congestion-control" || d[0].Remedy != "" {
		t.Errorf("%+v", d)
	}
}

// TestPathOfProperty checks that what a target does with packets between pods of two nodes is no cause on paths without
// such packets.
func TestPathOfProperty(t *testing.T) {
	for _, test := range []struct {
		path         result.Path
		better       string // encapsulation; the worse target has vxlan
		worse        string
		want         State
		onTheWay     string // encapsulation captured on the path of the worse target
		wantCaptured State
	}{
		{result.PodPodOther, "none", "vxlan", Differs, "none", Contradicted},
		{result.PodSvcOther, "none", "vxlan", Differs, "vxlan", Differs},
		{result.PodPodSame, "none", "vxlan", Contradicted, "none", Contradicted},
		{result.NodeNode, "none", "vxlan", Contradicted, "none", Contradicted},
		{result.PodNodeOther, "none", "vxlan", NotObservable, "vxlan", Differs},
		{"app", "none", "vxlan", NotObservable, "none", Contradicted},
		{result.PodPodOther, "none", "vxlan-cross-subnet", NotObservable, "vxlan", Differs},
		{result.PodPodOther, "none", "none", Contradicted, "none", Contradicted},
		{result.PodPodOther, "none", "none | vxlan", NotObservable, "vxlan", Differs},
		{result.PodPodOther, "none", result.Unknown, NotObservable, "vxlan", Differs},
	} {
		for _, capture := range []bool{false, true} {
			good := side{values: map[string]float64{metric.Throughput: 10e9}, target: facts("encapsulation", test.better)}
			bad := side{values: map[string]float64{metric.Throughput: 8e9}, target: facts("encapsulation", test.worse)}
			want := test.want
			if capture {
				good.facts, bad.facts = facts("encapsulation", "none"), facts("encapsulation", test.onTheWay)
				want = test.wantCaptured
			}
			r := experiment(metric.Throughput, good, bad)
			r.Experiment.Cases[0].Path = test.path
			list := explained(t, r)[0].Causes
			c := list[slices.IndexFunc(list, func(c Cause) bool { return c.Rule == "encapsulation" })]
			if c.State != want || len(c.Evidence) == 0 {
				t.Errorf("%+v, captured %v: %+v, want %s", test, capture, c, want)
			}
		}
	}
}

// TestProfileHint checks that differences on clusters without samples say how to see the kernel's layers, and that
// others do not.
func TestProfileHint(t *testing.T) {
	const kube, lab = "kube:one", "lab:native"
	layer := metric.OfLayer(metric.CPUPerOp, "netfilter")
	for _, test := range []struct {
		spec   string
		target []result.Fact
		values map[string]float64
		want   bool
	}{
		{kube, nil, nil, true},
		{lab, nil, nil, false},
		{kube, facts("profile", "pods are privileged and sample their nodes"), nil, false},
		{kube, nil, map[string]float64{layer: 5e-6}, false},
	} {
		of := func(latency float64, more map[string]float64) side {
			values := map[string]float64{metric.P50: latency}
			maps.Copy(values, more)
			return side{values: values, target: test.target}
		}
		r := experiment(metric.P50, of(20e-6, test.values), of(30e-6, test.values))
		for i := range r.Experiment.Targets {
			r.Experiment.Targets[i].Spec = result.SpecOf(test.spec)
		}
		x := explained(t, r)[0]
		if got := strings.Contains(x.Sentence, "profile=yes"); got != test.want || got != (x.Hint != "") {
			t.Errorf("%s, %v: %s", test.spec, test.target, x.Sentence)
		}
	}
}

// TestTrialDecides checks that a trial supports a setting whose effect nothing showed, and contradicts a cause whose
// factor does no harm.
func TestTrialDecides(t *testing.T) {
	fast := side{values: map[string]float64{metric.Throughput: 10e9}, facts: facts("tcp.congestion", "bbr")}
	slow := side{values: map[string]float64{metric.Throughput: 5e9}, facts: facts("tcp.congestion", "reno")}
	r := experiment(metric.Throughput, fast, slow)
	r.Experiment.Cases[0].Workload = "tcp-stream"
	for _, test := range []struct {
		with float64 // throughput of the better target with the worse one's setting
		want State
		text string
	}{
		{6e9, Supported, "other has another congestion control"},
		{11.3e9, Contradicted, "No cause found"},
		{9.9e9, Contradicted, "No cause found"},
	} {
		x := explained(t, r)[0]
		if d := x.Differing(); len(d) != 1 || !strings.HasPrefix(x.Sentence, "No cause is shown: other has another") {
			t.Fatalf("%+v", x)
		}
		plan, ok := NewConfirmationPlan(x, r.Experiment)
		if !ok || !slices.Contains(plan.Cases, "path/load:congestion=reno") {
			t.Fatalf("%+v", plan)
		}
		runs := slices.Clone(r.Runs)
		for _, run := range r.Runs {
			if v, _ := run.Value(metric.Throughput); run.Target == "base" {
				run.Case = "path/load:congestion=reno"
				run.Values = []result.Value{result.NewValue(metric.Named(metric.Throughput), v.Number*test.with/10e9)}
				runs = append(runs, run)
			}
		}
		x.Decide(plan.Confirm(result.Results{Runs: runs}, metric.Throughput))
		c := x.Causes[slices.IndexFunc(x.Causes, func(c Cause) bool { return c.Rule == "congestion-control" })]
		if c.State != test.want || !strings.Contains(c.Evidence[len(c.Evidence)-1], "by a trial: ") ||
			(c.Remedy != "") != (test.want == Supported) || !strings.HasPrefix(x.Sentence, test.text) {
			t.Errorf("%g: %+v; %s", test.with, c, x.Sentence)
		}
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
		{of(3e6, 0, 0, 0, facts("cpu-model", "AMD EPYC 7763")...), "", ""},
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
	if _, ok := NewConfirmationPlan(Explanation{Better: "base", Worse: "other"}, r.Experiment); ok {
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
