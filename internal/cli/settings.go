package cli

import (
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/knotmeter/knotmeter/internal/runner"
)

// A setting is a flag of run or plan.
type setting struct {
	flag, short string
	field       string // of experiment files; empty: they cannot have it
	resumed     bool   // an experiment that is resumed takes the flag too
	help        string
	value       func(*options) any // a pointer to what the flag sets, which has the default
}

// settings are the flags of run and plan.
var settings = []setting{
	{
		flag: "target", field: "targets", help: "what is compared, such as lab:vxlan; repeated, the first is the baseline",
		value: func(o *options) any { return &o.targets },
	}, {
		flag: "baseline", field: "baseline", help: "the target that the others are compared with (default: the first)",
		value: func(o *options) any { return &o.baseline },
	}, {
		flag: "suite", field: "suite", help: "what is measured; repeated, or with commas; see 'knotmeter list cases'",
		value: func(o *options) any { return &o.suites },
	}, {
		flag: "case", field: "cases", help: "only the cases that match this pattern, or a case of your own; repeated",
		value: func(o *options) any { return &o.cases },
	}, {
		flag: "primary", field: "primaries", help: "the cases that verdicts are about, instead of the suite's; repeated",
		value: func(o *options) any { return &o.primaries },
	}, {
		flag: "duration", field: "duration", help: "window of a run (default: the suite's)",
		value: func(o *options) any { return &o.duration },
	}, {
		flag: "warmup", field: "warmup", help: "warm-up before it, left out (default: the suite's)",
		value: func(o *options) any { return &o.warmup },
	}, {
		flag: "looks", field: "looks",
		help:  "numbers of blocks after which a case stops if it is decided, the last the most",
		value: func(o *options) any { return &o.looks },
	}, {
		flag: "blocks", field: "blocks",
		help:  "a fixed number of blocks for every case, looked at once, instead of --looks",
		value: func(o *options) any { return &o.blocks },
	}, {
		flag: "budget", field: "budget", help: "start no new run after this time",
		value: func(o *options) any { return &o.budget },
	}, {
		flag: "all-pairs", field: "allPairs", help: "compare every target with every other, not only with the baseline",
		value: func(o *options) any { return &o.allPairs },
	}, {
		flag: "parallel", field: "parallel",
		help:  "measure all targets at the same time, where they share no machine and no API server",
		value: func(o *options) any { return &o.parallel },
	}, {
		flag: "gate", field: "gates", help: "a condition on the outcome, such as 'pod-pod/*/tcp-rr p99 <= +5%'; repeated",
		value: func(o *options) any { return &o.gates },
	}, {
		flag: "delta", field: "delta", help: "the smallest difference that matters",
		value: func(o *options) any { return &o.delta },
	}, {
		flag: "alpha", field: "alpha", help: "probability of a false 'different' among all primary comparisons",
		value: func(o *options) any { return &o.alpha },
	}, {
		flag: "seed", field: "seed", help: "seed of the random order (default: drawn, and recorded)",
		value: func(o *options) any { return &o.seed },
	}, {
		flag: "tool", field: "tool", help: "what generates the load; see 'knotmeter list tools'",
		value: func(o *options) any { return &o.tool },
	}, {
		flag: "rate", field: "rate",
		help:  "requests per second of api and app cases, at planned times (default: each case's own)",
		value: func(o *options) any { return &o.rate },
	}, {
		flag: "clients", field: "clients",
		help:  "clients of api and app cases that each ask as soon as they are answered, instead of --rate",
		value: func(o *options) any { return &o.clients },
	}, {
		flag: "cost", field: "costs", help: costHelp, value: func(o *options) any { return &o.costs },
	}, {
		flag: "yes", resumed: true,
		help: "allow load that other users may feel, and what else needs consent: " +
			"docs/app.md and docs/api.md have the limits",
		value: func(o *options) any { return &o.yes },
	}, {
		flag: "share", resumed: true, help: "measure also where another experiment runs; the results carry a warning",
		value: func(o *options) any { return &o.share },
	}, {
		flag: "file", short: "f", help: "read these settings from a file; flags win",
		value: func(o *options) any { return &o.file },
	},
}

// runSettings are the flags of run.
var runSettings = slices.Concat(settings, []setting{
	{
		flag: "out", field: "out", resumed: true, help: "results directory (default: results/<date>-<id>)",
		value: func(o *options) any { return &o.out },
	}, {
		flag: "resume", resumed: true, help: "go on with the experiment in this results directory",
		value: func(o *options) any { return &o.resume },
	}, {
		flag: "progress", resumed: true, help: "how progress is shown on stderr: " + strings.Join(progressModes(), ", "),
		value: func(o *options) any { return &o.progress },
	}, {
		flag: "output", short: "o", resumed: true,
		help: "how the comparison is printed: " + strings.Join(outputs(), ", "), value: func(o *options) any { return &o.output },
	}, {
		flag: "reference", resumed: true, help: referenceHelp, value: func(o *options) any { return &o.reference },
	},
})

// A commaList is a flag that takes texts with commas between.
type commaList []string

// register adds flags to a command.
func (o *options) register(c *cobra.Command, settings []setting) {
	d := runner.DefaultDesign()
	o.flags, o.suites, o.tool, o.looks = c.Flags(), commaList{"network"}, "native", d.Looks
	o.delta, o.alpha = fraction(d.Delta), fraction(d.Alpha)
	o.progress, o.output = "auto", "table"
	for _, s := range settings {
		s.register(o, c.Flags())
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
	case *costs:
		return reflect.TypeFor[[]string]()
	case *uint64: // any number is given, and none is not
		return reflect.TypeOf(p)
	default:
		return reflect.TypeOf(p).Elem()
	}
}
