package cli

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/knotmeter/knotmeter/internal/audit"
	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/registry"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/runner"
	"github.com/knotmeter/knotmeter/internal/stats"
	"github.com/knotmeter/knotmeter/internal/store"
	"github.com/knotmeter/knotmeter/internal/targets"
)

// An experiment holds everything needed to start or resume an experiment.
type experiment struct {
	config runner.Config // Targets is set as targets are opened, the rest by configure
	writer *store.Writer
	dir    string
	before *store.Results // results of earlier sessions; nil for a new experiment
}

// changes returns a warning about conditions that changed since earlier sessions.
func (x *experiment) changes(now result.Session) []string {
	if x.before == nil || now.Start.IsZero() {
		return nil
	}
	if text := compare.ChangesSince(x.before.Results, now); text != "" {
		return []string{"conditions changed since the session before: " + text}
	}
	return nil
}

// close closes the targets and the results directory, and warns of leftovers on targets.
func (x *experiment) close(errs io.Writer) {
	for _, t := range x.config.Targets {
		// Other errors come from a holder that has ended or is ending, and need no action.
		if err := t.Places.Close(); errors.Is(err, targets.ErrLeft) {
			warn(errs, fmt.Sprintf("%s: %v; remove it with: knotmeter clean '%s'", t.Name, err, t.Spec))
		}
	}
	if x.writer != nil {
		_ = x.writer.Close()
	}
	x.config.Targets, x.writer = nil, nil
}

// prepare resolves a new experiment or reads the one to resume, connects to its targets and opens its directory.
func (o *options) prepare(ctx context.Context, s Streams, version string) (_ *experiment, err error) {
	x := &experiment{dir: cmp.Or(o.resume, o.out)}
	defer func() {
		if err != nil {
			x.close(s.Err)
		}
	}()
	find, open := x.create, x.start
	if o.resume != "" {
		find, open = x.readResumed, x.resumeWriting
	}
	if err := find(ctx, o, s, version); err != nil {
		return nil, err
	}
	if err := x.askConsent(ctx, s, &o.yes); err != nil {
		return nil, err
	}
	warnings, err := x.begin(ctx, s.Err, o.share)
	if err != nil {
		return nil, err
	}
	return x, open(o, warnings)
}

// askConsent prints the clusters of an experiment, asks for consent, and prints the destinations of requests and the
// commands that will run.
func (x *experiment) askConsent(ctx context.Context, s Streams, yes *bool) error {
	e, targets := x.config.Experiment, x.config.Targets
	if err := announceTargets(s.Err, targets); err != nil {
		return err
	}
	if err := consent(ctx, s, concerns(e, targets), yes); err != nil {
		return err
	}
	announce(s.Err, destinations(e, targets))
	announceSwitches(s.Err, e)
	return nil
}

// resultsParent is the directory in which results directories are created by default.
const resultsParent = "results"

// create resolves a new experiment.
func (x *experiment) create(ctx context.Context, o *options, s Streams, version string) error {
	if err := x.resolve(ctx, o, version); err != nil {
		return err
	}
	e := x.config.Experiment
	x.dir = cmp.Or(x.dir, filepath.Join(resultsParent, e.ID))
	named := errors.Join(o.prices.check(e.TargetNames()...), o.facts.check(e.TargetNames()...),
		o.matches.check(o.reference, e.TargetNames()))
	return errors.Join(named, warnOfDesign(s.Err, e))
}

// start creates the directory of a new experiment.
func (x *experiment) start(o *options, warnings []result.Warning) (err error) {
	x.config.Experiment.Warnings = warnings
	if x.writer, err = store.Create(x.dir, x.config.Experiment); err != nil {
		return err
	}
	x.config.Sink = statedSink{pricedSink{x.writer, o.prices}, o.facts}
	return rememberExperiment(x.config.Experiment)
}

// readResumed reads the experiment to resume and, if the user consents, opens its targets.
func (x *experiment) readResumed(ctx context.Context, o *options, s Streams, version string) error {
	r, err := await(ctx, func() (*store.Results, error) { return store.Open(x.dir) })
	if err != nil {
		return fmt.Errorf("--resume: %w", err)
	}
	e := r.Experiment
	if e.Imported != "" {
		return fmt.Errorf("--resume: %s was imported from another tool (%s) and cannot be resumed",
			x.dir, e.Imported)
	}
	if err := o.matches.check(o.reference, e.TargetNames()); err != nil {
		return err
	}
	tool, err := findTool(e.Tool)
	if err != nil {
		return err
	}
	decide, err := checkPlan(e, tool)
	if err != nil {
		return fmt.Errorf("--resume: %s: %w; restore the file", filepath.Join(x.dir, store.ExperimentFile), err)
	}
	texts := make([]string, len(e.Targets))
	for i, t := range e.Targets {
		texts[i] = t.Spec.Text
	}
	specs, err := await(ctx, func() ([]result.Spec, error) { return parseTargets(texts) })
	if err != nil {
		return err
	}
	// First, because making a target may read files.
	if err := trust(ctx, s, "--resume", x.dir, e, specs, o.yes); err != nil {
		return err
	}
	if err := x.openTargets(ctx, specs); err != nil {
		return err
	}
	warn(s.Err, r.Warnings...)
	x.before, x.config.EarlierFacts = r, r.Facts
	x.configure(e, tool, decide, version)
	return nil
}

