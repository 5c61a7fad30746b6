package cli

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/knotmeter/knotmeter/internal/audit"
	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/prose"
	"github.com/knotmeter/knotmeter/internal/registry"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/runner"
	"github.com/knotmeter/knotmeter/internal/stats"
	"github.com/knotmeter/knotmeter/internal/store"
	"github.com/knotmeter/knotmeter/internal/target"
	"github.com/knotmeter/knotmeter/internal/userfile"
)

func newRun(s Streams, version string) *cobra.Command {
	var o options
	c := &cobra.Command{
		Use:   "run",
		Short: "Measure and compare targets",
		Long: `Measure every case on every target in randomised blocks, each in a fresh site,
and compare the targets with the baseline. After 8, 11, 15, 21 and 30 blocks (--looks)
a case stops if its comparisons are decided; the error probability counts every look.
The results directory is written as the runs end; an interrupted experiment goes on
with --resume.`,
		Example: `  knotmeter run --target lab:native --target lab:vxlan --suite network:quick --budget 5m
  knotmeter run --target lab:native --target 'lab:native?label=again' --blocks 11
  knotmeter run -f experiment.yaml --gate 'pod-pod/*/tcp-rr p99 <= +5%' -o junit`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.readFile(c.Flags()); err != nil {
				return err
			}
			return o.run(c.Context(), s, version)
		},
	}
	o.register(c, runSettings)
	return c
}

// run carries out the experiment and prints the comparison, also of one that was cut short.
func (o *options) run(ctx context.Context, s Streams, version string) error {
	if err := o.check(); err != nil {
		return err
	}
	if err := checkOutput(o.output); err != nil {
		return err
	}
	show, err := newProgress(o.progress, s)
	if err != nil {
		return err
	}
	x, err := o.prepare(ctx, s.Err, version)
	if err != nil {
		return err
	}
	defer x.close(s.Err)
	x.config.Events = show
	summary, err := runner.Run(ctx, x.config)
	for _, w := range append(x.changes(summary.Session), summary.Warnings...) {
		fmt.Fprintln(s.Err, "warning: "+w)
	}
	if err != nil {
		return &statusError{statusRunFailed, fmt.Errorf("%w; what was measured is in %s; when that is mended, go on with: %s",
			err, x.dir, o.again(x))}
	}
	gates, page, err := o.conclude(s, x, summary)
	if err != nil {
		return err
	}
	return worst(o.outcome(x, summary), gates, page)
}

// worst joins two ends of an experiment, with the status of the one that counts: an interruption,
// then a failed gate, which is a fact whatever else went wrong, then failed runs, then an open gate.
func worst(ends ...error) error {
	order := []int{statusInterrupted, statusGateFailed, statusRunFailed, statusGateOpen}
	first := len(order)
	for _, err := range ends {
		if e, ok := errors.AsType[*statusError](err); ok {
			first = min(first, slices.Index(order, e.status))
		}
	}
	all := errors.Join(ends...)
	if all == nil {
		return nil
	}
	return &statusError{order[first], all}
}

// conclude compares what there is, prints the comparison and writes the report, in this order, so that a page that
// cannot be written costs nothing else. The first error is what became of the gates, the second of the page.
func (o *options) conclude(s Streams, x *experiment, summary runner.Summary) (gates, page, err error) {
	e, err := judgement{}.load(x.dir)
	if err != nil {
		return nil, nil, err
	}
	e.Reference = o.reference
	if err := e.print(s, o.output); err != nil {
		return nil, nil, err
	}
	fmt.Fprintf(s.Err, "%d runs, %.0f %% of the time measuring.\nAgain: %s compare %s\n",
		summary.Runs, 100*summary.Share(), s.caller.command(), x.dir)
	report, err := e.writeFormat(findFormat("html"), x.dir)
	if err != nil {
		page = &statusError{statusRunFailed, fmt.Errorf("the report was not written: %w; the results are in %s", err, x.dir)}
		return gateStatus(e.Comparison), page, nil
	}
	fmt.Fprintf(s.Err, "Report: %s\n", report)
	return gateStatus(e.Comparison), nil, nil
}

