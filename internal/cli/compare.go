package cli

import (
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/prose"
	"github.com/knotmeter/knotmeter/internal/report"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/store"
)

func newCompare(s Streams) *cobra.Command {
	var output string
	var every bool
	var j judgement
	var elsewhere published
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
			l, err := j.loadAll(dirs)
			if err != nil {
				return err
			}
			l.every, l.Reference = every, elsewhere
			l.warn(s)
			if err := l.print(s, output); err != nil {
				return err
			}
			return gateStatus(l.Comparison)
		},
	}
	f := c.Flags()
	f.StringVarP(&output, "output", "o", "table", "how the comparison is printed: "+strings.Join(outputs(), ", "))
	elsewhere.flag(f)
	j.prices.flag(f)
	f.BoolVar(&every, "all", false, "in the table, every metric and not only the one that a case is measured for")
	f.BoolVar(&j.allPairs, "all-pairs", false, "compare every target with every other, also where that was not planned")
	f.StringArrayVar(&j.gates, "gate", nil, "a condition on the outcome, instead of those of the experiment; repeated")
	return c
}

// outputs are the formats that -o takes: those that make sense on a terminal or in a pipe.
func outputs() []string {
	var names []string
	for _, f := range report.Formats() {
		if !slices.Contains(lookedAt(), f.Name) {
			names = append(names, f.Name)
		}
	}
	return names
}

// lookedAt are the formats that are of no use on a terminal.
func lookedAt() []string { return []string{"html", "png"} }

func checkOutput(name string) error {
	if slices.Contains(lookedAt(), name) {
		return fmt.Errorf("--output: %s is to be looked at, not printed; 'knotmeter report DIR --format %s' writes it into a file", name, name)
	}
	if !slices.Contains(outputs(), name) {
		return fmt.Errorf("--output: %q is not one of %s", name, prose.Choices(name, outputs()))
	}
	return nil
}

// loaded is one or two results directories, compared.
type loaded struct {
	report.Input
	warnings []string
	every    bool // metrics in the table
}

// A judgement is what a user wants to know of results, besides what their experiment planned.
type judgement struct {
	allPairs bool
	gates    []string
	prices   prices
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

// loadAll reads and compares one results directory, or two.
func (j judgement) loadAll(dirs []string) (*loaded, error) {
	if len(dirs) == 1 {
		return j.load(dirs[0])
	}
	if j.allPairs {
		return nil, errors.New("--all-pairs: of two directories, each target is compared with its counterpart; leave the flag out")
	}
	a, err := openResults(dirs[0])
	if err != nil {
		return nil, err
	}
	b, err := openResults(dirs[1])
	if err != nil {
		return nil, err
	}
	remark, err := j.onto(&b.Experiment, b.Runs)
	if err != nil {
		return nil, err
	}
	if err := j.prices.check(slices.Concat(a.Experiment.TargetNames(), b.Experiment.TargetNames())...); err != nil {
		return nil, err
	}
	a.Facts, b.Facts = j.prices.onto(a.Facts, a.Experiment.Targets), j.prices.onto(b.Facts, b.Experiment.Targets)
	c, err := compare.CompareUnpaired(compared(a), compared(b))
	if err != nil {
		return nil, err
	}
	c.Warnings = append(c.Warnings, nonEmpty(remark)...)
	second := compared(b)
	return &loaded{
		Input: report.Input{
			Comparison: c, Experiment: a.Experiment, Sites: a.Sites, Runs: a.Runs, Facts: a.Facts, Second: &second,
		},
		warnings: slices.Concat(a.Warnings, b.Warnings),
	}, nil
}

func nonEmpty(text string) []string {
	if text == "" {
		return nil
	}
	return []string{text}
}

func compared(r *store.Results) result.Results {
	return result.Results{
		Experiment: r.Experiment, Sessions: r.Sessions, Sites: r.Sites, Runs: r.Runs, Facts: r.Facts,
	}
}

// openResults reads a results directory, with the facts of all its sessions.
func openResults(dir string) (*store.Results, error) {
	r, err := store.Open(dir)
	if err == nil {
		r.Facts = compare.FactsOverSessions(compared(r))
	}
	return r, err
}

// collectAt is how much of what is still needed may be garbage, in percent: reading a hundred thousand
// runs takes 300 MB, and as much again at the runtime's default of 100.
const collectAt = 25

// load reads and compares one results directory.
func (j judgement) load(dir string) (*loaded, error) {
	debug.SetGCPercent(collectAt)
	r, err := openResults(dir)
	if err != nil {
		return nil, err
	}
	l := &loaded{warnings: r.Warnings}
	remark, err := j.onto(&r.Experiment, r.Runs)
	if err != nil {
		return nil, err
	}
	if err := j.prices.check(r.Experiment.TargetNames()...); err != nil {
		return nil, err
	}
	r.Facts = j.prices.onto(r.Facts, r.Experiment.Targets)
	c, err := compare.Compare(compared(r))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	c.Warnings = append(c.Warnings, nonEmpty(remark)...)
	l.Input = report.Input{
		Comparison: c, Experiment: r.Experiment, Sites: r.Sites, Runs: r.Runs, Facts: r.Facts, Histogram: r.Histogram,
	}
	return l, nil
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

func (l *loaded) warn(s Streams) {
	for _, w := range l.warnings {
		fmt.Fprintln(s.Err, "warning: "+w)
	}
}

// print writes the comparison to stdout in a format that checkOutput has seen.
func (l *loaded) print(s Streams, output string) error {
	if output == "table" {
		return report.Text(coloured(s.Out), l.Input, report.TextOptions{Colour: s.Color, All: l.every})
	}
	return findFormat(output).Write(s.Out, l.Input)
}

func findFormat(name string) report.Format {
	formats := report.Formats()
	return formats[slices.IndexFunc(formats, func(f report.Format) bool { return f.Name == name })]
}

// writeFormat writes the comparison into the results directory, and returns the file's path.
func (l *loaded) writeFormat(f report.Format, dir string) (string, error) {
	return store.WriteFile(dir, f.File, func(w io.Writer) error { return f.Write(w, l.Input) })
}
