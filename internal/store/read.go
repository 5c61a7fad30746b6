package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/knotmeter/knotmeter/internal/result"
)

// Results are the contents of a results directory. Histograms of the runs are not encoded; [Results.Histogram] loads
// one.
type Results struct {
	result.Results // sites in the order of closing, some missing after a crash; imported results have no sessions

	Path     string
	Warnings []string // each a sentence without full stop

	experiment []byte // experiment.json

	// Sizes in bytes of the NDJSON files, up to the last complete line.
	runsSize, sessionsSize, switchesSize, sitesSize int64

	switchCutOff bool           // the last of Switches is not in its file: it began, and the program did not end it
	runIndex     map[string]int // of Runs, by run ID
}

// Open reads a results directory, even while it is being written. Unknown fields are ignored. An error about the
// content names the file and line, and wraps ErrNewer, ErrOlder, ErrFormat or fs.ErrNotExist.
func Open(path string) (*Results, error) {
	d, err := openDir(path)
	if err != nil {
		return nil, err
	}
	defer d.close()
	return d.readResults()
}

func (d dir) readResults() (*Results, error) {
	r := &Results{Path: d.path, Results: result.Results{Facts: map[string][]result.Fact{}}}
	if err := r.readExperiment(d); err != nil {
		return nil, err
	}
	// Imported runs have no sites and refer to no session.
	if err := d.parseLines(SessionsFile, r.parseSessions); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err := d.parseLines(SwitchesFile, r.parseSwitches); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	switching, err := d.read(SwitchingFile)
	if err == nil {
		err = r.parseSwitching(d.full(SwitchingFile), switching)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err := d.parseLines(SitesFile, r.parseSites); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	err = d.parseLines(RunsFile, r.parseRuns)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s has no %s; without its runs an experiment cannot be read: %w",
			r.Path, RunsFile, fs.ErrNotExist)
	}
	if err != nil {
		return nil, err
	}
	for _, t := range r.Experiment.Targets {
		if err := r.readFacts(d, t.Name); err != nil {
			return nil, err
		}
	}
	return r, nil
}

func (r *Results) readExperiment(d dir) error {
	data, err := d.read(ExperimentFile)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s has no %s, so it is not a results directory: %w", r.Path, ExperimentFile, fs.ErrNotExist)
	}
	if err != nil {
		return err
	}
	if r.Experiment, err = parseExperiment(d.full(ExperimentFile), data); err != nil {
		return err
	}
	r.experiment = data
	return nil
}

// parseSwitching adds the switch whose command has begun and not ended, as one that was cut off. While the experiment
// is being measured it may still run.
func (r *Results) parseSwitching(name string, data []byte) error {
	var s result.Switch
	if err := json.Unmarshal(data, &s); err != nil || s.Schema != result.SwitchSchema {
		return lineError(name, 1, data, result.SwitchSchema, err)
	}
	if s.Number <= len(r.Switches) {
		return nil // it has ended, and its line was written
	}
	s.Number, s.Failed = len(r.Switches)+1, "it was cut off, because the program was killed or the machine stopped"
	if err := checkSwitch(s, r.Experiment); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if err := r.checkSession(s.Session); err != nil {
		return fmt.Errorf("%s: %w: it %w", name, ErrFormat, err)
	}
	r.Switches, r.switchCutOff = append(r.Switches, s), true
	what := "the switch to " + s.Target
	if s.Target == "" {
		what = "the restoration of the testbed"
	}
	r.Warnings = append(r.Warnings, fmt.Sprintf("%s: %s began at %s and has not ended: unless the experiment still runs, "+
		"it was cut off, and what is in place is not known; --resume switches again, and restores the testbed at its end",
		name, what, s.Start.Format(time.DateTime+" MST")))
	return nil
}

// SameExperiment reports whether experiment.json was the same when both were read.
func (r *Results) SameExperiment(other *Results) bool {
	return slices.Equal(r.experiment, other.experiment)
}

// warnTorn adds a warning about a torn line at the end of a file.
func (r *Results) warnTorn(name string, line int) {
	const left = "the last line is torn (a crash while it was written); it is left out"
	r.Warnings = append(r.Warnings, fmt.Sprintf("%s:%d: %s", name, line, left))
}

// checkSession returns an error unless the session exists; 0 means none and is valid.
func (r *Results) checkSession(number int) error {
	if number < 0 || number > len(r.Sessions) {
		return fmt.Errorf("is of session %d, which %s does not have; restore the file", number, SessionsFile)
	}
	return nil
}

// factsFile returns the name of the file with the facts of a target.
func factsFile(target string) string { return path.Join(FactsDir, SafeName(target)+".json") }

