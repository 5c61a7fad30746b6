package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/runner"
	"github.com/knotmeter/knotmeter/internal/suite"
	"github.com/knotmeter/knotmeter/internal/unit"
	"github.com/knotmeter/knotmeter/internal/userfile"
	"github.com/knotmeter/knotmeter/internal/workload"
)

// options are the flags of run and plan.
type options struct {
	flags                               *pflag.FlagSet
	kinds                               kindFlags
	targets, suites, cases              []string
	primaries, gates                    []string
	baseline, tool                      string
	duration, warmup, budget            time.Duration
	blocks                              int
	looks                               []int
	allPairs, parallel                  bool
	delta, alpha                        fraction
	seed                                uint64
	rate                                float64
	clients                             int
	yes, share                          bool
	costs                               costs
	out, resume, progress, file, output string
	reference                           published
}

// A fraction is a flag that takes 0.02 or 2%.
type fraction float64

func (f *fraction) String() string { return strconv.FormatFloat(float64(*f), 'g', -1, 64) }
func (f *fraction) Type() string   { return "fraction" }

func (f *fraction) Set(text string) error {
	v, err := unit.ParseAs(text, unit.Ratio)
	if err != nil {
		return fmt.Errorf("%q is neither a fraction such as 0.02 nor a percentage such as 2%%", text)
	}
	*f = fraction(v)
	return nil
}

// experimentFile is what -f reads. Each entry stands for the flag in its flag tag.
type experimentFile struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Targets    []string `json:"targets" flag:"target"`
	Baseline   string   `json:"baseline" flag:"baseline"`
	Suite      string   `json:"suite" flag:"suite"`
	Cases      []string `json:"cases" flag:"case"`
	Primaries  []string `json:"primaries" flag:"primary"`
	Duration   string   `json:"duration" flag:"duration"`
	Warmup     string   `json:"warmup" flag:"warmup"`
	Blocks     int      `json:"blocks" flag:"blocks"`
	Looks      []int    `json:"looks" flag:"looks"`
	AllPairs   bool     `json:"allPairs" flag:"all-pairs"`
	Parallel   bool     `json:"parallel" flag:"parallel"`
	Gates      []string `json:"gates" flag:"gate"`
	Costs      []string `json:"costs" flag:"cost"`
	Budget     string   `json:"budget" flag:"budget"`
	Delta      any      `json:"delta" flag:"delta"`
	Alpha      any      `json:"alpha" flag:"alpha"`
	Seed       *uint64  `json:"seed" flag:"seed"`
	Tool       string   `json:"tool" flag:"tool"`
	Rate       float64  `json:"rate" flag:"rate"`
	Clients    int      `json:"clients" flag:"clients"`
	Out        string   `json:"out" flag:"out"`

	Kubernetes clustersInFile `json:"kubernetes"`
}

// clustersInFile is what an experiment file says of all clusters.
type clustersInFile struct {
	Kubeconfig   string          `json:"kubeconfig" flag:"kubeconfig"`
	Context      string          `json:"context" flag:"context"`
	Cluster      string          `json:"cluster" flag:"cluster"`
	User         string          `json:"user" flag:"user"`
	Namespace    string          `json:"namespace" flag:"namespace"`
	As           string          `json:"as" flag:"as"`
	AsGroups     []string        `json:"asGroups" flag:"as-group"`
	AsUID        string          `json:"asUID" flag:"as-uid"`
	Server       string          `json:"server" flag:"server"`
	ServerName   string          `json:"tlsServerName" flag:"tls-server-name"`
	Authority    string          `json:"certificateAuthority" flag:"certificate-authority"`
	Insecure     bool            `json:"insecureSkipTLSVerify" flag:"insecure-skip-tls-verify"`
	Certificate  string          `json:"clientCertificate" flag:"client-certificate"`
	Key          string          `json:"clientKey" flag:"client-key"`
	Uncompressed bool            `json:"disableCompression" flag:"disable-compression"`
	Timeout      string          `json:"requestTimeout" flag:"request-timeout"`
	RotateNodes  bool            `json:"rotateNodes" flag:"rotate-nodes"`
	Inject       bool            `json:"inject" flag:"inject"`
	Pods         json.RawMessage `json:"pods"` // what the option config takes
}

const (
	fileAPIVersion = "knotmeter/v1"
	fileKind       = "Experiment"
)

