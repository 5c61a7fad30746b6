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
	"github.com/knotmeter/knotmeter/internal/explain"
	"github.com/knotmeter/knotmeter/internal/report"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/store"
)

func newCompare(s Streams) *cobra.Command {
	var output string
	var verbose bool
	var j resultOptions
	c := &cobra.Command{
		Use:   "compare DIR…",
		Short: "Print the comparison of results directories",
		Long: `Print the comparison of a results directory. With several directories, compare
the targets of all of them, unpaired: whatever changed between the experiments is
then part of every difference. Each target is compared with the target of the same
name in the first directory, or else with the baseline there.

A gate that fails ends with status 3, one that is inconclusive with status 4.`,
		Example: `  knotmeter compare results/2026-12-01-a1b2 --verbose
  knotmeter compare results/2026-12-01-a1b2 -o markdown
  knotmeter compare results/a results/b results/c --label results/a='Cluster A'`,
		Args:              operands(1, -1),
		ValidArgsFunction: offerResults,
		RunE: func(c *cobra.Command, dirs []string) error {
			if err := checkOutput(output); err != nil {
				return err
			}
			l, err := await(c.Context(), func() (*loaded, error) { return j.load(dirs...) })
			if err != nil {
				return err
			}
			l.verbose = verbose
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
	f.BoolVarP(&verbose, "verbose", "v", false, verboseHelp)
	f.BoolVar(&j.allPairs, "all-pairs", false, "compare every target with every other, even if that was not planned")
	f.StringArrayVar(&j.gates, "gate", nil,
		"`CONDITION` fail unless this holds, instead of the experiment's gates; repeated")
	completeFlag(c, "output", outputs)
	return c
}

const verboseHelp = "in the table, also exploratory cases, notes, facts and times"

// fileOutputs are the formats that are written to files only.
var fileOutputs = []string{"html", "svg"}

// outputs are the formats of -o, which make sense on a terminal or in a pipe.
var outputs = slices.DeleteFunc(formatNames(), func(name string) bool { return slices.Contains(fileOutputs, name) })

var outputHelp = printedAs(outputs)

// printedAs returns the help of -o for these formats.
func printedAs(formats []string) string { return "`FORMAT` print as " + strings.Join(formats, ", ") }

func formatNames() []string {
	var names []string
	for _, f := range report.Formats() {
		names = append(names, f.Name)
	}
	return names
}

func checkOutput(name string) error {
	if slices.Contains(fileOutputs, name) {
		return fmt.Errorf("--output: %s is not printed; 'knotmeter report DIR --format %s' writes it to a file", name, name)
	}
	return oneOf("--output", name, outputs)
}

// loaded holds results directories and their comparison.
type loaded struct {
	report.Input
	warnings  []string
	verbose   bool // in the format table
	hideNodes bool // in files
}

// resultOptions are a user's options for comparing and rendering results, in addition to those of the experiment.
type resultOptions struct {
	allPairs  bool
	gates     []string
	metric    string
	prices    prices
	reference publishedTables
	matches   matches
	labels    labels
}

// register adds the flags that all commands that render results have in common.
func (j *resultOptions) register(f *pflag.FlagSet) {
	f.Var(&j.reference, "reference", referenceHelp)
	f.Var(&j.matches, "match", matchHelp)
	f.Var(&j.prices, "price", priceHelp)
	f.Var(&j.labels, "label", labelHelp)
	f.StringVar(&j.metric, "metric", "", "`METRIC` let verdicts be about this metric, such as mean, where cases have it")
}

// applyTo replaces the planned gates and pairs with the user's. If they differ, it returns warnings about that.
func (j resultOptions) applyTo(e *result.Experiment, runs []result.Run) (warnings []compare.Warning, err error) {
	if j.allPairs && !e.Design.AllPairs {
		e.Design.AllPairs = true
		warnings = append(warnings, compare.Warning{Code: compare.AllPairsChosen})
	}
	if len(j.gates) > 0 && !slices.Equal(j.gates, e.Gates) {
		e.Gates = j.gates
		if err := checkGates(*e, resultMetrics(*e, runs)); err != nil {
			return nil, err
		}
		warnings = append(warnings, compare.Warning{Code: compare.GatesChosen})
	}
	return warnings, nil
}

// choose applies --metric, if it is given, and returns warnings about that.
func (j resultOptions) choose(all []*store.Results) (warnings []compare.Warning, err error) {
	if j.metric == "" {
		return nil, nil
	}
	for _, r := range all {
		e, chosen, err := compare.ChooseMetric(r.Experiment, r.Runs, j.metric)
		if err != nil {
			return nil, fmt.Errorf("--metric: %w", err)
		}
		if r.Experiment = e; chosen != nil {
			warnings = append(warnings, *chosen)
		}
	}
	return warnings, nil
}

// gcPercent is the runtime's GC percentage: reading a hundred thousand runs takes 300 MB of live memory, an imported
// file several times its size, and as much again at the default of 100.
const gcPercent = 25

// load reads and compares results directories. For a single directory, it also finds causes of the differences.
func (j resultOptions) load(dirs ...string) (*loaded, error) {
	debug.SetGCPercent(gcPercent)
	parts, err := j.labels.parts(dirs)
	if err != nil {
		return nil, err
	}
	l := &loaded{Input: report.Input{Reference: j.reference, Matches: j.matches}}
	var all []*store.Results
	var targets []string // names before the experiments were joined
	for _, dir := range dirs {
		r, err := openResults(dir)
		if err != nil {
			return nil, err
		}
		all, targets = append(all, r), append(targets, r.Experiment.TargetNames()...)
		l.warnings = append(l.warnings, r.Warnings...)
	}
	chosen, err := j.choose(all)
	if err != nil {
		return nil, err
	}
	for i, r := range all {
		r.Facts = compare.SetPrices(j.prices, r.Facts, r.Experiment.Targets)
		parts[i].Results = r.Results
	}
	whole := compare.Joined{Results: all[0].Results}
	if len(dirs) > 1 {
		if whole, err = compare.Join(parts...); err != nil {
			return nil, err
		}
		whole.Facts = compare.SetPrices(j.prices, whole.Facts, whole.Experiment.Targets)
	}
	names := whole.Experiment.TargetNames()
	if err := errors.Join(j.prices.check(slices.Concat(names, targets)...),
		j.matches.check(j.reference, names)); err != nil {
		return nil, err
	}
	applied, err := j.applyTo(&whole.Experiment, whole.Runs)
	if err != nil {
		return nil, err
	}
	if len(dirs) > 1 {
		l.Comparison, err = whole.Compare()
	} else if l.Comparison, err = compare.Compare(whole.Results); err != nil {
		err = fmt.Errorf("%s: %w", dirs[0], err)
	} else {
		l.Causes = explain.Explain(whole.Results, l.Comparison)
		err = addConfirmations(dirs[0], whole.Experiment, l.Causes)
	}
	for _, w := range slices.CompactFunc(append(chosen, applied...), compare.Warning.Equal) {
		l.warnings = append(l.warnings, report.WarningText(w))
		l.Comparison.Warnings = append(l.Comparison.Warnings, w)
	}
	l.Experiment, l.Sites, l.Runs, l.Facts = whole.Experiment, whole.Sites, whole.Runs, whole.Facts
	l.Histogram = func(r *result.Run, name string) (result.Histogram, error) {
		of := slices.IndexFunc(parts, func(p compare.Part) bool { return p.Label == r.Experiment })
		return all[max(of, 0)].Histogram(r.ID, name)
	}
	return l, err
}

// openResults reads a results directory and merges the facts of its sessions.
func openResults(dir string) (*store.Results, error) {
	r, err := store.Open(dir)
	if err == nil {
		r.Facts = compare.FactsOverSessions(r.Results)
	}
	return r, err
}

// gateStatus returns an error with the status of failed or inconclusive gates; nil if all passed.
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
		return &statusError{statusGateOpen, errors.New("a gate is inconclusive:\n" + strings.Join(open, "\n"))}
	}
	return nil
}

