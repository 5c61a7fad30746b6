package main

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/knotmeter/knotmeter/internal/explain"
)

// A fault is a known cause of a difference, an option of one target of random strength, or a decoy: an option that
// differs and does nothing here.
type fault struct {
	name   string
	on     string                  // target that it is put into; empty: lab:native
	base   string                  // options of both targets
	harmed func(*rand.Rand) string // returns the target with the fault
	path   string                  // name of the case
	shown  evidenceKind
	rules  []string // rules of explain that name the fault; none: it is a decoy
	decoys []string // rules that name what differs besides, and does no harm
}

// An evidenceKind is what shows a fault, besides the option itself.
type evidenceKind string

// The kinds, in the order of the page.
const (
	byCounters evidenceKind = "counters and limits of the kernel"
	byLayers   evidenceKind = "CPU time by layer"
	byTrial    evidenceKind = "a trial"
)

// logUniform returns a random number from lo to hi, of which each octave is equally likely.
func logUniform(r *rand.Rand, lo, hi float64) float64 {
	return lo * math.Exp(r.Float64()*math.Log(hi/lo))
}

// withOption returns a function that returns a target with a random integer from lo to hi in an option.
func withOption(format string, lo, hi float64) func(*rand.Rand) string {
	return func(r *rand.Rand) string { return "lab:native?" + fmt.Sprintf(format, int(logUniform(r, lo, hi))) }
}

func fixed(target string) func(*rand.Rand) string { return func(*rand.Rand) string { return target } }

const (
	streamCase  = "pod-pod/other/tcp-stream"
	requestCase = "pod-pod/other/tcp-rr"
	connectCase = "pod-pod/other/tcp-crr"
	serviceCase = "pod-svc/other/tcp-crr"
	sortCase    = "compute/sort"
)

// segmentOptions disable offloads, which pass 64 KiB through the lab at once: packet sizes matter only without them.
const segmentOptions = "mtu=9000&offloads=off"

var faults = slices.Concat(knownFaults, heldOutFaults, decoys)

var knownFaults = []fault{
	{name: "rate limit", path: streamCase, shown: byCounters, harmed: withOption("rate=%dMbit/s", 50, 2000),
		rules: []string{"rate-limit"}},
	{name: "loss", path: streamCase, shown: byCounters, base: "congestion=reno", rules: []string{"retransmissions"},
		harmed: func(r *rand.Rand) string { return fmt.Sprintf("lab:native?loss=%.2f%%", logUniform(r, 0.2, 5)) }},
	{name: "offloads off", path: streamCase, shown: byLayers, harmed: fixed("lab:native?offloads=off"),
		rules: []string{"offloads"}},
	{name: "small buffers", path: streamCase, shown: byCounters, harmed: withOption("buffer=%dKiB", 8, 64),
		rules: []string{"receiver-window", "send-buffer", "window"}},
	{name: "rules, requests", path: requestCase, shown: byLayers, harmed: withOption("rules=%d", 300, 5000),
		rules: []string{"packet-filter"}},
	{name: "rules, transfer", path: streamCase, shown: byLayers, harmed: withOption("rules=%d", 500, 5000),
		rules: []string{"packet-filter"}},
	{name: "delay", path: requestCase, shown: byLayers, base: "delay=0ms", harmed: withOption("delay=%dus", 100, 5000),
		rules: []string{"waiting"}},
	{name: "one CPU", path: streamCase, shown: byTrial, harmed: fixed("lab:native?cpus=one"), rules: []string{"one-cpu"}},
	{name: "VXLAN", path: requestCase, shown: byLayers, harmed: fixed("lab:vxlan?"), rules: []string{"encapsulation"}},
	{name: "IP-in-IP", path: requestCase, shown: byLayers, harmed: fixed("lab:ipip?"), rules: []string{"encapsulation"}},
	{name: "WireGuard", path: requestCase, shown: byLayers, harmed: fixed("lab:native+wireguard?"),
		rules: []string{"encryption"}},
	{name: "proxies", path: requestCase, shown: byLayers, harmed: fixed("lab:native+hbone?"), rules: []string{"proxy"}},
	{name: "CPU quota", on: "local:", path: sortCase, shown: byCounters, rules: []string{"throttling"},
		harmed: func(r *rand.Rand) string { return fmt.Sprintf("local:?cpu-limit=%dm", int(logUniform(r, 300, 900))) }},
	{name: "small pod MTU", path: streamCase, shown: byLayers, base: segmentOptions,
		harmed: withOption("pod-mtu=%d", 1280, 4000), rules: []string{"smaller-segments"}},
	{name: "congestion control", path: streamCase, shown: byTrial, base: "congestion=bbr&loss=0.5%&delay=2ms",
		harmed: fixed("lab:native?congestion=reno"), rules: []string{"congestion-control"}},
	{name: "rules next to a better congestion control", path: streamCase, shown: byLayers,
		harmed: withOption("congestion=reno&rules=%d", 1000, 6000), rules: []string{"packet-filter"},
		decoys: []string{"congestion-control"}},
}

