package cli

import (
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/knotmeter/knotmeter/internal/runner"
)

// A setting is a flag of run or plan.
type setting struct {
	flag, short string
	under       heading
	rare        bool               // only --help-all shows it
	of          string             // name of the only command that has it; empty: both
	field       string             // name in experiment files; empty: none
	replacedBy  string             // flag that replaces the field
	resumed     bool               // allowed for a resumed experiment
	help        string             // begins with the name of the argument in backquotes
	value       func(*options) any // returns a pointer to the variable that the flag sets, which holds the default
}

// settings are the flags of run and plan, except those of kinds of targets, in the order of the help.
var settings = []setting{
	{flag: targetFlag, under: measured, field: "targets", value: func(o *options) any { return &o.targets },
		help: "`TARGET` target to compare, the same as an argument; repeated"},
	{flag: "baseline", under: measured, rare: true, field: "baseline", value: func(o *options) any { return &o.baseline },
		help: "`TARGET` target to compare the others with (default: the first)"},
	{flag: "suite", under: measured, field: "suite", value: func(o *options) any { return &o.suites },
		help: "`SUITE,…` suites to measure"},
	{flag: "case", under: measured, field: "cases", value: func(o *options) any { return &o.cases },
		help: "`PATTERN` measure only cases that match, or a case of your own; repeated"},
	{flag: "primary", under: measured, rare: true, field: "primaries", value: func(o *options) any { return &o.primaries },
		help: "`PATTERN` cases that verdicts are about, instead of the suite's choice; repeated"},
	{flag: "switch", under: measured, rare: true, value: func(o *options) any { return &o.switchTexts },
		help: "`TARGET=COMMAND` command that puts a target in place before each of its visits; repeated"},
	{flag: "restore", under: measured, rare: true, field: "restore", value: func(o *options) any { return &o.restore },
		help: "`COMMAND` command that restores the testbed after the last visit"},
	{flag: "switch-limit", under: measured, rare: true, field: "switchLimit",
		value: func(o *options) any { return &o.switchLimit },
		help:  "`TIME` most that such a command may take, before it is killed with its children"},
	{flag: "metric", under: measured, rare: true, field: "metric", value: func(o *options) any { return &o.metric },
		help: "`METRIC` let verdicts be about this metric, such as mean, where cases have it"},
	{flag: "file", short: "f", under: measured, value: func(o *options) any { return &o.file },
		help: "`FILE` experiment file with these settings; flags win"},

	{flag: "tool", under: pacing, rare: true, field: "tool", value: func(o *options) any { return &o.tool },
		help: "`TOOL,…` what generates the load; see 'knotmeter list tools'"},
	{flag: "duration", under: pacing, rare: true, field: "duration", value: func(o *options) any { return &o.duration },
		help: "`TIME` measured window of each run (default: the suite's)"},
	{flag: "warmup", under: pacing, rare: true, field: "warmup", value: func(o *options) any { return &o.warmup },
		help: "`TIME` warm-up before it, which does not count (default: the suite's)"},
	{flag: "rate", under: pacing, rare: true, field: "rate", value: func(o *options) any { return &o.rate },
		help: "`NUMBER` requests per second of api and app cases, sent at planned times (default: each case's own)"},
	{flag: "clients", under: pacing, rare: true, field: "clients", value: func(o *options) any { return &o.clients },
		help: "`NUMBER` clients of api and app cases that each send a request when the last is answered; instead of --rate"},

	{flag: "max-rate", under: pacing, rare: true, field: "maxRate", value: func(o *options) any { return &o.maxRate },
		help: "`RATE` most that network streams send in each direction, such as 100Mbit/s"},

	{flag: "blocks", under: design, field: "blocks", replacedBy: "looks",
		value: func(o *options) any { return &o.blocks },
		help:  "`NUMBER` fixed number of blocks, instead of --looks"},
	{flag: "looks", under: design, rare: true, field: "looks", replacedBy: "blocks",
		value: func(o *options) any { return &o.looks },
		help:  "`NUMBER,…` blocks after which a case ends if it is decided; the last is the most"},
	{flag: "budget", under: design, field: "budget", value: func(o *options) any { return &o.budget },
		help: "`TIME` start no new run after this time, such as 10m"},
	{flag: "delta", under: design, field: "delta", value: func(o *options) any { return &o.delta },
		help: "`CHANGE` smallest change that matters"},
	{flag: "alpha", under: design, rare: true, field: "alpha", value: func(o *options) any { return &o.alpha },
		help: "`PROBABILITY` probability of a false 'different' among all primary comparisons"},
	{flag: "all-pairs", under: design, rare: true, field: "allPairs", value: func(o *options) any { return &o.allPairs },
		help: "compare every target with every other, not only with the baseline"},
	{flag: "parallel", under: design, rare: true, field: "parallel", value: func(o *options) any { return &o.parallel },
		help: "measure all targets at the same time; they must share no machine and no API server"},
	{flag: "seed", under: design, rare: true, field: "seed", value: func(o *options) any { return &o.seed },
		help: "`NUMBER` seed of the random order (default: drawn and recorded)"},

	{flag: "from", under: design, of: "plan", value: func(o *options) any { return &o.from },
		help: "`DIR` results to take the spread and duration of runs from"},
	{flag: "pilot", under: design, of: "plan", value: func(o *options) any { return &o.pilot },
		help: "measure four blocks first to learn the spread and duration of runs"},

	{flag: "gate", under: outcome, field: "gates", value: func(o *options) any { return &o.gates },
		help: "`CONDITION` fail unless this holds, such as 'pod-pod/*/tcp-rr p99 <= +5%'; repeated"},
	{flag: "output", short: "o", under: outcome, of: "run", resumed: true,
		value: func(o *options) any { return &o.output }, help: outputHelp},
	{flag: "output", short: "o", under: outcome, of: "plan", value: func(o *options) any { return &o.output },
		help: printedAs(tableOrJSON)},
	{flag: "out", under: outcome, of: "run", field: "out", resumed: true, value: func(o *options) any { return &o.out },
		help: "`DIR` results directory to write (default: " + resultsParent + "/<date>-<id>)"},
	{flag: "verbose", short: "v", under: outcome, rare: true, of: "run", resumed: true,
		value: func(o *options) any { return &o.verbose }, help: verboseHelp},
	{flag: "explain", under: outcome, rare: true, of: "run", resumed: true,
		value: func(o *options) any { return &o.explain },
		help:  "print causes of the differences, and confirm them by trials as 'explain --confirm' does"},
	{flag: "reference", under: outcome, rare: true, of: "run", field: "references", resumed: true,
		value: func(o *options) any { return &o.reference }, help: referenceHelp},
	{flag: "match", under: outcome, rare: true, of: "run", field: "matches", resumed: true,
		value: func(o *options) any { return &o.matches }, help: matchHelp},
	{flag: "price", under: outcome, rare: true, field: "prices", value: func(o *options) any { return &o.prices },
		help: priceHelp},

	{flag: "fact", under: outcome, rare: true, of: "run", field: "facts",
		value: func(o *options) any { return (*[]string)(&o.facts) }, help: factHelp},

	{flag: "resume", under: running, of: "run", resumed: true, value: func(o *options) any { return &o.resume },
		help: "`DIR` continue the experiment in this results directory"},
	{flag: "yes", under: running, resumed: true, value: func(o *options) any { return &o.yes },
		help: "consent to what a run without it asks about, such as load that other users may notice"},
	{flag: "share", under: running, rare: true, resumed: true, value: func(o *options) any { return &o.share },
		help: "measure even where another experiment runs; the results carry a warning"},
	{flag: "progress", under: running, rare: true, of: "run", resumed: true,
		value: func(o *options) any { return &o.progress }, help: progressHelp},
	{flag: "progress", under: running, rare: true, of: "plan",
		value: func(o *options) any { return &o.progress }, help: progressHelp},
}

