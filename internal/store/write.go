package store

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/knotmeter/knotmeter/internal/result"
)

// A Writer writes one results directory and holds its lock. It is not safe for concurrent use.
type Writer struct {
	dir          dir
	e            result.Experiment
	experiment   []byte // content of experiment.json
	lock         *os.File
	sessions     lineFile
	switches     lineFile // created with the first switch
	sites        lineFile
	runs         lineFile
	seen         map[string]bool // IDs of runs in runs.ndjson
	seenSites    map[int]bool    // numbers of sites in sites.ndjson
	sessionCount int             // sessions in sessions.ndjson
	switchCount  int             // switches in switches.ndjson
	session      int             // number of the current session; 0 before it is written
}

// A lineFile is an NDJSON file to which complete lines are appended.
type lineFile struct {
	file *os.File
	size int64 // in bytes, up to the last complete line
}

// Create creates the results directory path, with missing parents, and writes e. An existing directory must be empty,
// else the error wraps ErrExists.
func Create(path string, e result.Experiment) (*Writer, error) {
	if err := checkExperiment(e); err != nil {
		return nil, fmt.Errorf("results directory %s: %w", path, err)
	}
	if err := os.MkdirAll(path, 0o755); err != nil {
		return nil, fmt.Errorf("results directory: %w", err)
	}
	w, err := lockDir(path)
	if err != nil {
		return nil, err
	}
	w.e = e
	if err := w.create(); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return w, nil
}

func (w *Writer) create() error {
	entries, err := w.dir.list(".")
	if err != nil {
		return err
	}
	path := w.dir.path
	for _, entry := range entries {
		if entry.Name() == ExperimentFile {
			return fmt.Errorf("%w: %s holds an experiment; continue it with --resume %s, or choose another --out",
				ErrExists, path, path)
		}
	}
	if len(entries) > 0 {
		return fmt.Errorf("%w: %s is not empty (it holds %s); choose another --out", ErrExists, path, entries[0].Name())
	}
	// experiment.json comes last: a directory with it is complete.
	for _, name := range []string{SessionsFile, SitesFile, RunsFile} {
		if err := w.dir.create(name, nil); err != nil {
			return err
		}
	}
	if err := w.open(); err != nil {
		return err
	}
	if err := w.writeExperiment(); err != nil {
		return err
	}
	return syncDir(filepath.Dir(filepath.Clean(path)))
}

// open makes the subdirectories and opens the files that are appended to.
func (w *Writer) open() (err error) {
	for _, name := range []string{FactsDir, RawDir} {
		if err := w.dir.mkdir(name); err != nil {
			return err
		}
	}
	for name, l := range w.appendedFiles() {
		if l.file, err = w.dir.openAppend(name); err != nil {
			return err
		}
	}
	if w.switches.file, err = w.dir.openAppend(SwitchesFile); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// appendedFiles returns the files that every experiment appends to, by name.
func (w *Writer) appendedFiles() map[string]*lineFile {
	return map[string]*lineFile{SessionsFile: &w.sessions, SitesFile: &w.sites, RunsFile: &w.runs}
}

// openFiles returns an iterator over the open files that are appended to.
func (w *Writer) openFiles() iter.Seq[*lineFile] {
	return func(yield func(*lineFile) bool) {
		for _, l := range []*lineFile{&w.sessions, &w.switches, &w.sites, &w.runs} {
			if l.file != nil && !yield(l) {
				return
			}
		}
	}
}

// Resume opens an existing directory for writing and returns its contents. Torn last lines are cut off.
func Resume(path string) (*Writer, *Results, error) {
	w, err := lockDir(path)
	if err != nil {
		return nil, nil, err
	}
	results, err := w.resume()
	if err != nil {
		return nil, nil, errors.Join(err, w.Close())
	}
	return w, results, nil
}

func (w *Writer) resume() (*Results, error) {
	results, err := w.dir.readResults()
	if err != nil {
		return nil, err
	}
	w.experiment = results.experiment
	w.e, w.sessionCount, w.switchCount = results.Experiment, len(results.Sessions), len(results.Switches)
	w.sessions.size, w.sites.size, w.runs.size = results.sessionsSize, results.sitesSize, results.runsSize
	w.switches.size = results.switchesSize
	for _, r := range results.Runs {
		w.seen[r.ID] = true
	}
	for _, s := range results.Sites {
		w.seenSites[s.Number] = true
	}
	err = w.open()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: it can be read, but without that file not resumed", err)
	}
	if err != nil {
		return nil, err
	}
	for l := range w.openFiles() {
		if err := l.file.Truncate(l.size); err != nil {
			return nil, fmt.Errorf("cut the torn last line: %w", err)
		}
	}
	if results.switchCutOff {
		return results, w.appendSwitch(results.Switches[len(results.Switches)-1])
	}
	return results, nil
}