// again is the command that resumes an experiment. What was agreed to has to be again.
func (o *options) again(x *experiment) string {
	command := "knotmeter run --resume " + x.dir
	if o.yes {
		command += " --yes"
	}
	return command
}

// outcome is the error that the experiment's end stands for.
func (o *options) outcome(x *experiment, summary runner.Summary) error {
	switch {
	case summary.Stopped == runner.StopInterrupted:
		return &statusError{statusInterrupted, fmt.Errorf("interrupted; go on with: %s", o.again(x))}
	case summary.Stopped == runner.StopUnavailable:
		return &statusError{statusRunFailed, fmt.Errorf("%s; when that is mended, go on with: %s",
			summary.Unavailable, o.again(x))}
	case summary.GivenUp > 0:
		return &statusError{statusRunFailed, fmt.Errorf("%d cases were given up after failed attempts; not_measured says why",
			summary.GivenUp)}
	case summary.Runs+len(x.config.Earlier) == 0 && len(summary.NotMeasured) > 0:
		return &statusError{statusRunFailed, fmt.Errorf("nothing was measured: %s", summary.NotMeasured[0].Reason)}
	}
	return nil
}

// An experiment is what run needs to begin or to go on.
type experiment struct {
	config runner.Config
	writer *store.Writer
	dir    string
	places []target.Target
	specs  []target.Spec  // of places
	before result.Results // of a resumed experiment
}

// changes says what a session found changed since those before it.
func (x *experiment) changes(now result.Session) []string {
	if text := compare.ChangesSince(x.before, now); text != "" && !now.Start.IsZero() {
		return []string{"conditions changed since the session before: " + text}
	}
	return nil
}

// close ends the targets, and tells what may be left of them.
func (x *experiment) close(errs io.Writer) {
	for i, t := range x.places {
		// Other errors are of a holder that has ended or ends now; there is nothing to be done about them.
		if err := t.Close(); errors.Is(err, target.ErrLeft) {
			fmt.Fprintf(errs, "warning: %s: %v; remove it with: knotmeter clean --target '%s'\n",
				x.specs[i].Label(), err, x.specs[i].Text)
		}
	}
	if x.writer != nil {
		_ = x.writer.Close()
	}
}

// prepare resolves a new experiment, or reads the one that is to be resumed, and opens its directory.
func (o *options) prepare(ctx context.Context, errs io.Writer, version string) (_ *experiment, err error) {
	x := &experiment{dir: o.resume}
	defer func() {
		if err != nil {
			x.close(errs)
		}
	}()
	if o.resume != "" {
		return x, o.resumeInto(ctx, errs, x, version)
	}
	ro, err := o.resolvable(x, version)
	if err != nil {
		return x, err
	}
	e, decide, err := resolve(ro)
	if err == nil {
		err = errors.Join(o.prices.check(e.TargetNames()...), consent(concerns(e, ro.Targets), o.yes), warnOfDesign(errs, e))
	}
	if err != nil {
		return x, err
	}
	x.dir = o.out
	if x.dir == "" {
		x.dir = filepath.Join("results", e.ID)
	}
	announce(errs, destinations(e, ro.Targets))
	if e.Warnings, err = o.begin(ctx, errs, e, ro.Targets, ro.Tool); err != nil {
		return x, err
	}
	x.config = runner.Config{
		Experiment: e, Targets: ro.Targets, Families: registry.Families(), Tool: ro.Tool, Version: version, Decide: decide, Check: checkRun}
	if x.writer, err = store.Create(x.dir, e); err != nil {
		return x, err
	}
	if err := x.seal(); err != nil {
		return x, err
	}
	x.config.Sink = o.prices.recorded(x.writer)
	return x, nil
}

