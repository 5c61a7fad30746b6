package main

import (
	"bytes"
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
	"text/tabwriter"
	"time"
)

// A fault is one cause that is known, since it was put there: an option of a lab target, of random strength.
type fault struct {
	name    string
	base    string                  // options of both targets
	harmed  func(*rand.Rand) string // options of the other one, or another datapath
	path    string                  // case
	rules   []string                // of explain that name it
	heldOut bool                    // was not looked at while the rules were made
}

// between draws a strength, as likely in each octave.
func between(r *rand.Rand, least, most float64) float64 {
	return least * math.Exp(r.Float64()*math.Log(most/least))
}

func option(format string, least, most float64) func(*rand.Rand) string {
	return func(r *rand.Rand) string { return "lab:native?" + fmt.Sprintf(format, int(between(r, least, most))) }
}

func exactly(target string) func(*rand.Rand) string { return func(*rand.Rand) string { return target } }

const (
	transfer = "pod-pod/other/tcp-stream"
	request  = "pod-pod/other/tcp-rr"
)

// Offloads carry 64 KiB through the lab at once, whatever the MTU: only without them does a packet's size matter.
const bySegment = "mtu=9000&offloads=off"

var faults = []fault{
	{name: "rate limit", path: transfer, harmed: option("rate=%dMbit/s", 50, 2000), rules: []string{"rate-limit"}},
	{name: "loss", path: transfer, base: "congestion=reno", rules: []string{"retransmissions"},
		harmed: func(r *rand.Rand) string { return fmt.Sprintf("lab:native?loss=%.2f%%", between(r, 0.2, 5)) }},
	{name: "offloads off", path: transfer, harmed: exactly("lab:native?offloads=off"), rules: []string{"offloads"}},
	{name: "small buffers", path: transfer, harmed: option("buffer=%dKiB", 8, 64),
		rules: []string{"receiver-window", "send-buffer", "window"}},
	{name: "rules, requests", path: request, harmed: option("rules=%d", 300, 5000), rules: []string{"packet-filter"}},
	{name: "rules, transfer", path: transfer, harmed: option("rules=%d", 500, 5000), rules: []string{"packet-filter"}},
	{name: "delay", path: request, base: "delay=0ms", harmed: option("delay=%dus", 100, 5000), rules: []string{"waiting"}},
	{name: "one CPU", path: transfer, harmed: exactly("lab:native?cpus=one"), rules: []string{"one-cpu"}},
	{name: "VXLAN", path: request, harmed: exactly("lab:vxlan?"), rules: []string{"encapsulation"}},
	{name: "WireGuard", path: request, harmed: exactly("lab:native+wireguard?"), rules: []string{"encryption"}},
	{name: "small pod MTU", path: transfer, base: bySegment, harmed: option("pod-mtu=%d", 1280, 4000),
		rules: []string{"smaller-segments"}},
	{name: "congestion control", path: transfer, base: "congestion=bbr&loss=0.5%&delay=2ms",
		harmed: exactly("lab:native?congestion=reno"),
		rules:  []string{"congestion-control"}},
	{name: "IP-in-IP", path: request, harmed: exactly("lab:ipip?"), rules: []string{"encapsulation"}, heldOut: true},
	{name: "small underlay MTU", path: transfer, base: "offloads=off", harmed: exactly("lab:native?mtu=1500"),
		rules: []string{"smaller-segments"}, heldOut: true},
	{name: "low rate limit", path: transfer, harmed: option("rate=%dMbit/s", 5, 49), rules: []string{"rate-limit"},
		heldOut: true},
	{name: "many rules", path: request, harmed: option("rules=%d", 6000, 15000), rules: []string{"packet-filter"},
		heldOut: true},
	{name: "long delay", path: request, base: "delay=0ms", harmed: option("delay=%dms", 6, 20),
		rules: []string{"waiting"}, heldOut: true},
}

// unharmed is the name of A/A experiments, whose targets do not differ.
const unharmed = "nothing (A/A)"

// A trial is a line of the log: one experiment with what was done and what was said of it.
type trial struct {
	Seed    uint64   `json:"seed"`
	Fault   string   `json:"fault"`
	HeldOut bool     `json:"held_out,omitempty"`
	Args    []string `json:"args"`
	Version string   `json:"version"`
	Seconds float64  `json:"seconds"`
	Missing bool     `json:"missing,omitempty"` // nothing could be compared
	Decided bool     `json:"decided"`           // the comparison came out different
	Worse   bool     `json:"worse"`             // and the harmed target is the worse one
	Causes  []string `json:"causes"`            // rules of the supported causes, in their order
	Wanted  []string `json:"wanted,omitempty"`
}