// Path returns the path of the directory.
func (w *Writer) Path() string { return w.dir.path }

// WriteFacts records the facts of a target and replaces earlier ones.
func (w *Writer) WriteFacts(target string, facts []result.Fact) error {
	if len(SafeName(target)) > maxName {
		return fmt.Errorf("facts of target %q: its name is too long for a file; give it a shorter one with ?label=", target)
	}
	if facts == nil {
		facts = []result.Fact{}
	}
	data, err := encode(facts)
	if err != nil {
		return fmt.Errorf("facts of target %q: %w", target, err)
	}
	return w.replace(factsFile(target), data)
}

// WriteSession numbers and records a session; the runs that follow belong to it.
func (w *Writer) WriteSession(s result.Session) error {
	s.Schema, s.Number = result.SessionSchema, w.sessionCount+1
	if err := w.sessions.appendJSON(s); err != nil {
		return fmt.Errorf("session %d: %w", s.Number, err)
	}
	w.sessionCount, w.session = s.Number, s.Number
	return nil
}

// BeginSwitch records that the command of a switch is about to begin; [Writer.WriteSwitch] must follow. If the program
// does not get that far, the switch is a failed one of the results.
func (w *Writer) BeginSwitch(s result.Switch) error {
	s.Schema, s.Session, s.Number = result.SwitchSchema, w.session, w.switchCount+1
	data, err := encode(s)
	if err == nil {
		err = w.replace(SwitchingFile, data)
	}
	if err != nil {
		return fmt.Errorf("switch %d: %w", s.Number, err)
	}
	return nil
}

// WriteSwitch numbers and records a switch of the current session, and returns its number.
func (w *Writer) WriteSwitch(s result.Switch) (number int, err error) {
	s.Schema, s.Session, s.Number = result.SwitchSchema, w.session, w.switchCount+1
	if err = checkSwitch(s, w.e); err == nil {
		err = w.appendSwitch(s)
	}
	if err != nil {
		return 0, fmt.Errorf("switch %d: %w", s.Number, err)
	}
	w.switchCount = s.Number
	return s.Number, nil
}

// appendSwitch records a switch, which has ended.
func (w *Writer) appendSwitch(s result.Switch) (err error) {
	if w.switches.file == nil {
		if err = w.dir.create(SwitchesFile, nil); err == nil {
			w.switches.file, err = w.dir.openAppend(SwitchesFile)
		}
		err = errors.Join(err, w.dir.sync("."))
	}
	if err == nil {
		err = w.switches.appendJSON(s)
	}
	if err != nil {
		return err
	}
	// If a crash undoes this, its number tells that the switch has ended.
	if err = w.dir.root.Remove(SwitchingFile); errors.Is(err, fs.ErrNotExist) { // it had no command
		return nil
	}
	return w.dir.wrap(err)
}