// resolve is the runner's, with what the runner does not know: gates, and the rule by which cases stop.
func resolve(ro runner.Options) (result.Experiment, runner.Decide, error) {
	e, err := runner.Resolve(ro)
	if err != nil {
		return e, nil, err
	}
	if err := checkGates(e, metricsOf(ro.Tool)); err != nil {
		return e, nil, err
	}
	decide, err := compare.Stopping(e)
	if errors.Is(err, stats.ErrLooks) {
		err = fmt.Errorf("--looks: %w", err)
	}
	return e, decide, err
}

// begin reaches and claims every target of an experiment, before anything is written, and tells the warnings.
func (o *options) begin(
	ctx context.Context, errs io.Writer, e result.Experiment, targets []runner.Target, by family.Tool,
) (warnings []string, err error) {
	warnings, err = runner.Begin(ctx, e, targets, registry.Families(), by, o.share)
	if err != nil && ctx.Err() != nil {
		err = &statusError{statusInterrupted, errors.New("interrupted before the first run; nothing was written")}
	}
	for _, w := range warnings {
		fmt.Fprintln(errs, "warning: "+w)
	}
	return warnings, err
}

// checkRun says what a run cannot be that ended well.
func checkRun(r result.Run) []result.Warning {
	var reasons []result.Warning
	for _, f := range audit.CheckRun(r) {
		if f.Severity == audit.Error {
			text := fmt.Sprintf("audit: %s: %s", f.Rule, strings.TrimSuffix(f.Saw, "."))
			reasons = append(reasons, result.Warning{Code: result.AuditError + result.Code(f.Rule), Text: text})
		}
	}
	return reasons
}

// resumeInto opens an existing directory and everything that its experiment names.
func (o *options) resumeInto(ctx context.Context, errs io.Writer, x *experiment, version string) error {
	r, err := store.Open(o.resume)
	if err != nil {
		return fmt.Errorf("--resume: %w", err)
	}
	e := r.Experiment
	if e.Imported != "" {
		return fmt.Errorf("--resume: %s holds numbers of another tool (%s); there is nothing to go on with",
			o.resume, e.Imported)
	}
	decide, err := compare.Stopping(e)
	if err != nil {
		return fmt.Errorf("--resume: %s: %w", o.resume, err)
	}
	generator, err := findTool(e.Tool)
	if err != nil {
		return err
	}
	texts := make([]string, len(e.Targets))
	for i, t := range e.Targets {
		texts[i] = t.Spec
	}
	specs, err := o.kinds.specs(texts)
	if err != nil {
		return err
	}
	if err := o.trust(errs, r, specs); err != nil { // before a target is made, which may read files
		return err
	}
	targets, err := x.openTargets(specs)
	if err != nil {
		return err
	}
	if err := consent(concerns(e, targets), o.yes); err != nil {
		return fmt.Errorf("--resume: %w", err)
	}
	announce(errs, destinations(e, targets))
	warnings, err := o.begin(ctx, errs, e, targets, generator)
	if err != nil {
		return err
	}
	agreed := r
	if x.writer, r, err = store.Resume(o.resume); err != nil { // not before: it writes
		return fmt.Errorf("--resume: %w", err)
	}
	if !r.SameExperiment(agreed) {
		return fmt.Errorf("--resume: %s was changed at this moment; try again", o.resume)
	}
	x.before = compared(r)
	x.config = runner.Config{Experiment: e, Targets: targets, Families: registry.Families(), Tool: generator,
		Sink: x.writer, Version: version, Earlier: r.Runs, EarlierSites: r.Sites, EarlierFacts: r.Facts,
		Decide: decide, Check: checkRun}
	if err := x.seal(); err != nil {
		return err
	}
	for _, w := range warnings {
		if err := x.writer.WriteWarning(w); err != nil {
			return err
		}
	}
	return nil
}