// heldOutFaults lists kinds of faults that no rule was tuned to. They stay out of experiments while rules are made.
var heldOutFaults = []fault{
	{name: "IPsec", path: requestCase, shown: byLayers, harmed: fixed("lab:native+ipsec?"), rules: []string{"encryption"}},
	{name: "proxies, connections", path: connectCase, shown: byLayers, harmed: fixed("lab:native+hbone?"),
		rules: []string{"proxy"}},
	{name: "VXLAN in WireGuard", path: connectCase, shown: byLayers, on: "lab:vxlan",
		harmed: fixed("lab:vxlan+wireguard?"), rules: []string{"encryption"}},
	{name: "rules, connections to a Service", path: serviceCase, shown: byLayers,
		harmed: withOption("rules=%d", 1000, 8000), rules: []string{"packet-filter"}},
	{name: "rate limit, connections", path: connectCase, shown: byCounters, harmed: withOption("rate=%dMbit/s", 1, 4),
		rules: []string{"rate-limit", "queue-drops"}},
	{name: "loss, connections", path: connectCase, shown: byCounters, rules: []string{"connection-retries", "waiting"},
		harmed: func(r *rand.Rand) string { return fmt.Sprintf("lab:native?loss=%.2f%%", logUniform(r, 2, 10)) }},
	{name: "delay next to larger packets", path: requestCase, shown: byLayers, base: "delay=0ms",
		harmed: withOption("mtu=9000&delay=%dus", 200, 5000), rules: []string{"waiting"},
		decoys: []string{"smaller-segments", "mtu-too-large"}},
}

// decoys lists settings that differ and do nothing to the case.
var decoys = []fault{
	{name: "congestion control, undisturbed requests", path: requestCase, harmed: fixed("lab:native?congestion=reno"),
		decoys: []string{"congestion-control"}},
	{name: "small pod MTU, small requests", path: requestCase, harmed: withOption("pod-mtu=%d", 1280, 1450),
		decoys: []string{"smaller-segments"}},
	{name: "offloads off, small requests", path: requestCase, harmed: fixed("lab:native?offloads=off"),
		decoys: []string{"offloads"}},
	{name: "rate limit out of reach", path: requestCase, harmed: withOption("rate=%dGbit/s", 5, 50),
		decoys: []string{"rate-limit"}},
	{name: "large buffers", path: requestCase, harmed: withOption("buffer=%dMiB", 2, 16),
		decoys: []string{"receiver-window", "send-buffer", "window"}},
	{name: "VXLAN, within a node", path: "pod-pod/same/tcp-rr", harmed: fixed("lab:vxlan?"),
		decoys: []string{"encapsulation"}},
	{name: "WireGuard, between nodes", path: "node-node/tcp-rr", harmed: fixed("lab:native+wireguard?"),
		decoys: []string{"encryption"}},
	{name: "Services by eBPF, without a Service", path: requestCase, harmed: fixed("lab:native?services=ebpf"),
		decoys: []string{"ebpf-programs", "packet-filter"}},
}

// noFault is the fault in A/A experiments, whose targets do not differ.
const noFault = "nothing (A/A)"

// A faultExperiment is a line of the log: one experiment with its outcome.
type faultExperiment struct {
	Seed    uint64   `json:"seed"`
	Rules   string   `json:"rules,omitempty"` // identifier of the rules that judged
	Fault   string   `json:"fault"`
	HeldOut bool     `json:"held_out,omitempty"`
	Args    []string `json:"args"`
	Version string   `json:"version"`
	Seconds float64  `json:"seconds"`
	Missing bool     `json:"missing,omitempty"` // no primary comparison
	Reason  string   `json:"reason,omitempty"`  // why it is missing
	Decided bool     `json:"decided"`           // a primary verdict is different
	Worse   bool     `json:"worse"`             // and the target with the fault is worse
	Causes  []string `json:"causes"`            // rules of the supported causes, in order
	Wanted  []string `json:"wanted,omitempty"`  // rules that name the fault
	Decoys  []string `json:"decoys,omitempty"`  // rules that would be wrong
}

// isDecoy reports whether the targets differ in nothing that harms.
func (t faultExperiment) isDecoy() bool { return t.Fault != noFault && len(t.Wanted) == 0 }

