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

// An experiment is what run needs to begin or to go on.
type experiment struct {
	config runner.Config // its targets are there from when they are opened, the rest when all is known
	writer *store.Writer
	dir    string
	before *store.Results // nil: it is a new one
}

// changes says what a session found changed since those before it.
func (x *experiment) changes(now result.Session) []string {
	if x.before == nil || now.Start.IsZero() {
		return nil
	}
	if text := compare.ChangesSince(x.before.Results, now); text != "" {
		return []string{"conditions changed since the session before: " + text}
	}
	return nil
}

// close ends the targets, and warns of what may be left of them.
func (x *experiment) close(errs io.Writer) {
	for _, t := range x.config.Targets {
		// Other errors are of a holder that has ended or ends now; there is nothing to be done about them.
		if err := t.Places.Close(); errors.Is(err, targets.ErrLeft) {
			warn(errs, fmt.Sprintf("%s: %v; remove it with: knotmeter clean '%s'", t.Name, err, t.Spec))
		}
	}
	if x.writer != nil {
		_ = x.writer.Close()
	}
	x.config.Targets, x.writer = nil, nil
}

// prepare resolves a new experiment, or reads the one that is to be resumed, reaches its targets and opens its
// directory.
func (o *options) prepare(ctx context.Context, s Streams, version string) (_ *experiment, err error) {
	x := &experiment{dir: cmp.Or(o.resume, o.out)}
	defer func() {
		if err != nil {
			x.close(s.Err)
		}
	}()
	find, open := x.create, x.start
	if o.resume != "" {
		find, open = x.recall, x.takeUp
	}
	if err := find(ctx, o, s, version); err != nil {
		return nil, err
	}
	if err := x.agree(ctx, s, &o.yes); err != nil {
		return nil, err
	}
	warnings, err := x.begin(ctx, s.Err, o.share)
	if err != nil {
		return nil, err
	}
	return x, open(o, warnings)
}

// agree asks for consent to an experiment, says what it reaches, and says before that which clusters it is about.
func (x *experiment) agree(ctx context.Context, s Streams, yes *bool) error {
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

// resultsParent is where results directories are made unless --out says otherwise.
const resultsParent = "results"

// create resolves a new experiment.
func (x *experiment) create(_ context.Context, o *options, s Streams, version string) error {
	if err := x.resolve(o, version); err != nil {
		return err
	}
	e := x.config.Experiment
	x.dir = cmp.Or(x.dir, filepath.Join(resultsParent, e.ID))
	named := errors.Join(o.prices.check(e.TargetNames()...), o.told.check(e.TargetNames()...),
		o.matches.check(o.reference, e.TargetNames()))
	return errors.Join(named, warnOfDesign(s.Err, e))
}

// start makes the directory of a new experiment.
func (x *experiment) start(o *options, warnings []string) (err error) {
	x.config.Experiment.Warnings = warnings
	if x.writer, err = store.Create(x.dir, x.config.Experiment); err != nil {
		return err
	}
	x.config.Sink = toldSink{pricedSink{x.writer, o.prices}, o.told}
	return remember(x.config.Experiment)
}

// recall reads the experiment that is to be resumed and opens everything that it names, if the user agrees to that.
func (x *experiment) recall(ctx context.Context, o *options, s Streams, version string) error {
	r, err := store.Open(x.dir)
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
	decide, err := compare.Stopping(e)
	if err != nil {
		return fmt.Errorf("--resume: %s: %w", x.dir, err)
	}
	tool, err := findTool(e.Tool)
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
	if err := o.trust(ctx, s, r, specs); err != nil { // before a target is made, which may read files
		return err
	}
	if err := x.openTargets(specs); err != nil {
		return err
	}
	x.before, x.config.EarlierFacts = r, r.Facts
	x.configure(e, tool, decide, version)
	return nil
}

// takeUp opens the directory of an experiment for its next runs. It has to be the one that was recalled.
func (x *experiment) takeUp(_ *options, warnings []string) error {
	w, now, err := store.Resume(x.dir) // not before: it writes
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
	if err := remember(now.Experiment); err != nil {
		return err
	}
	for _, text := range warnings {
		if err := w.WriteWarning(text); err != nil {
			return err
		}
	}
	return nil
}

// resolve turns the flags into the plan of an experiment: as the runner does, with what the runner does not know, which
// are gates and the rule by which cases stop.
func (x *experiment) resolve(o *options, version string) error {
	suites, err := findSuites(o.suites)
	if err != nil {
		return err
	}
	tool, err := findTool(o.tool)
	if err != nil {
		return err
	}
	specs, err := o.kinds.specs(o.targets)
	if err != nil {
		return err
	}
	for i, spec := range specs {
		specs[i] = registry.Pinned(spec)
	}
	if err := x.openTargets(specs); err != nil {
		return err
	}
	restore, err := o.switches(x.config.Targets)
	if err != nil {
		return err
	}
	now := time.Now()
	e, err := runner.Resolve(runner.Options{
		ID: store.NewID(now), Version: version, Created: now, Seed: cmp.Or(o.seed, drawSeed()),
		Targets: x.config.Targets, Baseline: o.baseline, Suites: o.asked(suites), Cases: o.cases, Primary: o.primaries,
		MaxRate: float64(o.maxRate), Metric: o.metric,
		Families: registry.Families(), Tool: tool, Design: o.design(suites), Gates: o.gates,
		Restore: restore,
	})
	if err != nil {
		return err
	}
	if err := checkGates(e, metricsOf(tool)); err != nil {
		return err
	}
	decide, err := compare.Stopping(e)
	if errors.Is(err, stats.ErrLooks) {
		err = fmt.Errorf("--looks: %w", err)
	}
	x.configure(e, tool, decide, version)
	return err
}

// configure is about an experiment whose targets are opened.
func (x *experiment) configure(e result.Experiment, tool family.Tool, decide runner.Decide, version string) {
	c := &x.config
	c.Experiment, c.Families, c.Tool, c.Version = e, registry.Families(), tool, version
	c.Decide, c.Check = decide, checkRun
}

// begin reaches and claims every target of an experiment, before anything is written, and prints the warnings.
func (x *experiment) begin(ctx context.Context, errs io.Writer, share bool) (warnings []string, err error) {
	warnings, err = runner.Begin(ctx, x.config, share)
	if err != nil && ctx.Err() != nil {
		err = stopped(ctx, " before the first run; nothing was written")
	}
	warn(errs, warnings...)
	return warnings, err
}

// checkRun says what a run cannot be that ended well.
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

// drawSeed draws a seed that is short enough to be typed again.
func drawSeed() uint64 {
	var b [8]byte
	rand.Read(b[:]) // never fails
	return uint64(binary.LittleEndian.Uint32(b[:]))
}

// openTargets makes the targets; those that it made are there also after an error.
func (x *experiment) openTargets(specs []targets.Spec) error {
	for _, spec := range specs {
		places, err := registry.Target(spec)
		if err != nil {
			return err
		}
		named := result.Target{Name: spec.Label(), Spec: spec.Text}
		x.config.Targets = append(x.config.Targets, runner.Target{Target: named, Places: places})
	}
	return nil
}

// openTarget makes the target that a text names; it touches nothing until it is used.
func openTarget(text string) (targets.Target, error) {
	spec, err := targets.ParseSpec(text)
	if err != nil {
		return nil, err
	}
	return registry.Target(spec)
}