func (o *options) register(c *cobra.Command) {
	f := c.Flags()
	o.flags = f
	d := runner.DefaultDesign()
	f.StringArrayVar(&o.targets, "target", nil, "what is compared, such as lab:vxlan; repeated, the first is the baseline")
	f.StringVar(&o.baseline, "baseline", "", "the target that the others are compared with (default: the first)")
	f.StringSliceVar(&o.suites, "suite", []string{"network"}, "what is measured; repeated, or with commas; see 'knotmeter list cases'")
	f.StringArrayVar(&o.cases, "case", nil, "only the cases that match this pattern, or a case of your own; repeated")
	f.StringArrayVar(&o.primaries, "primary", nil, "the cases that verdicts are about, instead of the suite's; repeated")
	f.DurationVar(&o.duration, "duration", 0, "window of a run (default: the suite's)")
	f.DurationVar(&o.warmup, "warmup", 0, "warm-up before it, left out (default: the suite's)")
	f.IntSliceVar(&o.looks, "looks", d.Looks, "numbers of blocks after which a case stops if it is decided, the last the most")
	f.IntVar(&o.blocks, "blocks", 0, "a fixed number of blocks for every case, looked at once, instead of --looks")
	f.DurationVar(&o.budget, "budget", 0, "begin no run when this time is over")
	f.BoolVar(&o.allPairs, "all-pairs", false, "compare every target with every other, not only with the baseline")
	f.BoolVar(&o.parallel, "parallel", false, "measure all targets at the same time, where they share no machine and no API server")
	f.StringArrayVar(&o.gates, "gate", nil, "a condition on the outcome, such as 'pod-pod/*/tcp-rr p99 <= +5%'; repeated")
	o.delta, o.alpha = fraction(d.Delta), fraction(d.Alpha)
	f.Var(&o.delta, "delta", "the smallest difference that matters")
	f.Var(&o.alpha, "alpha", "probability of a false 'different' among all primary comparisons")
	f.Uint64Var(&o.seed, "seed", 0, "seed of the random order (default: drawn, and recorded)")
	f.StringVar(&o.tool, "tool", "native", "what generates the load; see 'knotmeter list tools'")
	f.Float64Var(&o.rate, "rate", 0, "requests per second of api and app cases, at planned times (default: each case's own)")
	f.IntVar(&o.clients, "clients", 0, "clients of api and app cases that each ask as soon as they are answered, instead of --rate")
	f.BoolVar(&o.yes, "yes", false, "allow load that other users may feel, and what else needs consent: docs/app.md and docs/api.md have the limits")
	f.BoolVar(&o.share, "share", false, "measure also where another experiment runs; the results carry a warning")
	o.costs.flag(f)
	f.StringVarP(&o.file, "file", "f", "", "read these settings from a file; flags win")
	o.kinds.register(c)
}

// readFile sets the flags that were not given from the entries of the file.
func (o *options) readFile(flags *pflag.FlagSet) error {
	if o.file == "" {
		return nil
	}
	data, err := userfile.Read(o.file, userfile.Limit)
	if err != nil {
		return fmt.Errorf("--file: %w", err)
	}
	var file experimentFile
	if err := userfile.Decode(data, &file); err != nil {
		return fmt.Errorf("--file: %s: %w", o.file, err)
	}
	if file.APIVersion != fileAPIVersion || file.Kind != fileKind {
		return fmt.Errorf("--file: %s: want apiVersion: %s and kind: %s", o.file, fileAPIVersion, fileKind)
	}
	if err := errors.Join(setFlags(flags, reflect.ValueOf(file)), o.kinds.setPods(file.Kubernetes.Pods)); err != nil {
		return fmt.Errorf("--file: %s: %w", o.file, err)
	}
	if err := setFlags(flags, reflect.ValueOf(file.Kubernetes)); err != nil {
		return fmt.Errorf("--file: %s: kubernetes: %w", o.file, err)
	}
	return nil
}

// setFlags sets the flags that were not given from the entries that stand for them.
func setFlags(flags *pflag.FlagSet, entries reflect.Value) error {
	// A number of blocks in the command line is instead of the file's looks, and the other way round.
	instead := map[string]bool{"looks": flags.Changed("blocks"), "blocks": flags.Changed("looks")}
	for i := range entries.NumField() {
		field := entries.Type().Field(i)
		name := field.Tag.Get("flag")
		if name == "" || flags.Lookup(name) == nil || flags.Changed(name) || instead[name] || entries.Field(i).IsZero() {
			continue
		}
		if err := setFlag(flags, name, entries.Field(i)); err != nil {
			return fmt.Errorf("%s: %w", strings.Split(field.Tag.Get("json"), ",")[0], err)
		}
	}
	return nil
}