// resolvable turns the flags into what the runner resolves an experiment from.
func (o *options) resolvable(x *experiment, version string) (runner.Options, error) {
	suites, err := findSuites(o.suites)
	if err != nil {
		return runner.Options{}, err
	}
	generator, err := findTool(o.tool)
	if err != nil {
		return runner.Options{}, err
	}
	specs, err := o.kinds.specs(o.targets)
	if err != nil {
		return runner.Options{}, err
	}
	targets, err := x.openTargets(specs)
	if err != nil {
		return runner.Options{}, err
	}
	now := time.Now()
	if o.seed == 0 {
		o.seed = drawSeed()
	}
	return runner.Options{
		ID: store.NewID(now), Version: version, Created: now,
		Targets: targets, Baseline: o.baseline, Suites: o.asked(suites), Cases: o.cases, Primary: o.primaries,
		Families: registry.Families(), Tool: generator, Seed: o.seed, Design: o.design(suites), Gates: o.gates,
	}, nil
}

// drawSeed draws a seed that is short enough to be typed again.
func drawSeed() uint64 {
	var b [8]byte
	rand.Read(b[:]) // never fails
	return uint64(binary.LittleEndian.Uint32(b[:]))
}

// openTargets makes the targets; those that it made are in x also after an error.
func (x *experiment) openTargets(specs []target.Spec) ([]runner.Target, error) {
	var targets []runner.Target
	for _, spec := range specs {
		places, err := registry.Target(spec)
		if err != nil {
			return nil, fmt.Errorf("--target: %w", err)
		}
		x.places, x.specs = append(x.places, places), append(x.specs, spec)
		targets = append(targets, runner.Target{Target: result.Target{Name: spec.Label(), Spec: spec.Text}, Places: places})
	}
	return targets, nil
}

// openTarget makes the target that a text names; it touches nothing until it is used.
func openTarget(text string) (target.Spec, target.Target, error) {
	spec, err := target.ParseSpec(text)
	if err != nil {
		return spec, nil, err
	}
	t, err := registry.Target(spec)
	return spec, t, err
}

func findTool(names string) (family.Tool, error) {
	all := registry.Families().Tools()
	chosen, err := family.Only(all, names)
	if err != nil {
		return nil, fmt.Errorf("--tool: %w", err)
	}
	set := chosen.(family.Set)
	for _, f := range registry.Families() {
		alone := len(f.Tools) == 1 // there is nothing to choose
		if alone && !slices.ContainsFunc(set, func(c family.Tool) bool { return c.Name() == f.Tools[0].Name() }) {
			set = append(set, f.Tools[0])
		}
	}
	return set, nil
}

// findSuites finds the suites with these names, such as network:quick and storage:jobs.fio, each once.
func findSuites(names []string) ([]family.Suite, error) {
	known := registry.Families().Suites()
	var found []family.Suite
	for n, name := range names {
		if slices.Contains(names[:n], name) {
			continue
		}
		i := slices.IndexFunc(known, func(s family.Suite) bool { return s.Name == name })
		if i >= 0 {
			found = append(found, known[i])
			continue
		}
		s, err := suiteOfFile(name)
		if errors.Is(err, family.ErrNoCase) {
			err = fmt.Errorf("there is no %q; there are %s", name, prose.Choices(name, suiteNames(known)))
		}
		if err != nil {
			return nil, fmt.Errorf("--suite: %w", err)
		}
		found = append(found, s)
	}
	return found, nil
}

func suiteNames(known []family.Suite) []string {
	var names []string
	for _, s := range known {
		names = append(names, s.Name)
	}
	for _, f := range registry.Families() {
		if f.File != nil {
			names = append(names, f.Name+":FILE")
		}
	}
	return names
}

// suiteOfFile makes a suite of a file such as that of storage:jobs.fio. The error Is family.ErrNoCase if nobody makes
// one.
func suiteOfFile(text string) (family.Suite, error) {
	kind, file, _ := strings.Cut(text, ":")
	for _, f := range registry.Families() {
		if f.File == nil || f.Name != kind || file == "" {
			continue
		}
		data, err := userfile.Read(file, userfile.Limit)
		if errors.Is(err, os.ErrNotExist) && !strings.ContainsAny(file, "./") {
			break // a word that is no suite, rather than a file that is not there
		}
		if err != nil {
			return family.Suite{}, err
		}
		return f.File.Read(file, data)
	}
	return family.Suite{}, family.ErrNoCase
}