func (r *Results) readFacts(d dir, target string) error {
	name := d.full(factsFile(target))
	data, err := d.read(factsFile(target))
	if errors.Is(err, fs.ErrNotExist) {
		if len(r.Runs) > 0 {
			r.Warnings = append(r.Warnings, fmt.Sprintf("%s is missing: the facts of %s are not known", name, target))
		}
		return nil
	}
	if err != nil {
		return err
	}
	r.Facts[target], err = parseFacts(name, data)
	return err
}

// Histogram loads a histogram of a run. If there is no such run or histogram, the error wraps fs.ErrNotExist.
func (r *Results) Histogram(run, name string) (result.Histogram, error) {
	i, ok := r.runIndex[run]
	if !ok {
		return result.Histogram{}, fmt.Errorf("%s has no run %q: %w", r.Path, run, fs.ErrNotExist)
	}
	j := slices.IndexFunc(r.Runs[i].Histograms, func(h result.Histogram) bool { return h.Name == name })
	if j < 0 {
		return result.Histogram{}, fmt.Errorf("run %q has no histogram %q: %w", run, name, fs.ErrNotExist)
	}
	h := r.Runs[i].Histograms[j]
	d, err := openDir(r.Path)
	if err != nil {
		return h, err
	}
	defer d.close()
	data, err := d.read(path.Join(RawDir, run, name+histogramSuffix))
	if err != nil {
		return h, fmt.Errorf("histogram of run %q: %w", run, err)
	}
	h.Encoded = strings.TrimSpace(string(data))
	return h, nil
}

// Raw loads the raw files of a run, including histograms, sorted by name.
func (r *Results) Raw(run string) ([]result.File, error) {
	if err := checkName("run", run); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	d, err := openDir(r.Path)
	if err != nil {
		return nil, err
	}
	defer d.close()
	in := path.Join(RawDir, run)
	entries, err := d.list(in)
	if _, known := r.runIndex[run]; known && errors.Is(err, fs.ErrNotExist) {
		return nil, nil // the run has no raw files
	}
	if err != nil {
		return nil, fmt.Errorf("raw files of run %q: %w", run, err)
	}
	var files []result.File
	for _, entry := range entries {
		data, err := d.read(path.Join(in, entry.Name()))
		if err != nil {
			return nil, fmt.Errorf("raw files of run %q: %w", run, err)
		}
		files = append(files, result.File{Name: entry.Name(), Data: data})
	}
	return files, nil
}

func parseExperiment(name string, data []byte) (result.Experiment, error) {
	var e result.Experiment
	if err := json.Unmarshal(data, &e); err != nil || e.Schema != result.ExperimentSchema {
		return e, lineError(name, 1, data, result.ExperimentSchema, err)
	}
	if err := checkExperiment(e); err != nil {
		return e, fmt.Errorf("%s: %w", name, err)
	}
	return e, nil
}

func parseFacts(name string, data []byte) ([]result.Fact, error) {
	var facts []result.Fact
	if err := json.Unmarshal(data, &facts); err != nil {
		return nil, jsonError(name, data, 1, err)
	}
	result.ReadFacts(facts)
	return facts, nil
}

// jsonError adds file and line to an error of decoding JSON; first is the line number at which data begins.
func jsonError(name string, data []byte, first int, err error) error {
	var offset int64
	var syntax *json.SyntaxError
	var typed *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		offset = syntax.Offset
	case errors.As(err, &typed):
		offset = typed.Offset
	}
	offset = min(max(offset, 0), int64(len(data)))
	line := first + bytes.Count(data[:offset], []byte{'\n'})
	return fmt.Errorf("%s:%d: %w: %w; restore the file or measure again", name, line, ErrFormat, err)
}

// checkSchema returns an error unless got is want; it distinguishes newer and older versions, such as knotmeter/run/v3
// instead of knotmeter/run/v2.
func checkSchema(got, want string) error {
	if got == want {
		return nil
	}
	cut := strings.LastIndexByte(want, 'v') + 1
	number, sameKind := strings.CutPrefix(got, want[:cut])
	version, err := strconv.Atoi(number)
	wanted, _ := strconv.Atoi(want[cut:])
	switch {
	case got == "":
		return fmt.Errorf("%w: there is no schema, wanted %q", ErrFormat, want)
	case err == nil && sameKind && version > wanted:
		return fmt.Errorf("%w: the schema is %q and this program reads up to %q; use a newer knotmeter", ErrNewer, got, want)
	case err == nil && sameKind && version > 0:
		return fmt.Errorf("%w: the schema is %q and this program reads %q; read them with the knotmeter that wrote them, "+
			"or measure again", ErrOlder, got, want)
	}
	return fmt.Errorf("%w: the schema is %q, wanted %q", ErrFormat, got, want)
}