// WriteSite records a closed site of the current session. When it returns nil, the line is on disk.
func (w *Writer) WriteSite(s result.Site) error {
	s.Schema, s.Session = result.SiteSchema, w.session
	if w.seenSites[s.Number] {
		return fmt.Errorf("site %d: there is a site of this number already", s.Number)
	}
	if err := checkSite(s, w.e); err != nil {
		return err
	}
	if err := w.sites.appendJSON(s); err != nil {
		return fmt.Errorf("site %d: %w", s.Number, err)
	}
	w.seenSites[s.Number] = true
	return nil
}

// WriteNotMeasured adds an entry to not_measured, unless it has it already.
func (w *Writer) WriteNotMeasured(n result.NotMeasured) error {
	if slices.Contains(w.e.NotMeasured, n) {
		return nil
	}
	w.e.NotMeasured = append(slices.Clip(w.e.NotMeasured), n)
	return w.writeExperiment()
}

// WriteWarning adds a warning about the whole experiment, unless it has it already.
func (w *Writer) WriteWarning(warning result.Warning) error {
	if slices.Contains(w.e.Warnings, warning) {
		return nil
	}
	w.e.Warnings = append(slices.Clip(w.e.Warnings), warning)
	return w.writeExperiment()
}

// Append records a run of the current session. When it returns nil, raw files, histograms and the line are on disk;
// after an error the run is not in runs.ndjson.
func (w *Writer) Append(run result.Run, raw []result.File) error {
	run.Session = w.session
	line, err := w.prepareRun(run, raw)
	if err == nil {
		err = w.runs.append(line)
	}
	if err != nil {
		return fmt.Errorf("run %q: %w", run.ID, err)
	}
	w.seen[run.ID] = true
	return nil
}

// prepareRun writes the raw files and histograms of a run, and returns its line. Without any it makes no directory.
func (w *Writer) prepareRun(run result.Run, raw []result.File) (line []byte, err error) {
	if w.seen[run.ID] {
		return nil, errors.New("there is a run of this name already")
	}
	if err := checkRun(run, w.e); err != nil {
		return nil, err
	}
	files, stripped, err := split(run, raw)
	if err != nil {
		return nil, err
	}
	if line, err = json.Marshal(stripped); err != nil {
		return nil, err
	}
	return line, w.writeRaw(run.ID, files)
}

// split returns the raw files together with the run's histograms as files, and the run without encoded histograms.
func split(run result.Run, raw []result.File) ([]result.File, result.Run, error) {
	files := append([]result.File(nil), raw...)
	stripped := make([]result.Histogram, len(run.Histograms))
	for i, h := range run.Histograms {
		files = append(files, result.File{Name: h.Name + histogramSuffix, Data: []byte(h.Encoded + "\n")})
		h.Encoded = ""
		stripped[i] = h
	}
	run.Histograms = stripped
	names := map[string]bool{}
	for _, f := range files {
		if err := checkName("raw file", f.Name); err != nil {
			return nil, run, err
		}
		if names[f.Name] {
			return nil, run, fmt.Errorf("two raw files are named %q", f.Name)
		}
		names[f.Name] = true
	}
	return files, run, nil
}

func (w *Writer) writeRaw(run string, files []result.File) error {
	name := path.Join(RawDir, run)
	// A crash may have left files of a run without a line in runs.ndjson.
	if err := w.dir.removeAll(name); err != nil || len(files) == 0 {
		return err
	}
	if err := w.dir.mkdir(name); err != nil {
		return err
	}
	for _, f := range files {
		if err := w.dir.create(path.Join(name, f.Name), f.Data); err != nil {
			return err
		}
	}
	if err := w.dir.sync(name); err != nil {
		return err
	}
	return w.dir.sync(RawDir)
}

func (l *lineFile) appendJSON(v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return l.append(line)
}

// append appends a line and its newline. After an error, such as a full disk, a partial line is cut off.
func (l *lineFile) append(line []byte) error {
	line = append(line, '\n')
	_, err := l.file.Write(line)
	if err == nil {
		err = l.file.Sync()
	}
	if err != nil {
		return errors.Join(err, l.file.Truncate(l.size))
	}
	l.size += int64(len(line))
	return nil
}

