package cli

import (
	"fmt"
	"os"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"

	"github.com/knotmeter/knotmeter/internal/unit"
)

// options are the flags of run and plan.
type options struct {
	targets, cases, primaries           []string
	baseline, suite, tool               string
	duration, warmup, budget            time.Duration
	blocks                              int
	delta, alpha                        fraction
	seed                                uint64
	out, resume, progress, file, output string
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
	Budget     string   `json:"budget" flag:"budget"`
	Delta      any      `json:"delta" flag:"delta"`
	Alpha      any      `json:"alpha" flag:"alpha"`
	Seed       *uint64  `json:"seed" flag:"seed"`
	Tool       string   `json:"tool" flag:"tool"`
	Out        string   `json:"out" flag:"out"`
}

const (
	fileAPIVersion = "knotmeter/v1"
	fileKind       = "Experiment"
)

func (o *options) register(c *cobra.Command) {
	f := c.Flags()
	f.StringArrayVar(&o.targets, "target", nil, "what is compared, such as lab:vxlan; repeated, the first is the baseline")
	f.StringVar(&o.baseline, "baseline", "", "the target that the others are compared with (default: the first)")
	f.StringVar(&o.suite, "suite", "network", "what is measured; see 'knotmeter list cases'")
	f.StringArrayVar(&o.cases, "case", nil, "only the cases that match this pattern, or a case of your own; repeated")
	f.StringArrayVar(&o.primaries, "primary", nil, "the cases that verdicts are about, instead of the suite's; repeated")
	f.DurationVar(&o.duration, "duration", 0, "window of a run (default: the suite's)")
	f.DurationVar(&o.warmup, "warmup", 0, "warm-up before it, left out (default: the suite's)")
	f.IntVar(&o.blocks, "blocks", 11, "blocks: runs of each case on each target")
	f.DurationVar(&o.budget, "budget", 0, "stop in good order before this time is over")
	o.delta, o.alpha = 0.02, 0.05
	f.Var(&o.delta, "delta", "the smallest difference that matters")
	f.Var(&o.alpha, "alpha", "probability of a false 'different' among all primary comparisons")
	f.Uint64Var(&o.seed, "seed", 0, "seed of the random order (default: drawn, and recorded)")
	f.StringVar(&o.tool, "tool", "native", "what generates the load; see 'knotmeter list tools'")
	f.StringVarP(&o.file, "file", "f", "", "read these settings from a file; flags win")
}

// readFile sets the flags that were not given from the entries of the file.
func (o *options) readFile(flags *pflag.FlagSet) error {
	if o.file == "" {
		return nil
	}
	data, err := os.ReadFile(o.file)
	if err != nil {
		return fmt.Errorf("--file: %w", err)
	}
	var file experimentFile
	if err := yaml.UnmarshalStrict(data, &file); err != nil {
		return fmt.Errorf("--file: %s: %w", o.file, err)
	}
	if file.APIVersion != fileAPIVersion || file.Kind != fileKind {
		return fmt.Errorf("--file: %s: want apiVersion: %s and kind: %s", o.file, fileAPIVersion, fileKind)
	}
	entries := reflect.ValueOf(file)
	for i := range entries.NumField() {
		field := entries.Type().Field(i)
		name := field.Tag.Get("flag")
		if name == "" || flags.Lookup(name) == nil || flags.Changed(name) || entries.Field(i).IsZero() {
			continue
		}
		if err := setFlag(flags, name, entries.Field(i)); err != nil {
			return fmt.Errorf("--file: %s: %s: %w", o.file, strings.Split(field.Tag.Get("json"), ",")[0], err)
		}
	}
	return nil
}

func setFlag(flags *pflag.FlagSet, name string, v reflect.Value) error {
	if v.Kind() == reflect.Slice {
		for i := range v.Len() {
			if err := flags.Set(name, v.Index(i).String()); err != nil {
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

// leastDuration is the shortest window.
const leastDuration = 100 * time.Millisecond

// check finds what is out of range before anything is touched.
func (o *options) check() error {
	switch {
	case len(o.targets) == 0 && o.resume == "":
		return fmt.Errorf("--target: name at least one, such as --target lab:native; 'knotmeter list targets' shows what there is")
	case o.blocks < 1 || o.blocks > 1000:
		return fmt.Errorf("--blocks: %d is not from 1 to 1000", o.blocks)
	case !(o.delta > 0 && o.delta < 1):
		return fmt.Errorf("--delta: %.4g is not between 0 and 1 (100 %%)", float64(o.delta))
	case !(o.alpha > 0 && o.alpha < 0.5):
		return fmt.Errorf("--alpha: %.4g is not between 0 and 0.5", float64(o.alpha))
	case o.duration != 0 && o.duration < leastDuration:
		return fmt.Errorf("--duration: %v is shorter than %v, the step of a run's series", o.duration, leastDuration)
	case o.budget < 0:
		return fmt.Errorf("--budget: %v is negative", o.budget)
	}
	return nil
}