// checkExperiment returns an error unless e has the right schema, unique names of targets and cases, and a baseline
// among the targets.
func checkExperiment(e result.Experiment) error {
	if err := checkSchema(e.Schema, result.ExperimentSchema); err != nil {
		return err
	}
	targets, cases := map[string]bool{}, map[string]bool{}
	for _, t := range e.Targets {
		if t.Name == "" || targets[t.Name] {
			return fmt.Errorf("%w: a target's name %q is empty or used twice", ErrFormat, t.Name)
		}
		targets[t.Name] = true
	}
	for _, c := range e.Cases {
		if c.Name == "" || cases[c.Name] {
			return fmt.Errorf("%w: a case's name %q is empty or used twice", ErrFormat, c.Name)
		}
		cases[c.Name] = true
	}
	if !targets[e.Baseline] {
		return fmt.Errorf("%w: the baseline %q is not among the targets", ErrFormat, e.Baseline)
	}
	return nil
}

// checkRun returns an error unless run refers to a target and a case of e and its names and numbers are valid.
func checkRun(run result.Run, e result.Experiment) error {
	if err := checkSchema(run.Schema, result.RunSchema); err != nil {
		return err
	}
	if err := checkName("run", run.ID); err != nil {
		return fmt.Errorf("%w: %w", ErrFormat, err)
	}
	switch {
	case !hasTarget(e, run.Target):
		return fmt.Errorf("%w: run %q is of target %q, which %s does not have", ErrFormat, run.ID, run.Target, ExperimentFile)
	case !slices.ContainsFunc(e.Cases, func(c result.Case) bool { return c.Name == run.Case }):
		return fmt.Errorf("%w: run %q is of case %q, which %s does not have", ErrFormat, run.ID, run.Case, ExperimentFile)
	case run.Block < 1 || run.Attempt < 1:
		return fmt.Errorf("%w: run %q has block %d and attempt %d, which count from 1",
			ErrFormat, run.ID, run.Block, run.Attempt)
	case run.Site < 0:
		return fmt.Errorf("%w: run %q is in site %d; sites count from 1", ErrFormat, run.ID, run.Site)
	case run.Visit < 0:
		return fmt.Errorf("%w: run %q is of visit %d; visits count from 1", ErrFormat, run.ID, run.Visit)
	}
	if err := checkNumbers(run.Values); err != nil {
		return fmt.Errorf("%w: run %q %w", ErrFormat, run.ID, err)
	}
	for _, h := range run.Histograms {
		if err := checkName("histogram", h.Name); err != nil {
			return fmt.Errorf("%w: run %q: %w", ErrFormat, run.ID, err)
		}
	}
	return nil
}

// checkSwitch returns an error unless s is a switch to a target of e in a block, or the restoration of the testbed.
func checkSwitch(s result.Switch, e result.Experiment) error {
	switch {
	case s.Target == "" && s.Block == 0:
		return nil
	case s.Block < 1:
		return fmt.Errorf("%w: switch %d is of block %d, which count from 1", ErrFormat, s.Number, s.Block)
	case !hasTarget(e, s.Target):
		return fmt.Errorf("%w: switch %d is to target %q, which %s does not have",
			ErrFormat, s.Number, s.Target, ExperimentFile)
	}
	return nil
}

// checkSite returns an error unless site refers to a target of e and its numbers are valid.
func checkSite(site result.Site, e result.Experiment) error {
	switch {
	case site.Number < 1 || site.Block < 1:
		return fmt.Errorf("%w: site %d is of block %d; both count from 1", ErrFormat, site.Number, site.Block)
	case !hasTarget(e, site.Target):
		return fmt.Errorf("%w: site %d is of target %q, which %s does not have",
			ErrFormat, site.Number, site.Target, ExperimentFile)
	}
	if err := checkNumbers(site.Values); err != nil {
		return fmt.Errorf("%w: site %d %w", ErrFormat, site.Number, err)
	}
	return nil
}

func hasTarget(e result.Experiment, name string) bool {
	return slices.ContainsFunc(e.Targets, func(t result.Target) bool { return t.Name == name })
}

func checkNumbers(values []result.Value) error {
	for _, v := range values {
		if math.IsNaN(v.Number) || math.IsInf(v.Number, 0) {
			return fmt.Errorf("has a %s that is not a number", v.Metric)
		}
	}
	return nil
}
