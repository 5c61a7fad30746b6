package cli

import (
	"reflect"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/knotmeter/knotmeter/internal/runner"
)

// A setting is a flag of run or plan.
type setting struct {
	flag, short string
	of          string // the command that alone has it; empty: both have
	field       string // of experiment files; empty: they cannot have it
	resumed     bool   // an experiment that is resumed takes the flag too
	help        string
	value       func(*options) any // a pointer to what the flag sets, which has the default
}

// settings are the flags of run and plan, besides those of kinds of targets.
var settings = []setting{
	{flag: "target", field: "targets", value: func(o *options) any { return &o.targets },
		help: "what is compared, such as lab:vxlan; repeated, the first is the baseline"},
	{flag: "baseline", field: "baseline", value: func(o *options) any { return &o.baseline },
		help: "the target that the others are compared with (default: the first)"},
	{flag: "suite", field: "suite", value: func(o *options) any { return &o.suites },
		help: "what is measured; repeated, or with commas; see 'knotmeter list cases'"},
	{flag: "case", field: "cases", value: func(o *options) any { return &o.cases },
		help: "only the cases that match this pattern, or a case of your own; repeated"},
	{flag: "primary", field: "primaries", value: func(o *options) any { return &o.primaries },
		help: "the cases that verdicts are about, instead of the suite's; repeated"},
	{flag: "duration", field: "duration", value: func(o *options) any { return &o.duration },
		help: "window of a run (default: the suite's)"},
	{flag: "warmup", field: "warmup", value: func(o *options) any { return &o.warmup },
		help: "warm-up before it, left out (default: the suite's)"},
	{flag: "looks", field: "looks", value: func(o *options) any { return &o.looks },
		help: "numbers of blocks after which a case stops if it is decided, the last the most"},
	{flag: "blocks", field: "blocks", value: func(o *options) any { return &o.blocks },
		help: "a fixed number of blocks for every case, looked at once, instead of --looks"},
	{flag: "budget", field: "budget", value: func(o *options) any { return &o.budget },
		help: "start no new run after this time"},
	{flag: "all-pairs", field: "allPairs", value: func(o *options) any { return &o.allPairs },
		help: "compare every target with every other, not only with the baseline"},
	{flag: "parallel", field: "parallel", value: func(o *options) any { return &o.parallel },
		help: "measure all targets at the same time, where they share no machine and no API server"},
	{flag: "gate", field: "gates", value: func(o *options) any { return &o.gates },
		help: "a condition on the outcome, such as 'pod-pod/*/tcp-rr p99 <= +5%'; repeated"},
	{flag: "delta", field: "delta", value: func(o *options) any { return &o.delta },
		help: "the smallest difference that matters"},
	{flag: "alpha", field: "alpha", value: func(o *options) any { return &o.alpha },
		help: "probability of a false 'different' among all primary comparisons"},
	{flag: "seed", field: "seed", value: func(o *options) any { return &o.seed },
		help: "seed of the random order (default: drawn, and recorded)"},
	{flag: "tool", field: "tool", value: func(o *options) any { return &o.tool },
		help: "what generates the load; see 'knotmeter list tools'"},
	{flag: "rate", field: "rate", value: func(o *options) any { return &o.rate },
		help: "requests per second of api and app cases, at planned times (default: each case's own)"},
	{flag: "clients", field: "clients", value: func(o *options) any { return &o.clients },
		help: "clients of api and app cases that each ask as soon as they are answered, instead of --rate"},
	{flag: "price", field: "prices", value: func(o *options) any { return &o.prices }, help: priceHelp},
	{flag: "yes", resumed: true, value: func(o *options) any { return &o.yes },
		help: "allow load that other users may feel, and what else needs consent: " +
			"docs/app.md and docs/api.md have the limits"},
	{flag: "share", resumed: true, value: func(o *options) any { return &o.share },
		help: "measure also where another experiment runs; the results carry a warning"},
	{flag: "file", short: "f", value: func(o *options) any { return &o.file },
		help: "read these settings from a file; flags win"},
	{flag: "out", of: "run", field: "out", resumed: true, value: func(o *options) any { return &o.out },
		help: "results directory (default: results/<date>-<id>)"},
	{flag: "resume", of: "run", resumed: true, value: func(o *options) any { return &o.resume },
		help: "go on with the experiment in this results directory"},
	{flag: "progress", of: "run", resumed: true, value: func(o *options) any { return &o.progress },
		help: "how progress is shown on stderr: " + strings.Join(progressModes, ", ")},
	{flag: "output", short: "o", of: "run", resumed: true, value: func(o *options) any { return &o.output },
		help: outputHelp},
	{flag: "reference", of: "run", resumed: true, value: func(o *options) any { return &o.reference },
		help: referenceHelp},
	{flag: "output", short: "o", of: "plan", value: func(o *options) any { return &o.output }, help: "table or json"},
	{flag: "from", of: "plan", value: func(o *options) any { return &o.from },
		help: "take the spread and the duration of runs from this results directory"},
	{flag: "pilot", of: "plan", value: func(o *options) any { return &o.pilot },
		help: "measure four blocks first, to know the spread and the duration of runs"},
	{flag: "progress", of: "plan", value: func(o *options) any { return &o.progress },
		help: "how the progress of a pilot is shown on stderr: " + strings.Join(progressModes, ", ")},
}

// A commaList is a flag that takes texts with commas between.
type commaList []string

// register adds its flags to run or plan.
func (o *options) register(c *cobra.Command) {
	d := runner.DefaultDesign()
	o.flags, o.suites, o.tool, o.looks = c.Flags(), commaList{"network"}, "native", d.Looks
	o.delta, o.alpha = fraction(d.Delta), fraction(d.Alpha)
	o.progress, o.output = "auto", "table"
	for _, s := range settings {
		if s.of == "" || s.of == c.Name() {
			s.register(o, c.Flags())
		}
	}
	o.kinds.register(c)
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
}

// fieldType is the type of the setting's field in an experiment file.
func (s setting) fieldType() reflect.Type {
	switch p := s.value(&options{}).(type) {
	case *commaList, *time.Duration:
		return reflect.TypeFor[string]()
	case *fraction:
		return reflect.TypeFor[any]()
	case *prices:
		return reflect.TypeFor[[]string]()
	case *uint64: // any number is given, and none is not
		return reflect.TypeOf(p)
	default:
		return reflect.TypeOf(p).Elem()
	}
}
