package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// A fault is a known cause of a difference: an option of one target, of random strength.
type fault struct {
	name    string
	on      string                  // target that it is put into; empty: lab:native
	base    string                  // options of both targets
	harmed  func(*rand.Rand) string // returns the target with the fault
	path    string                  // name of the case
	rules   []string                // rules of explain that name the fault
	heldOut bool                    // not used while the rules were developed
}

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
	sortCase    = "compute/sort"
)

// segmentOptions disable offloads, which pass 64 KiB through the lab at once: packet sizes matter only without them.
const segmentOptions = "mtu=9000&offloads=off"

var faults = []fault{
	{name: "rate limit", path: streamCase, harmed: withOption("rate=%dMbit/s", 50, 2000), rules: []string{"rate-limit"}},
	{name: "loss", path: streamCase, base: "congestion=reno", rules: []string{"retransmissions"},
		harmed: func(r *rand.Rand) string { return fmt.Sprintf("lab:native?loss=%.2f%%", logUniform(r, 0.2, 5)) }},
	{name: "offloads off", path: streamCase, harmed: fixed("lab:native?offloads=off"), rules: []string{"offloads"}},
	{name: "small buffers", path: streamCase, harmed: withOption("buffer=%dKiB", 8, 64),
		rules: []string{"receiver-window", "send-buffer", "window"}},
	{name: "rules, requests", path: requestCase, harmed: withOption("rules=%d", 300, 5000),
		rules: []string{"packet-filter"}},
	{name: "rules, transfer", path: streamCase, harmed: withOption("rules=%d", 500, 5000),
		rules: []string{"packet-filter"}},
	{name: "delay", path: requestCase, base: "delay=0ms", harmed: withOption("delay=%dus", 100, 5000),
		rules: []string{"waiting"}},
	{name: "one CPU", path: streamCase, harmed: fixed("lab:native?cpus=one"), rules: []string{"one-cpu"}},
	{name: "VXLAN", path: requestCase, harmed: fixed("lab:vxlan?"), rules: []string{"encapsulation"}},
	{name: "WireGuard", path: requestCase, harmed: fixed("lab:native+wireguard?"), rules: []string{"encryption"}},
	{name: "proxies", path: requestCase, harmed: fixed("lab:native+hbone?"), rules: []string{"proxy"}},
	{name: "CPU quota", on: "local:", path: sortCase, rules: []string{"throttling"},
		harmed: func(r *rand.Rand) string { return fmt.Sprintf("local:?cpu-limit=%dm", int(logUniform(r, 300, 900))) }},
	{name: "small pod MTU", path: streamCase, base: segmentOptions, harmed: withOption("pod-mtu=%d", 1280, 4000),
		rules: []string{"smaller-segments"}},
	{name: "congestion control", path: streamCase, base: "congestion=bbr&loss=0.5%&delay=2ms",
		harmed: fixed("lab:native?congestion=reno"),
		rules:  []string{"congestion-control"}},
	{name: "IP-in-IP", path: requestCase, harmed: fixed("lab:ipip?"), rules: []string{"encapsulation"}, heldOut: true},
	{name: "small underlay MTU", path: streamCase, base: "offloads=off", harmed: fixed("lab:native?mtu=1500"),
		rules: []string{"smaller-segments"}, heldOut: true},
	{name: "low rate limit", path: streamCase, harmed: withOption("rate=%dMbit/s", 5, 49), rules: []string{"rate-limit"},
		heldOut: true},
	{name: "many rules", path: requestCase, harmed: withOption("rules=%d", 6000, 15000), rules: []string{"packet-filter"},
		heldOut: true},
	{name: "long delay", path: requestCase, base: "delay=0ms", harmed: withOption("delay=%dms", 6, 20),
		rules: []string{"waiting"}, heldOut: true},
}

// noFault is the fault in A/A experiments, whose targets do not differ.
const noFault = "nothing (A/A)"

// A faultExperiment is a line of the log: one experiment with its outcome.
type faultExperiment struct {
	Seed    uint64   `json:"seed"`
	Fault   string   `json:"fault"`
	HeldOut bool     `json:"held_out,omitempty"`
	Args    []string `json:"args"`
	Version string   `json:"version"`
	Seconds float64  `json:"seconds"`
	Missing bool     `json:"missing,omitempty"` // no primary comparison
	Decided bool     `json:"decided"`           // a primary verdict is different
	Worse   bool     `json:"worse"`             // and the target with the fault is worse
	Causes  []string `json:"causes"`            // rules of the supported causes, in order
	Wanted  []string `json:"wanted,omitempty"`  // rules that name the fault
}

// isExplainable reports whether there is a difference to explain: a worse target with the fault, or any in A/A
// experiments.
func (t faultExperiment) isExplainable() bool { return t.Decided && (t.Worse || t.Fault == noFault) }

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