// Close closes the files and releases the lock. The directory is complete even without it.
func (w *Writer) Close() error {
	errs := []error{w.dir.close()}
	for l := range w.openFiles() {
		errs = append(errs, l.file.Close())
		l.file = nil
	}
	if w.lock != nil {
		errs = append(errs, w.lock.Close())
		w.lock = nil
	}
	return errors.Join(errs...)
}

// writeExperiment replaces experiment.json by the current state of the experiment.
func (w *Writer) writeExperiment() error {
	data, err := encode(w.e)
	if err != nil {
		return fmt.Errorf("%s: %w", ExperimentFile, err)
	}
	if err := w.replace(ExperimentFile, data); err != nil {
		return err
	}
	w.experiment = data
	return nil
}

func encode(v any) ([]byte, error) {
	data, err := json.MarshalIndent(v, "", "  ")
	return append(data, '\n'), err
}

// replace replaces a file atomically. Because of the lock, an existing temporary file can only be left by a crash.
func (w *Writer) replace(name string, data []byte) error {
	fresh := name + ".new"
	err := w.dir.checkFile(fresh)
	if err == nil {
		err = w.dir.wrap(w.dir.root.Remove(fresh))
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return w.dir.replace(name, fresh, func(to io.Writer) error {
		_, err := to.Write(data)
		return err
	})
}

// WriteFile writes a file rendered from the results into the results directory, and returns its path. It replaces an
// earlier file; an error leaves that one. The name may be in one subdirectory, as in figures/card.svg. If several
// processes write the same file, the last to finish wins.
func WriteFile(path, name string, write func(io.Writer) error) (string, error) {
	folder, file, inside := strings.Cut(name, "/")
	if !inside {
		file = name
	} else if err := checkName("directory", folder); err != nil {
		return "", err
	}
	if err := checkName("file", file); err != nil {
		return "", err
	}
	d, err := openDir(path)
	if err != nil {
		return "", err
	}
	defer d.close()
	if inside {
		if err := d.mkdir(folder); err != nil {
			return "", err
		}
	}
	// The directory is not locked, so the temporary name must be unique.
	return d.full(name), d.replace(name, name+"."+rand.Text()[:8]+".new", write)
}

// HasDir reports whether a results directory contains a directory of a slash-separated name. A link or anything else in
// the place of one of the directories is an error that wraps [ErrFormat].
func HasDir(path, name string) (bool, error) {
	d, err := openDir(path)
	if err != nil {
		return false, err
	}
	defer d.close()
	if err := d.checkDir(name); !errors.Is(err, fs.ErrNotExist) {
		return err == nil, err
	}
	return false, nil
}

// RemoveFiles removes the regular files of a folder in the results directory for whose names stale returns true. A
// missing folder is no error.
func RemoveFiles(path, folder string, stale func(name string) bool) error {
	d, err := openDir(path)
	if err != nil {
		return err
	}
	defer d.close()
	entries, err := d.list(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, entry := range entries {
		if entry.Type().IsRegular() && stale(entry.Name()) {
			err = errors.Join(err, d.wrap(d.root.Remove(folder+"/"+entry.Name())))
		}
	}
	return err
}

func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// lockDir opens a directory for writing and takes its lock, which the kernel releases at the latest when the process
// ends.
func lockDir(path string) (*Writer, error) {
	d, err := openDir(path)
	if err != nil {
		return nil, err
	}
	w := &Writer{dir: d, seen: map[string]bool{}, seenSites: map[int]bool{}}
	if w.lock, err = d.root.Open("."); err == nil {
		err = tryLock(w.lock)
	}
	if err != nil {
		return nil, errors.Join(d.wrap(err), w.Close())
	}
	return w, nil
}
