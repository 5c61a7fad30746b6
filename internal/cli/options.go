package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/pflag"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/runner"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// options are the values of the flags of run and plan.
type options struct {
	flags                               *pflag.FlagSet
	targets, cases                      []string
	suites                              commaList
	primaries, gates                    []string
	baseline, metric, tool              string
	duration, warmup, budget            time.Duration
	blocks                              int
	looks                               []int
	allPairs, parallel                  bool
	delta, alpha                        fraction
	seed                                uint64
	rate                                float64
	maxRate                             bitRate
	clients                             int
	yes, share, verbose, explain        bool
	prices                              prices
	facts                               statedFacts
	out, resume, progress, file, output string
	reference                           publishedTables
	matches                             matches
	from                                string
	pilot                               bool
	switchTexts                         []string
	switchLimit                         time.Duration
	restore                             string
	fileTargets                         []fileTarget      // targets, if they come from the file
	fileRestores                        bool              // restore comes from the file
	kubernetes                          map[string]string // options of all kube: targets, from the file
}

// A fraction is a flag with a value such as 0.02 or 2%.
type fraction float64

func (f *fraction) String() string { return strconv.FormatFloat(100*float64(*f), 'g', 10, 64) + "%" }
func (f *fraction) Type() string   { return "fraction" }

func (f *fraction) Set(text string) error {
	v, err := unit.ParseAs(text, unit.Ratio)
	if err != nil {
		return fmt.Errorf("%q is neither a fraction such as 0.02 nor a percentage such as 2%%", text)
	}
	*f = fraction(v)
	return nil
}

// A bitRate is a flag with a value such as 100Mbit/s, in bits per second.
type bitRate float64

func (r *bitRate) String() string {
	if *r == 0 {
		return ""
	}
	return unit.Format(float64(*r), unit.BitPerSecond)
}
func (r *bitRate) Type() string { return "rate" }

func (r *bitRate) Set(text string) error {
	v, err := unit.ParseAs(text, unit.BitPerSecond)
	if err != nil || !(v > 0) {
		return fmt.Errorf("%q is not a rate such as 100Mbit/s", text)
	}
	*r = bitRate(v)
	return nil
}

// given reports whether a flag was set on the command line or in the file.
func (o *options) given(name string) bool { return o.flags.Changed(name) }

// read sets the flags from the arguments and the experiment file, and checks them.
func (o *options) read(ctx context.Context, args []string) error {
	if err := setTargetFlag(o.flags, args); err != nil {
		return err
	}
	if err := o.readFile(ctx); err != nil {
		return err
	}
	return o.check()
}

// check returns an error about flags that contradict each other. The runner checks the ranges of the design.
func (o *options) check() error {
	switch {
	case o.resume != "":
		return o.checkResume()
	case len(o.targets) == 0:
		return errors.New("name at least one target, such as lab:native; 'knotmeter list targets' lists them")
	case o.given("blocks") && o.given("looks"):
		return errors.New("--blocks: it fixes the number of blocks, and --looks lets the data end a case earlier; " +
			"leave one of them out")
	}
	return o.checkLoad()
}

// checkLoad checks the flags for requests over HTTP.
func (o *options) checkLoad() error {
	switch {
	case o.given("rate") && o.given("clients"):
		return errors.New("--clients: each sends a request when the last is answered, and --rate sends at planned times; " +
			"leave one of them out")
	case o.given("rate") && !(o.rate > 0 && o.rate <= family.MaxRate):
		return fmt.Errorf("--rate: %g is not above 0 and up to %d per second", o.rate, family.MaxRate)
	case o.given("clients") && (o.clients < 1 || o.clients > family.MaxClients):
		return fmt.Errorf("--clients: %d is not from 1 to %d", o.clients, family.MaxClients)
	}
	return nil
}

// paced returns the suites with the rate or number of clients that the flags give.
func (o *options) paced(suites []family.Suite) []family.Suite {
	suites = slices.Clone(suites)
	for n, s := range suites {
		suites[n].Cases = slices.Clone(s.Cases)
		for i, c := range s.Cases {
			if w, is := c.Workload.(family.Paced); is {
				suites[n].Cases[i].Workload = w.At(o.rate, o.clients)
			}
		}
	}
	return suites
}

// checkResume returns an error about a flag that the resumed experiment has already fixed.
func (o *options) checkResume() error {
	var err error
	o.flags.Visit(func(f *pflag.Flag) {
		allowed := func(s setting) bool { return s.flag == f.Name && s.resumed }
		if err == nil && !slices.ContainsFunc(settings, allowed) {
			err = fmt.Errorf("--%s: the resumed experiment defines it already; leave it out", f.Name)
		}
	})
	return err
}

// fixedBlocks is the default number of blocks of an experiment with a single target, which has no verdicts.
const fixedBlocks = 11

// windowOf returns the longest window of the suites in seconds. For suites without a window it uses otherwise.
func windowOf(suites []family.Suite, otherwise float64) float64 {
	window := 0.0
	for _, s := range suites {
		window = max(window, cmp.Or(s.Duration.Seconds(), otherwise))
	}
	return window
}

// design returns the design that the flags describe.
func (o *options) design(suites []family.Suite) result.Design {
	d := runner.DefaultDesign()
	switch {
	case o.given("looks"):
		d.Looks, d.Blocks = o.looks, slices.Max(append([]int{0}, o.looks...))
	case o.given("blocks"):
		d.Looks, d.Blocks = nil, o.blocks
	case len(o.targets) == 1:
		d.Looks, d.Blocks = nil, fixedBlocks
	}
	d.Duration, d.Warmup, d.Budget = o.duration.Seconds(), o.warmup.Seconds(), o.budget.Seconds()
	if !o.given("duration") {
		d.Duration = windowOf(suites, runner.DefaultDesign().Duration)
	}
	if !o.given("warmup") {
		d.Warmup = min(d.Duration/8, 1)
	}
	d.Alpha, d.Delta, d.AllPairs, d.Parallel = float64(o.alpha), float64(o.delta), o.allPairs, o.parallel
	return d
}