// print writes the comparison to standard output in a format that checkOutput has checked.
func (l *loaded) print(s Streams, output string) error {
	if output == "table" {
		return report.Text(coloured(s.Out), l.Input, report.TextOptions{
			Colour: s.Color, Verbose: l.verbose, Width: min(s.Width, widestTable)})
	}
	return findFormat(output).Write(s.Out, l.Input)
}

func findFormat(name string) report.Format {
	return report.Formats()[slices.Index(formatNames(), name)]
}

// hidden returns a rendered text without the names of nodes, if they are to be hidden.
func (l *loaded) hidden(text string) string {
	if l.hideNodes {
		return report.HideNodes(l.Input, text)
	}
	return text
}

// writeFormat writes the comparison into a directory and returns the paths of the files. It removes stale files.
func (l *loaded) writeFormat(f report.Format, dir string) (paths []string, err error) {
	if f.Files == nil {
		path, err := store.WriteFile(dir, f.File, func(w io.Writer) error {
			var b strings.Builder
			if err := f.Write(&b, l.Input); err != nil {
				return err
			}
			_, err := io.WriteString(w, l.hidden(b.String()))
			return err
		})
		return []string{path}, err
	}
	files, err := f.Files(l.Input)
	if err != nil {
		return nil, err
	}
	written := map[string]bool{}
	for _, file := range files {
		written[file.Name] = true
		path, err := store.WriteFile(dir, f.File+file.Name, func(w io.Writer) error {
			_, err := io.WriteString(w, l.hidden(file.Text))
			return err
		})
		if err != nil {
			return nil, err
		}
		paths = append(paths, path)
	}
	stale := func(name string) bool { return f.Makes(name) && !written[name] }
	return paths, store.RemoveFiles(dir, strings.TrimSuffix(f.File, "/"), stale)
}