// counts says whether there is something to explain: a difference, and where a target is harmed, to its harm.
func (t trial) counts() bool { return t.Decided && (t.Worse || t.Fault == unharmed) }

// first is the cause that is named first, or that none is.
func (t trial) first() string {
	switch {
	case t.Missing:
		return "not measured"
	case !t.Decided:
		return "not different"
	case !t.counts():
		return "better"
	case len(t.Causes) == 0:
		return "no cause"
	}
	return t.Causes[0]
}

// Of seven experiments four have a fault of the first kind, one of those held out, and two have none.
const cycle = "KKAKHKA"

// plan is the experiment of a seed: its fault, or none, and the arguments of run.
func plan(seed uint64) (trial, []string) {
	r := rand.New(rand.NewPCG(seed, 16))
	t := trial{Seed: seed, Fault: unharmed}
	targets := []string{"lab:native", "lab:native?label=harmed"}
	cases := []string{transfer, request}
	if kind := cycle[seed%uint64(len(cycle))]; kind != 'A' {
		t.HeldOut = kind == 'H'
		of := slices.DeleteFunc(slices.Clone(faults), func(f fault) bool { return f.heldOut != t.HeldOut })
		f := of[r.IntN(len(of))]
		t.Fault, t.Wanted, cases = f.name, f.rules, []string{f.path}
		targets = []string{withOptions("lab:native?", f.base), withOptions(f.harmed(r), f.base, "label=harmed")}
	}
	args := []string{"--target", targets[0], "--target", targets[1], "--suite", "network:quick", "--primary", "*",
		"--blocks", "8", "--duration", "200ms", "--warmup", "50ms", "--seed", fmt.Sprint(seed)}
	for _, c := range cases {
		args = append(args, "--case", c)
	}
	t.Args = args
	return t, args
}

// withOptions adds options to a target, but for those that it has already.
func withOptions(target string, more ...string) string {
	spec, list, _ := strings.Cut(target, "?")
	options := strings.FieldsFunc(list, func(r rune) bool { return r == '&' })
	for _, text := range more {
		for o := range strings.SplitSeq(text, "&") {
			name, _, _ := strings.Cut(o, "=")
			had := slices.ContainsFunc(options, func(o string) bool { return strings.HasPrefix(o, name+"=") })
			if o != "" && !had {
				options = append(options, o)
			}
		}
	}
	if len(options) == 0 {
		return spec
	}
	return spec + "?" + strings.Join(options, "&")
}

// benchCauses measures how often explain names the right cause first, and how often one where there is none, with the
// program itself: experiments in the lab with a fault of random strength that is known, and A/A experiments. Like
// rates, it keeps a log and goes on where it was.
func benchCauses(ctx context.Context, args []string) error {
	set := flag.NewFlagSet("causes", flag.ContinueOnError)
	n := set.Uint64("n", 350, "experiments, those in the log included: of seven five have a fault")
	binary := set.String("binary", "bin/knotmeter", "the program")
	if err := set.Parse(args); err != nil {
		return err
	}
	log, page := filepath.Join("bench", "rates", "causes.ndjson"), filepath.Join("docs", "evidence", "explain-accuracy.md")
	done, err := readLog[trial](log)
	if err != nil {
		return err
	}
	version, err := output(knotmeter(ctx, *binary, "version"))
	if err != nil {
		return err
	}
	save := func() error { return os.WriteFile(page, causesPage(done), 0o644) }
	for seed := uint64(len(done)) + 1; seed <= *n && ctx.Err() == nil; seed++ {
		t, err := try(ctx, *binary, seed)
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
		fmt.Fprintf(os.Stderr, "%d of %d: %s: %s\n", seed, *n, t.Fault, strings.Join(append([]string{t.first()},
			t.Causes[min(1, len(t.Causes)):]...), ", "))
		if err := save(); err != nil {
			return err
		}
	}
	return save()
}

// try carries out one experiment and removes its results.
func try(ctx context.Context, binary string, seed uint64) (trial, error) {
	t, args := plan(seed)
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
	return t, t.read(out)
}