// resumeWriting opens the directory of a resumed experiment for writing. The experiment must not have changed since it
// was read.
func (x *experiment) resumeWriting(_ *options, warnings []result.Warning) error {
	w, now, err := store.Resume(x.dir) // not earlier, because it writes
	if err != nil {
		return fmt.Errorf("--resume: %w", err)
	}
	x.writer, x.config.Sink = w, w
	if !now.SameExperiment(x.before) {
		return fmt.Errorf("--resume: %s changed while it was read; try again", x.dir)
	}
	x.before = now
	x.config.Earlier, x.config.EarlierSites, x.config.EarlierFacts = now.Runs, now.Sites, now.Facts
	x.config.EarlierSwitches = now.Switches
	for _, warning := range warnings {
		if err := w.WriteWarning(warning); err != nil {
			return err
		}
	}
	return nil
}

// resolve turns the flags into the plan of an experiment. In addition to runner.Resolve it checks the gates and sets
// the stopping rule. It heeds ctx also in what reads files or asks servers without it.
func (x *experiment) resolve(ctx context.Context, o *options, version string) error {
	found, err := await(ctx, func() (*experiment, error) {
		found := *x
		return &found, found.resolveFlags(ctx, o, version)
	})
	if found != nil {
		*x = *found // also after an error, for close
	}
	return err
}

func (x *experiment) resolveFlags(ctx context.Context, o *options, version string) error {
	suites, err := findSuites(o.suites)
	if err != nil {
		return err
	}
	tool, err := findTool(o.tool)
	if err != nil {
		return err
	}
	specs, err := o.specs()
	if err != nil {
		return err
	}
	for i, spec := range specs {
		specs[i] = registry.Pinned(spec)
	}
	if err := x.openTargets(ctx, specs); err != nil {
		return err
	}
	restore, err := o.switches(x.config.Targets)
	if err != nil {
		return err
	}
	now := time.Now()
	e, err := runner.Resolve(ctx, runner.Options{
		ID: store.NewID(now), Version: version, Created: now, Seed: cmp.Or(o.seed, drawSeed()),
		Targets: x.config.Targets, Baseline: o.baseline, Suites: o.paced(suites), Cases: o.cases, Primary: o.primaries,
		MaxRate: float64(o.maxRate), Metric: o.metric,
		Families: registry.Families(), Tool: tool, Design: o.design(suites), Gates: o.gates,
		Restore: restore,
	})
	if err != nil {
		return err
	}
	decide, err := checkPlan(e, tool)
	x.configure(e, tool, decide, version)
	return err
}

// checkPlan returns the stopping rule of an experiment, or an error if its plan is invalid. The plan comes from flags,
// or from a results directory that anyone may have edited.
func checkPlan(e result.Experiment, tool family.Tool) (runner.Decide, error) {
	if err := runner.Check(e); err != nil {
		return nil, err
	}
	if err := checkGates(e, toolMetrics(tool)); err != nil {
		return nil, err
	}
	decide, err := compare.Stopping(e)
	if errors.Is(err, stats.ErrLooks) {
		err = fmt.Errorf("--looks: %w", err)
	}
	return decide, err
}

// configure sets the configuration of an experiment whose targets are open.
func (x *experiment) configure(e result.Experiment, tool family.Tool, decide runner.Decide, version string) {
	c := &x.config
	c.Experiment, c.Families, c.Tool, c.Version = e, registry.Families(), tool, version
	c.Decide, c.Check = decide, checkRun
}

// begin connects to and claims every target of an experiment, before anything is written, and prints the warnings.
func (x *experiment) begin(ctx context.Context, errs io.Writer, share bool) (warnings []result.Warning, err error) {
	warnings, err = runner.Begin(ctx, x.config, share)
	if err != nil && ctx.Err() != nil {
		err = stopped(ctx, " before the first run; nothing was written")
	}
	warn(errs, result.Texts(warnings)...)
	return warnings, err
}

// checkRun returns the audit errors of a run that ended without errors, which make it invalid.
func checkRun(of result.Case, r result.Run) []result.Warning {
	var reasons []result.Warning
	for _, f := range audit.CheckRun(of, r) {
		if f.Severity == audit.Error {
			text := fmt.Sprintf("audit: %s: %s", f.Rule, strings.TrimSuffix(f.Saw, "."))
			reasons = append(reasons, result.Warning{Code: result.AuditError + result.Code(f.Rule), Text: text})
		}
	}
	return reasons
}

// drawSeed returns a random seed of 32 bits, which is short enough to be typed.
func drawSeed() uint64 {
	var b [8]byte
	rand.Read(b[:]) // never fails
	return uint64(binary.LittleEndian.Uint32(b[:]))
}

// openTargets opens the targets. After an error, those opened before it remain in the configuration.
func (x *experiment) openTargets(ctx context.Context, specs []result.Spec) error {
	for _, spec := range specs {
		places, err := await(ctx, func() (targets.Target, error) { return registry.Target(spec) }) // it may read files
		if err != nil {
			return err
		}
		named := result.Target{Name: spec.Label(), Spec: spec}
		x.config.Targets = append(x.config.Targets, runner.Target{Target: named, Places: places})
	}
	return nil
}

// openTarget returns the target that text names. It has no effect until it is used.
func openTarget(text string) (targets.Target, error) {
	spec, err := result.ParseSpec(text)
	if err != nil {
		return nil, err
	}
	return registry.Target(spec)
}