func setFlag(flags *pflag.FlagSet, name string, v reflect.Value) error {
	if v.Kind() == reflect.Slice {
		for i := range v.Len() {
			if err := flags.Set(name, fmt.Sprint(v.Index(i).Interface())); err != nil {
				return err
			}
		}
		return nil
	}
	if v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	return flags.Set(name, fmt.Sprint(v.Interface()))
}

// given says whether a flag was set, by the command line or the file.
func (o *options) given(name string) bool { return o.flags.Changed(name) }

// check finds what cannot go together. The ranges of a design are the runner's to check.
func (o *options) check() error {
	switch {
	case o.resume != "":
		return o.checkResume()
	case len(o.targets) == 0:
		return errors.New("--target: name at least one, such as --target lab:native; 'knotmeter list targets' shows what there is")
	case o.given("blocks") && o.given("looks"):
		return errors.New("--blocks: it fixes the number of blocks, and --looks lets the data end a case earlier; leave one of them out")
	}
	return o.checkLoad()
}

// checkLoad looks at the flags about requests over HTTP.
func (o *options) checkLoad() error {
	switch {
	case o.given("rate") && o.given("clients"):
		return errors.New("--clients: they ask as fast as they are answered, and --rate at planned times; leave one of them out")
	case o.given("rate") && !(o.rate > 0 && o.rate <= workload.MaxWebRate):
		return fmt.Errorf("--rate: %g is not above 0 and up to %d per second", o.rate, workload.MaxWebRate)
	case o.given("clients") && (o.clients < 1 || o.clients > workload.MaxClients):
		return fmt.Errorf("--clients: %d is not from 1 to %d", o.clients, workload.MaxClients)
	}
	return nil
}

// asked are the suites with the rate or the clients that the flags say.
func (o *options) asked(suites []suite.Suite) []suite.Suite {
	var list []suite.Suite
	for _, s := range suites {
		s.Cases = slices.Clone(s.Cases)
		for i, c := range s.Cases {
			s.Cases[i].Workload = c.Workload.Asked(o.rate, o.clients)
		}
		list = append(list, s)
	}
	return list
}

// checkResume refuses what an experiment that goes on has already.
func (o *options) checkResume() error {
	own := []string{"out", "resume", "progress", "output", "reference", "share", "yes"}
	var err error
	o.flags.Visit(func(f *pflag.Flag) {
		if err == nil && !slices.Contains(own, f.Name) && !o.kinds.reach(f.Name) {
			err = fmt.Errorf("--%s: a resumed experiment has its own already; leave the flag out", f.Name)
		}
	})
	return err
}

// fixedBlocks are those of an experiment with a single target, in which there is nothing to decide.
const fixedBlocks = 11

// windowOf is the longest window that one of the suites has; otherwise is that of those which have none.
func windowOf(suites []suite.Suite, otherwise time.Duration) time.Duration {
	var window time.Duration
	for _, s := range suites {
		if s.Duration == 0 {
			window = max(window, otherwise)
		}
		window = max(window, s.Duration)
	}
	return window
}

// design is the design that the flags ask for.
func (o *options) design(suites []suite.Suite) result.Design {
	d := runner.DefaultDesign()
	switch {
	case o.given("looks"):
		d.Looks, d.Blocks = o.looks, slices.Max(append([]int{0}, o.looks...))
	case o.given("blocks"):
		d.Looks, d.Blocks = nil, o.blocks
	case len(o.targets) == 1:
		d.Looks, d.Blocks = nil, fixedBlocks
	}
	window := o.duration
	if !o.given("duration") {
		window = windowOf(suites, seconds(d.Duration))
	}
	warmup := o.warmup
	if !o.given("warmup") {
		warmup = min(window/8, time.Second)
	}
	d.Duration, d.Warmup, d.Budget = window.Seconds(), warmup.Seconds(), o.budget.Seconds()
	d.Alpha, d.Delta, d.AllPairs, d.Parallel = float64(o.alpha), float64(o.delta), o.allPairs, o.parallel
	return d
}

func seconds(v float64) time.Duration { return time.Duration(v * float64(time.Second)) }