// isExplainable reports whether there is a difference to explain: a worse target with the fault, or any where no fault
// was put in.
func (t faultExperiment) isExplainable() bool { return t.Decided && (t.Worse || len(t.Wanted) == 0) }

// haveOneOf reports whether one of the rules supports one of the causes.
func haveOneOf(causes, rules []string) bool {
	return slices.ContainsFunc(causes, func(c string) bool { return slices.Contains(rules, c) })
}

// firstCause returns the first cause, or why there is none.
func (t faultExperiment) firstCause() string {
	switch {
	case t.Missing:
		return "not measured"
	case !t.Decided:
		return "not different"
	case !t.isExplainable():
		return "better"
	case len(t.Causes) == 0:
		return "no cause"
	}
	return t.Causes[0]
}

// kindCycle has the kinds of ten experiments: K has a known fault, H a held-out one, D a decoy, A nothing (A/A).
const kindCycle = "KDAKHKADHK"

// planExperiment returns the experiment of a seed, with its fault if there is one, and the arguments of run.
func planExperiment(seed uint64) (faultExperiment, []string) {
	r := rand.New(rand.NewPCG(seed, 16))
	t := faultExperiment{Seed: seed, Fault: noFault}
	targets := []string{"lab:native", "lab:native?label=harmed"}
	suite, cases := "network", []string{streamCase, requestCase}
	kinds := map[byte][]fault{'K': knownFaults, 'H': heldOutFaults, 'D': decoys}
	if letter := kindCycle[seed%uint64(len(kindCycle))]; letter != 'A' {
		f := kinds[letter][r.IntN(len(kinds[letter]))]
		t.HeldOut = letter == 'H'
		t.Fault, t.Wanted, t.Decoys, cases = f.name, f.rules, f.decoys, []string{f.path}
		base := cmp.Or(f.on, "lab:native")
		targets = []string{withOptions(base, f.base), withOptions(f.harmed(r), f.base, "label=harmed")}
		if strings.HasPrefix(f.path, "compute/") {
			suite = "compute:quick"
		}
	}
	args := []string{"--target", targets[0], "--target", targets[1], "--suite", suite, "--primary", "*",
		"--blocks", "8", "--duration", "200ms", "--warmup", "50ms", "--explain", "--yes", "--seed", fmt.Sprint(seed)}
	for _, c := range cases {
		args = append(args, "--case", c)
	}
	t.Args = args
	return t, args
}

// withOptions adds options to a target, except those that it already has.
func withOptions(target string, more ...string) string {
	spec, list, _ := strings.Cut(target, "?")
	options := strings.FieldsFunc(list, func(r rune) bool { return r == '&' })
	for _, text := range more {
		for o := range strings.SplitSeq(text, "&") {
			name, _, _ := strings.Cut(o, "=")
			present := slices.ContainsFunc(options, func(o string) bool { return strings.HasPrefix(o, name+"=") })
			if o != "" && !present {
				options = append(options, o)
			}
		}
	}
	if len(options) == 0 {
		return spec
	}
	return spec + "?" + strings.Join(options, "&")
}

// A causesStudy holds the flags of the subcommand.
type causesStudy struct {
	binary, cluster, image string
	n                      uint64
	onCluster              bool
	ends                   time.Time // no experiment begins after it
	version                string
	done                   []faultExperiment // in the lab
	verdicts               []clusterVerdict
}

// Files of the study.
const (
	causesLog        = "bench/rates/causes.ndjson"
	clusterCausesLog = "bench/rates/causes-cluster.ndjson"
)

// benchCauses measures how often explain names the right cause first, and how often it names one where there is none:
// by experiments in the lab with known faults, decoys and A/A, or on pairs of clusters with real networks. Like rates,
// it keeps a log and continues after an interruption.
func benchCauses(ctx context.Context, args []string) (err error) {
	var s causesStudy
	set := flag.NewFlagSet("causes", flag.ContinueOnError)
	set.Uint64Var(&s.n, "n", 0, "experiments by the present rules, those in the log included; on clusters verdicts "+
		"(default: 240, or all pairs once)")
	set.StringVar(&s.binary, "binary", "bin/knotmeter", "the program")
	set.BoolVar(&s.onCluster, "cluster", false, "measure pairs of clusters")
	set.StringVar(&s.cluster, "clusters", "bin/cluster", "the program that makes clusters")
	set.StringVar(&s.image, "image", "bin/agent.tar", "the agent's image")
	minutes := set.Float64("minutes", math.Inf(1), "begin nothing after so many minutes")
	if err := set.Parse(args); err != nil {
		return err
	}
	s.ends = time.Now().Add(time.Duration(min(*minutes, 1e6) * float64(time.Minute)))
	if s.done, err = readLog[faultExperiment](causesLog); err != nil {
		return err
	}
	if s.verdicts, err = readLog[clusterVerdict](clusterCausesLog); err != nil {
		return err
	}
	version, err := output(knotmeter(ctx, s.binary, "version"))
	if err != nil {
		return err
	}
	s.version = strings.TrimSpace(string(version))
	measure := s.measureLab
	if s.onCluster {
		measure = s.measureClusters
	}
	if err := measure(ctx); err != nil {
		return err
	}
	return s.save()
}