// kindCycle has the kinds of seven experiments: K has a known fault, H a held-out one, A none (A/A).
const kindCycle = "KKAKHKA"

// planExperiment returns the experiment of a seed, with its fault if there is one, and the arguments of run.
func planExperiment(seed uint64) (faultExperiment, []string) {
	r := rand.New(rand.NewPCG(seed, 16))
	t := faultExperiment{Seed: seed, Fault: noFault}
	targets := []string{"lab:native", "lab:native?label=harmed"}
	suite, cases := "network:quick", []string{streamCase, requestCase}
	if letter := kindCycle[seed%uint64(len(kindCycle))]; letter != 'A' {
		t.HeldOut = letter == 'H'
		kind := slices.DeleteFunc(slices.Clone(faults), func(f fault) bool { return f.heldOut != t.HeldOut })
		f := kind[r.IntN(len(kind))]
		t.Fault, t.Wanted, cases = f.name, f.rules, []string{f.path}
		base := cmp.Or(f.on, "lab:native")
		targets = []string{withOptions(base, f.base), withOptions(f.harmed(r), f.base, "label=harmed")}
		if strings.HasPrefix(f.path, "compute/") {
			suite = "compute:quick"
		}
	}
	args := []string{"--target", targets[0], "--target", targets[1], "--suite", suite, "--primary", "*",
		"--blocks", "8", "--duration", "200ms", "--warmup", "50ms", "--seed", fmt.Sprint(seed)}
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

// benchCauses measures how often explain names the right cause first, and how often it names one where there is none.
// It runs experiments in the lab with a known fault of random strength, and A/A experiments. Like rates, it keeps a log
// and continues after an interruption.
func benchCauses(ctx context.Context, args []string) error {
	set := flag.NewFlagSet("causes", flag.ContinueOnError)
	n := set.Uint64("n", 350, "experiments, those in the log included: of seven five have a fault")
	binary := set.String("binary", "bin/knotmeter", "the program")
	if err := set.Parse(args); err != nil {
		return err
	}
	log, page := filepath.Join("bench", "rates", "causes.ndjson"), filepath.Join("docs", "evidence", "explain-accuracy.md")
	done, err := readLog[faultExperiment](log)
	if err != nil {
		return err
	}
	version, err := output(knotmeter(ctx, *binary, "version"))
	if err != nil {
		return err
	}
	save := func() error { return os.WriteFile(page, causesPage(done), 0o644) }
	for seed := uint64(len(done)) + 1; seed <= *n && ctx.Err() == nil; seed++ {
		t, err := runFaultExperiment(ctx, *binary, seed)
		if ctx.Err() != nil {
			break
		}
		if err != nil {
			return fmt.Errorf("experiment %d (%s): %w", seed, t.Fault, err)
		}
		t.Version = strings.TrimSpace(string(version))
		if err := appendLog(log, t); err != nil {
			return err
		}
		done = append(done, t)
		fmt.Fprintf(os.Stderr, "%d of %d: %s: %s\n", seed, *n, t.Fault, strings.Join(append([]string{t.firstCause()},
			t.Causes[min(1, len(t.Causes)):]...), ", "))
		if err := save(); err != nil {
			return err
		}
	}
	return save()
}

// runFaultExperiment runs one experiment, reads its outcome, and removes its results.
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
	if err != nil && !(exitStatus(err) == runFailed && len(out) > 0) {
		return t, err
	}
	t.Seconds = math.Round(time.Since(began).Seconds())
	return t, t.readOutcome(out)
}

// readOutcome reads the verdicts and causes of the primary comparisons from the JSON output of run.
func (t *faultExperiment) readOutcome(out []byte) error {
	var document struct {
		Comparisons []comparison
		Causes      []struct {
			Case   string
			Causes []struct{ Rule, State string }
		}
	}
	if err := json.Unmarshal(out, &document); err != nil {
		return fmt.Errorf("the comparison: %w", err)
	}
	primary := 0
	for _, c := range document.Comparisons {
		if c.Role == "primary" {
			primary++
			t.Decided, t.Worse = t.Decided || c.different(), t.Worse || c.worse()
		}
	}
	t.Missing = primary == 0
	for _, x := range document.Causes {
		for _, c := range x.Causes {
			if strings.Contains(strings.Join(t.Args, " "), x.Case) && c.State == "supported" {
				t.Causes = append(t.Causes, c.Rule)
			}
		}
	}
	return nil
}

// A score counts the outcomes of experiments.
type score struct {
	all, decided, first, named int            // in first the right cause is first, in named it is among the causes
	others                     map[string]int // by first cause, if it is not the right one
}

