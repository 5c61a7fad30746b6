package cli

import (
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/report"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/store"
)

func newCompare(s Streams) *cobra.Command {
	var output string
	var every bool
	var j judgement
	c := &cobra.Command{
		Use:   "compare DIR [DIR]",
		Short: "Compare again, from a results directory",
		Long: `Print the comparison of a results directory again. Of two directories the targets of the
second are compared with those of the first, unpaired: what changed between the two
times of measurement is part of every difference then.

A gate that fails ends the program with status 3, one that the data do not decide with 4.`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(_ *cobra.Command, dirs []string) error {
			if err := checkOutput(output); err != nil {
				return err
			}
			l, err := j.load(dirs...)
			if err != nil {
				return err
			}
			l.every = every
			warn(s.Err, l.warnings...)
			if err := l.print(s, output); err != nil {
				return err
			}
			return gateStatus(l.Comparison)
		},
	}
	f := c.Flags()
	f.StringVarP(&output, "output", "o", "table", outputHelp)
	j.register(f)
	f.BoolVar(&every, "all", false, "in the table, every metric and not only the one that a case is measured for")
	f.BoolVar(&j.allPairs, "all-pairs", false, "compare every target with every other, also where that was not planned")
	f.StringArrayVar(&j.gates, "gate", nil, "a condition on the outcome, instead of those of the experiment; repeated")
	return c
}

// lookedAt are the formats that are of no use on a terminal.
var lookedAt = []string{"html", "png"}

// outputs are the formats that -o takes: those that make sense on a terminal or in a pipe.
var outputs = slices.DeleteFunc(formatNames(), func(name string) bool { return slices.Contains(lookedAt, name) })

var outputHelp = "how the comparison is printed: " + strings.Join(outputs, ", ")

func formatNames() []string {
	var names []string
	for _, f := range report.Formats() {
		names = append(names, f.Name)
	}
	return names
}

func checkOutput(name string) error {
	if slices.Contains(lookedAt, name) {
		return fmt.Errorf("--output: %s is to be looked at, not printed; "+
			"'knotmeter report DIR --format %s' writes it into a file", name, name)
	}
	return oneOf("--output", name, outputs)
}

// loaded is one or two results directories, compared.
type loaded struct {
	report.Input
	warnings []string
	every    bool // metrics in the table
}

// A judgement is what a user wants to know of results, besides what their experiment planned.
type judgement struct {
	allPairs  bool
	gates     []string
	prices    prices
	reference published
}

// register adds the flags that all commands have which render results.
func (j *judgement) register(f *pflag.FlagSet) {
	f.Var(&j.reference, "reference", referenceHelp)
	f.Var(&j.prices, "price", priceHelp)
}

// onto puts the judgement in the place of what was planned, and says so in a sentence if it differs.
func (j judgement) onto(e *result.Experiment, runs []result.Run) (remark string, err error) {
	var what []string
	if j.allPairs && !e.Design.AllPairs {
		e.Design.AllPairs = true
		what = append(what, "comparing all pairs")
	}
	if len(j.gates) > 0 && !slices.Equal(j.gates, e.Gates) {
		e.Gates = j.gates
		if err := checkGates(*e, metricsIn(*e, runs)); err != nil {
			return "", err
		}
		what = append(what, "these gates")
	}
	if len(what) == 0 {
		return "", nil
	}
	return "The experiment was run without " + strings.Join(what, " and ") +
		"; the stated error probability holds for what is chosen before the results are seen.", nil
}

// collectAt is how much of what is still needed may be garbage, in percent: reading a hundred thousand
// runs takes 300 MB, and as much again at the runtime's default of 100.
const collectAt = 25

// load reads and compares one results directory, or two.
func (j judgement) load(dirs ...string) (*loaded, error) {
	if j.allPairs && len(dirs) > 1 {
		return nil, errors.New("--all-pairs: of two directories, each target is compared with its counterpart; " +
			"leave the flag out")
	}
	debug.SetGCPercent(collectAt)
	l := &loaded{Input: report.Input{Reference: j.reference}}
	var all []*store.Results
	var targets []string
	for _, dir := range dirs {
		r, err := openResults(dir)
		if err != nil {
			return nil, err
		}
		all, targets = append(all, r), append(targets, r.Experiment.TargetNames()...)
		l.warnings = append(l.warnings, r.Warnings...)
	}
	if err := j.prices.check(targets...); err != nil {
		return nil, err
	}
	for _, r := range all {
		r.Facts = compare.SetPrices(j.prices, r.Facts, r.Experiment.Targets)
	}
	first, last := all[0], all[len(all)-1]
	remark, err := j.onto(&last.Experiment, last.Runs)
	if err != nil {
		return nil, err
	}
	if len(dirs) > 1 {
		l.Second = &last.Results
		l.Comparison, err = compare.CompareUnpaired(first.Results, last.Results)
	} else if l.Comparison, err = compare.Compare(first.Results); err != nil {
		err = fmt.Errorf("%s: %w", dirs[0], err)
	} else {
		l.Histogram = first.Histogram
	}
	if remark != "" {
		l.Comparison.Warnings = append(l.Comparison.Warnings, remark)
	}
	l.Experiment, l.Sites, l.Runs, l.Facts = first.Experiment, first.Sites, first.Runs, first.Facts
	return l, err
}

// openResults reads a results directory, with the facts of all its sessions.
func openResults(dir string) (*store.Results, error) {
	r, err := store.Open(dir)
	if err == nil {
		r.Facts = compare.FactsOverSessions(r.Results)
	}
	return r, err
}

// gateStatus is the error that the outcome of the gates stands for; nil if all passed.
func gateStatus(c compare.Comparison) error {
	var failed, open []string
	for _, g := range c.Gates {
		switch g.Outcome {
		case compare.Failed:
			failed = append(failed, g.Sentence)
		case compare.Open:
			open = append(open, g.Sentence)
		}
	}
	switch {
	case len(failed) > 0:
		return &statusError{statusGateFailed, errors.New("a gate failed:\n" + strings.Join(failed, "\n"))}
	case len(open) > 0:
		return &statusError{statusGateOpen, errors.New("a gate is open:\n" + strings.Join(open, "\n"))}
	}
	return nil
}

// print writes the comparison to stdout in a format that checkOutput has seen.
func (l *loaded) print(s Streams, output string) error {
	if output == "table" {
		return report.Text(coloured(s.Out), l.Input, report.TextOptions{Colour: s.Color, All: l.every})
	}
	return findFormat(output).Write(s.Out, l.Input)
}

func findFormat(name string) report.Format {
	return report.Formats()[slices.Index(formatNames(), name)]
}

// writeFormat writes the comparison into the results directory, and returns the file's path.
func (l *loaded) writeFormat(f report.Format, dir string) (string, error) {
	return store.WriteFile(dir, f.File, func(w io.Writer) error { return f.Write(w, l.Input) })
}