// read takes what was decided and said of the primary comparisons.
func (t *trial) read(out []byte) error {
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

// A score is what came of the experiments with one fault.
type score struct {
	all, decided, first, named int
	others                     map[string]int // named first instead
}

func scoreOf(done []trial, which func(trial) bool) score {
	s := score{others: map[string]int{}}
	for _, t := range done {
		if !which(t) {
			continue
		}
		s.all++
		wanted := func(rule string) bool { return slices.Contains(t.Wanted, rule) }
		if t.counts() {
			s.decided++
		}
		if wanted(t.first()) {
			s.first++
		} else {
			s.others[t.first()]++
		}
		if t.counts() && slices.ContainsFunc(t.Causes, wanted) {
			s.named++
		}
	}
	return s
}

// rate is a part of a whole with its interval; a dash where there is none.
func rate(part, whole int) string {
	if whole == 0 {
		return "–"
	}
	return strings.TrimSpace(share(part, whole, ""))
}

const causesHead = `# How often the right cause comes first

Experiments in the lab in which the cause of a difference is known, since it was put there: both targets are
` + "`lab:native`" + `, and one has an option more, of random strength. Eight blocks, runs of 200 ms. A cause is right
if the rule is one that names the fault; it counts where it comes first among the supported ones, and where the harmed
target came out worse at all. Faults that were not looked at while the rules were made, and other strengths, are apart.

` + "`make explain-accuracy`" + ` repeats it and goes on where it was; bench/rates/causes.ndjson has each experiment.

`

// causesPage is the page of a log.
func causesPage(done []trial) []byte {
	var b bytes.Buffer
	b.WriteString(causesHead)
	known := scoreOf(done, func(t trial) bool { return t.Fault != unharmed && !t.HeldOut })
	held := scoreOf(done, func(t trial) bool { return t.HeldOut })
	none := scoreOf(done, func(t trial) bool { return t.Fault == unharmed })
	named := 0
	for _, t := range done {
		if t.Fault == unharmed && len(t.Causes) > 0 {
			named++
		}
	}
	w := tabwriter.NewWriter(&b, 0, 0, 1, ' ', 0)
	fmt.Fprintf(w, "| Experiments\t| Right cause first\t| Right cause named\t| Goal\t|\n|---\t|---\t|---\t|---\t|\n")
	fmt.Fprintf(w, "| known faults\t| %s\t| %s\t| at least 90 %%\t|\n", rate(known.first, known.decided),
		rate(known.named, known.decided))
	fmt.Fprintf(w, "| held-out faults\t| %s\t| %s\t| reported apart\t|\n", rate(held.first, held.decided),
		rate(held.named, held.decided))
	w.Flush()
	fmt.Fprintf(&b, "\nOf the A/A experiments, a cause was named in %s;\nat most 5 %% is the goal. "+
		"%d came out different.\n", rate(named, none.all), none.decided)
	b.WriteString("\n## By fault\n\n")
	fmt.Fprintf(w, "| Fault\t| Experiments\t| Worse\t| Right cause first\t| Otherwise first\t|\n")
	fmt.Fprintf(w, "|---\t|---\t|---\t|---\t|---\t|\n")
	for _, f := range faults {
		s := scoreOf(done, func(t trial) bool { return t.Fault == f.name })
		name := f.name
		if f.heldOut {
			name += " (held out)"
		}
		fmt.Fprintf(w, "| %s\t| %d\t| %d\t| %d\t| %s\t|\n", name, s.all, s.decided, s.first, counted(s.others))
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
namespaces. A quota of CPU time makes runs invalid, and what they say decides nothing. Of a short backlog single
connections are a second late, which a median does not show: the kernel's counter does. A program that takes CPU time
would take it from the unharmed target too.
`

func meanSeconds(done []trial) float64 {
	sum := 0.0
	for _, t := range done {
		sum += t.Seconds
	}
	return sum / float64(len(done))
}

// counted is "retransmissions 3, no cause 1".
func counted(of map[string]int) string {
	var names []string
	for name := range of {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		if of[a] != of[b] {
			return of[b] - of[a]
		}
		return strings.Compare(a, b)
	})
	for i, name := range names {
		names[i] = fmt.Sprintf("%s %d", name, of[name])
	}
	return strings.Join(names, ", ")
}
