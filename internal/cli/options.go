package cli

import (
	"cmp"
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

// options are what the flags of run and plan say.
type options struct {
	flags                               *pflag.FlagSet
	kinds                               kindFlags
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
	told                                told
	out, resume, progress, file, output string
	reference                           published
	matches                             matches
	from                                string
	pilot                               bool
	switchTexts                         []string
	switchLimit                         time.Duration
	restore                             string
	fileTargets                         []fileTarget // those that the targets are, if they are the file's
	fileRestores                        bool         // restore is the file's
}

// A fraction is a flag that takes 0.02 or 2%.
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

// A bitRate is a flag that takes 100Mbit/s, or a number of bits per second.
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

// given says whether a flag was set, by the command line or the file.
func (o *options) given(name string) bool { return o.flags.Changed(name) }

// read adds the targets that are arguments and the settings of the file to the flags, and finds contradictions.
func (o *options) read(args []string) error {
	if err := nameTargets(o.flags, args); err != nil {
		return err
	}
	if err := o.readFile(); err != nil {
		return err
	}
	return o.check()
}

// check finds what cannot go together. The ranges of a design are the runner's to check.
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

// checkLoad looks at the flags about requests over HTTP.
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

// asked are the suites with the rate or the clients that the flags say.
func (o *options) asked(suites []family.Suite) []family.Suite {
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

// checkResume refuses what an experiment that goes on has already.
func (o *options) checkResume() error {
	var err error
	o.flags.Visit(func(f *pflag.Flag) {
		goesOn := func(s setting) bool { return s.flag == f.Name && s.resumed }
		if err == nil && !slices.ContainsFunc(settings, goesOn) && !o.kinds.reach(f.Name) {
			err = fmt.Errorf("--%s: the resumed experiment defines it already; leave it out", f.Name)
		}
	})
	return err
}

// fixedBlocks are those of an experiment with a single target, in which there is nothing to decide.
const fixedBlocks = 11

// windowOf is the longest window that one of the suites has, in seconds; otherwise is that of those which have none.
func windowOf(suites []family.Suite, otherwise float64) float64 {
	window := 0.0
	for _, s := range suites {
		window = max(window, cmp.Or(s.Duration.Seconds(), otherwise))
	}
	return window
}

// design is the design that the flags ask for.
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