// scoreOf returns the score of the experiments that which selects.
func scoreOf(done []faultExperiment, which func(faultExperiment) bool) score {
	s := score{others: map[string]int{}}
	for _, t := range done {
		if !which(t) {
			continue
		}
		s.all++
		wanted := func(rule string) bool { return slices.Contains(t.Wanted, rule) }
		if t.isExplainable() {
			s.decided++
		}
		if wanted(t.firstCause()) {
			s.first++
		} else {
			s.others[t.firstCause()]++
		}
		if t.isExplainable() && slices.ContainsFunc(t.Causes, wanted) {
			s.named++
		}
	}
	return s
}

// shareOrDash formats a part of a whole with its interval; a dash if the whole is 0.
func shareOrDash(part, whole int) string {
	if whole == 0 {
		return "–"
	}
	return strings.TrimSpace(formatShare(part, whole, ""))
}

const causesHead = `# How often the right cause comes first

Experiments in which the cause of a difference is known, since it was put there: both targets are
` + "`lab:native`, for a quota `local:`" + `, and one has an option more, of random strength. Eight blocks, runs of
200 ms. A cause is right if the rule is one that names the fault; it counts where it comes first among the supported
ones, and where the harmed target came out worse at all. Faults that were not looked at while the rules were made, and
other strengths, are apart.

` + "`make explain-accuracy`" + ` repeats it and goes on where it was; bench/rates/causes.ndjson has each experiment.

`

// causesPage returns the page about the experiments of a log, in Markdown.
func causesPage(done []faultExperiment) []byte {
	var b bytes.Buffer
	b.WriteString(causesHead)
	known := scoreOf(done, func(t faultExperiment) bool { return t.Fault != noFault && !t.HeldOut })
	held := scoreOf(done, func(t faultExperiment) bool { return t.HeldOut })
	none := scoreOf(done, func(t faultExperiment) bool { return t.Fault == noFault })
	named := 0
	for _, t := range done {
		if t.Fault == noFault && len(t.Causes) > 0 {
			named++
		}
	}
	w := tabwriter.NewWriter(&b, 0, 0, 1, ' ', 0)
	fmt.Fprintf(w, "| Experiments\t| Right cause first\t| Right cause named\t| Goal\t|\n|---\t|---\t|---\t|---\t|\n")
	fmt.Fprintf(w, "| known faults\t| %s\t| %s\t| at least 90 %%\t|\n", shareOrDash(known.first, known.decided),
		shareOrDash(known.named, known.decided))
	fmt.Fprintf(w, "| held-out faults\t| %s\t| %s\t| reported apart\t|\n", shareOrDash(held.first, held.decided),
		shareOrDash(held.named, held.decided))
	w.Flush()
	fmt.Fprintf(&b, "\nOf the A/A experiments, a cause was named in %s;\nat most 5 %% is the goal. "+
		"%d came out different.\n", shareOrDash(named, none.all), none.decided)
	b.WriteString("\n## By fault\n\n")
	fmt.Fprintf(w, "| Fault\t| Experiments\t| Worse\t| Right cause first\t| Otherwise first\t|\n")
	fmt.Fprintf(w, "|---\t|---\t|---\t|---\t|---\t|\n")
	for _, f := range faults {
		s := scoreOf(done, func(t faultExperiment) bool { return t.Fault == f.name })
		name := f.name
		if f.heldOut {
			name += " (held out)"
		}
		fmt.Fprintf(w, "| %s\t| %d\t| %d\t| %d\t| %s\t|\n", name, s.all, s.decided, s.first, formatCounts(s.others))
	}
	w.Flush()
	if len(done) > 0 {
		fmt.Fprintf(&b, "\n%d experiments of %.0f s on average, by %s.\n", len(done), meanSeconds(done),
			done[len(done)-1].Version)
	}
	b.WriteString(causesFoot)
	return b.Bytes()
}

const causesFoot = `
What is not injected, and why: the limit of the table of connections belongs to the whole machine, not to a lab's
namespaces. Of a short backlog single connections are a second late, which a median does not show: the kernel's counter
does. A program that takes CPU time would take it from the unharmed target too.
`

func meanSeconds(done []faultExperiment) float64 {
	sum := 0.0
	for _, t := range done {
		sum += t.Seconds
	}
	return sum / float64(len(done))
}

// formatCounts formats counts by descending number, as in "retransmissions 3, no cause 1".
func formatCounts(counts map[string]int) string {
	names := slices.Collect(maps.Keys(counts))
	slices.SortFunc(names, func(a, b string) int {
		if counts[a] != counts[b] {
			return counts[b] - counts[a]
		}
		return strings.Compare(a, b)
	})
	for i, name := range names {
		names[i] = fmt.Sprintf("%s %d", name, counts[name])
	}
	return strings.Join(names, ", ")
}