// save writes the page.
func (s *causesStudy) save() error {
	return os.WriteFile(filepath.Join("docs", "evidence", "explain-accuracy.md"), causesPage(s.done, s.verdicts), 0o644)
}

// mayBegin reports whether another experiment may begin.
func (s *causesStudy) mayBegin(ctx context.Context) bool {
	return ctx.Err() == nil && time.Now().Before(s.ends)
}

// measureLab runs the experiments that the log lacks of the present rules.
func (s *causesStudy) measureLab(ctx context.Context) error {
	n := cmp.Or(s.n, 240)
	for seed := uint64(1); seed <= n && s.mayBegin(ctx); seed++ {
		has := func(t faultExperiment) bool { return t.Seed == seed && t.Rules == explain.Rules }
		if slices.ContainsFunc(s.done, has) {
			continue
		}
		t, err := runFaultExperiment(ctx, s.binary, seed)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("experiment %d (%s): %w", seed, t.Fault, err)
		}
		t.Version = s.version
		if err := appendLog(causesLog, t); err != nil {
			return err
		}
		s.done = append(s.done, t)
		fmt.Fprintf(os.Stderr, "%d of %d: %s: %s\n", seed, n, t.Fault, strings.Join(append([]string{t.firstCause()},
			t.Causes[min(1, len(t.Causes)):]...), ", "))
		if err := s.save(); err != nil {
			return err
		}
	}
	return nil
}

// runFaultExperiment runs one experiment with its trials, reads its outcome, and removes its results.
func runFaultExperiment(ctx context.Context, binary string, seed uint64) (faultExperiment, error) {
	t, args := planExperiment(seed)
	dir, err := os.MkdirTemp("", "knotmeter-causes")
	if err != nil {
		return t, err
	}
	defer os.RemoveAll(dir)
	began := time.Now()
	out, err := output(knotmeter(ctx, binary, slices.Concat([]string{"run"}, args,
		[]string{"--progress", "none", "-o", "json", "--out", filepath.Join(dir, "results")})...))
	if err != nil && (exitStatus(err) != runFailed || ctx.Err() != nil) {
		return t, err
	}
	t.Seconds = math.Round(time.Since(began).Seconds())
	if len(out) == 0 { // what cannot be measured here is counted, with its reason
		t.Rules, t.Missing, t.Reason = explain.Rules, true, lastLine(err.Error())
		return t, nil
	}
	return t, t.readOutcome(out)
}

// lastLine returns the last line of a text.
func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndex(text, "\n")+1:]
}

// An explained is what the JSON output of run has about verdicts and causes.
type explained struct {
	Rules       string
	Comparisons []comparison
	NotMeasured []struct{ Reason string } `json:"not_measured"`
	Causes      []struct {
		Case   string
		Causes []struct{ Rule, State string }
	}
}

// supported returns the rules that support a cause of a case's difference.
func (e explained) supported(name string) (rules []string) {
	for _, x := range e.Causes {
		for _, c := range x.Causes {
			if x.Case == name && c.State == "supported" {
				rules = append(rules, c.Rule)
			}
		}
	}
	return rules
}

// readOutcome reads the verdicts and causes of the primary comparisons from the JSON output of run.
func (t *faultExperiment) readOutcome(out []byte) error {
	var document explained
	if err := json.Unmarshal(out, &document); err != nil {
		return fmt.Errorf("the comparison: %w", err)
	}
	if document.Rules != explain.Rules {
		return fmt.Errorf("the program has the rules %q, and this command %q; build both of the same files",
			document.Rules, explain.Rules)
	}
	t.Rules, t.Missing = document.Rules, true
	for _, c := range document.Comparisons {
		if c.Role == "primary" {
			t.Missing = false
			t.Decided, t.Worse = t.Decided || c.different(), t.Worse || c.worse()
			t.Causes = append(t.Causes, document.supported(c.Case)...)
		}
	}
	if t.Missing && len(document.NotMeasured) > 0 {
		t.Reason = document.NotMeasured[0].Reason
	}
	return nil
}