var progressHelp = "`MODE` progress on standard error: " + strings.Join(progressModes, ", ")

// A commaList is a list of texts: separated by commas in a flag, a text or a list in an experiment file.
type commaList []string

// register adds the flags of run or plan to the command.
func (o *options) register(c *cobra.Command) {
	d := runner.DefaultDesign()
	o.flags, o.suites, o.tool, o.looks = c.Flags(), commaList{"network"}, "native", d.Looks
	o.delta, o.alpha = fraction(d.Delta), fraction(d.Alpha)
	o.progress, o.output, o.switchLimit = "auto", "table", switchLimit
	for _, s := range settings {
		if s.of == "" || s.of == c.Name() {
			s.register(o, c.Flags())
		}
	}
}

func (s setting) register(o *options, f *pflag.FlagSet) {
	switch p := s.value(o).(type) {
	case *string:
		f.StringVarP(p, s.flag, s.short, *p, s.help)
	case *[]string:
		f.StringArrayVarP(p, s.flag, s.short, *p, s.help)
	case *commaList:
		f.StringSliceVarP((*[]string)(p), s.flag, s.short, *p, s.help)
	case *bool:
		f.BoolVarP(p, s.flag, s.short, *p, s.help)
	case *int:
		f.IntVarP(p, s.flag, s.short, *p, s.help)
	case *[]int:
		f.IntSliceVarP(p, s.flag, s.short, *p, s.help)
	case *uint64:
		f.Uint64VarP(p, s.flag, s.short, *p, s.help)
	case *float64:
		f.Float64VarP(p, s.flag, s.short, *p, s.help)
	case *time.Duration:
		f.DurationVarP(p, s.flag, s.short, *p, s.help)
	case pflag.Value:
		f.VarP(p, s.flag, s.short, s.help)
	}
	annotate(f.Lookup(s.flag), s.under, s.rare)
}
