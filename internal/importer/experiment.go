package importer

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
)

// A Source is a file to import.
type Source struct {
	Name   string // as the user gave it
	Target string // of its runs, unless the file names targets; empty: unknown
	Data   []byte
	From   string // directory that Target is named after; empty if the user named the target
}

// Options are the user's choices. Zero values mean defaults.
type Options struct {
	ID       string
	Version  string      // of this program
	Families family.List // to parse the names of cases
	Now      time.Time
	// Case is one of the nine paths, for workloads whose path is not in the file; or the full name of the only case,
	// which is also the prefix of its parts' names.
	Case     string
	Baseline string   // default: the first target
	Primary  []string // patterns of the primary cases; default: all
	Alpha    float64  // in the range of [result.Design.Check], as Delta
	Delta    float64
	// Facts are known to the user and not in the files. They apply to all runs and targets.
	Facts []result.Fact
}

// Design is the kind of design of imported experiments.
const Design = "imported, without blocks"

// An Import is the content of a results directory.
type Import struct {
	Experiment result.Experiment
	Facts      map[string][]result.Fact // by target
	// Runs iterates over the runs and their raw files. It makes each run anew, since a file may have a million. If several
	// runs are from one document, only the first has it as raw file; the fact import.raw of the others is the ID of the
	// first.
	Runs    iter.Seq2[result.Run, []result.File]
	Figures int      // results that terminals show in the files, read or not
	Unread  []string // those that were not read: the place and the reason of each
}

// Read imports the sources in order. An error about a file's content wraps [ErrFormat].
func Read(f Format, sources []Source, o Options) (Import, error) {
	b := builder{facts: map[string][]result.Fact{}, cases: map[string]*caseCount{}, tools: map[string]bool{},
		windows: map[float64]bool{}}
	b.e = result.Experiment{
		Schema: result.ExperimentSchema, ID: o.ID, Created: o.Now.UTC(),
		Version: o.Version, Imported: f.Name, Primaries: o.Primary,
		Design: result.Design{Kind: Design, Alpha: o.Alpha, Delta: o.Delta}, NotMeasured: []result.NotMeasured{},
	}
	var read Import
	entries, err := read.readAll(f, sources, o.Case)
	if err == nil {
		err = checkCase(entries, o.Case)
	}
	if err == nil {
		err = checkDirectories(entries)
	}
	if err != nil {
		return Import{}, err
	}
	for e, run := range runs(entries, o) {
		b.add(e, run, o)
	}
	if err := b.finish(o); err != nil {
		return Import{}, err
	}
	read.Experiment, read.Facts = b.e, b.facts
	read.Runs = func(yield func(result.Run, []result.File) bool) {
		for e, run := range runs(entries, o) {
			var raw []result.File
			if e.Text != nil {
				raw = []result.File{{Name: rawName(e.Source.Name), Data: e.Text}}
			}
			if !yield(run, raw) {
				return
			}
		}
	}
	return read, nil
}

// An entry is a record with its source and the name of its case.
type entry struct {
	Source
	Record
	name string
}

// readAll reads all sources, and returns an iterator over their records that names the cases. A test that failed before
// the tool reported its workload gets the case of the others, if they all have the same one. Figures that are not read
// are counted.
func (read *Import) readAll(f Format, sources []Source, given string) (iter.Seq[entry], error) {
	var contents []Content
	names := map[string]bool{}
	only := "" // the last name
	for _, s := range sources {
		content, err := f.Read(s.Name, s.Data)
		if err != nil {
			return nil, f.refusal(s, err)
		}
		contents = append(contents, content)
		read.Figures += content.Figures
		for _, u := range content.Unread {
			read.Unread = append(read.Unread, fmt.Sprintf("%s:%d (%s)", s.Name, u.Line, u.Why))
		}
		for r := range content.all() {
			if e := (entry{s, r, caseName(r, given)}); !e.failedEarly() {
				only = e.name
				names[only] = true
			}
		}
	}
	return func(yield func(entry) bool) {
		for i, content := range contents {
			for r := range content.all() {
				e := entry{sources[i], r, caseName(r, given)}
				if len(names) == 1 && e.failedEarly() {
					e.name = only
				}
				if !yield(e) {
					return
				}
			}
		}
	}, nil
}

// failedEarly reports whether the tool failed before it reported its workload.
func (e entry) failedEarly() bool {
	return len(e.Invalid) > 0 && e.Case == "" && orUnknown(e.Workload) == result.Unknown
}

// synonym returns the name of the case in a user's own file; empty if none is known or --case names the case.
func (e entry) synonym() string {
	if e.Synonym == "" || e.name != e.Record.name() {
		return ""
	}
	return e.Path + "/" + e.Synonym
}

// checkDirectories returns an error if two directories would name the same target, or if a directory that names a
// target has files of its own next to directories with files.
func checkDirectories(entries iter.Seq[entry]) error {
	const hint = "name the targets: TARGET=FILE or TARGET=DIR"
	directory := map[string]string{} // by target
	below := map[string]string{}     // a directory with files, by parent directory
	for e := range entries {
		if e.From == "" || orUnknown(e.Record.Target) != result.Unknown {
			continue
		}
		if other := directory[e.Source.Target]; other != "" && other != e.From {
			return fmt.Errorf("%s and %s would both be target %q; %s", other, e.From, e.Source.Target, hint)
		}
		directory[e.Source.Target] = e.From
		if parent := filepath.Dir(e.From); parent != e.From {
			below[parent] = e.From
		}
	}
	for e := range entries {
		if child := below[e.From]; e.From != "" && directory[e.Source.Target] == e.From && child != "" {
			return fmt.Errorf("%s has files of its own beside those in %s, so that their target is not clear; %s",
				e.From, child, hint)
		}
	}
	return nil
}

// runs returns an iterator over the runs of entries. The Text of an entry is nil if an earlier run has it as raw file.
func runs(entries iter.Seq[entry], o Options) iter.Seq2[entry, result.Run] {
	return func(yield func(entry, result.Run) bool) {
		number := 0
		count := map[[2]string]int{} // by case and target
		var text []byte              // document of the last record
		textRun := ""                // ID of the run that has text as its raw file
		for e := range entries {
			number++
			run := e.run(o)
			run.ID = fmt.Sprintf("%04d", number)
			key := [2]string{run.Case, run.Target}
			count[key]++
			run.Block = count[key]
			if len(e.Text) > 0 && len(text) == len(e.Text) && &e.Text[0] == &text[0] {
				run.Facts = append(run.Facts, result.Fact{Name: "import.raw", Value: textRun})
				e.Text = nil
			} else {
				text, textRun = e.Text, run.ID
			}
			if !yield(e, run) {
				return
			}
		}
	}
}

// run returns the run of an entry, without its ID and block.
func (e entry) run(o Options) result.Run {
	r := e.Record
	run := result.Run{
		Schema: result.RunSchema, Case: e.name, Target: orUnknown(r.Target), Attempt: 1, Slot: 1,
		Start: r.Start, Window: r.Window, Tool: orUnknown(r.Tool),
		Values: r.Values, Series: r.Series, Histograms: r.Histograms,
		Invalid: r.Invalid, Warnings: r.Warnings,
	}
	if run.Target == result.Unknown {
		run.Target = orUnknown(e.Source.Target)
	}
	told := slices.DeleteFunc(slices.Clone(o.Facts), func(f result.Fact) bool { return r.Shares && f.Name == "workers" })
	known := slices.DeleteFunc(slices.Clone(r.Facts), func(f result.Fact) bool { return hasFact(told, f.Name) })
	run.Facts = append(slices.Concat(known, told), result.Fact{Name: "import.file", Value: e.Source.Name},
		result.Fact{Name: "import.place", Value: r.Place})
	if r.Block > 0 {
		run.Facts = append(run.Facts, result.Fact{Name: "import.block", Value: fmt.Sprint(r.Block)})
	}
	return run
}

// A builder assembles an experiment from runs and the entries that they are from.
type builder struct {
	e       result.Experiment
	facts   map[string][]result.Fact // by target
	cases   map[string]*caseCount    // by name
	tools   map[string]bool
	windows map[float64]bool
}

// A caseCount is what a case's metric and role depend on.
type caseCount struct {
	index   int            // in the experiment
	metric  string         // preferred for verdicts
	valid   bool           // there is a valid run
	metrics []string       // with a direction, of valid runs
	values  map[string]int // number of values, by metric
}

// add registers the case, target and metrics of a run.
func (b *builder) add(e entry, run result.Run, o Options) {
	b.tools[run.Tool], b.windows[run.Window] = true, true
	b.e.Design.Blocks = max(b.e.Design.Blocks, run.Block)
	b.addTarget(run.Target, slices.Concat(e.Environment, o.Facts))
	count := b.cases[run.Case]
	switch {
	case count == nil:
		count = &caseCount{index: len(b.e.Cases), values: map[string]int{}}
		b.cases[run.Case] = count
		c := o.Families.ImportedCase(run.Case)
		c.Role, c.Synonym = role(run.Case, o.Primary), e.synonym()
		b.e.Cases = append(b.e.Cases, c)
	case b.e.Cases[count.index].Synonym != e.synonym(): // jobs with different names
		b.e.Cases[count.index].Synonym = ""
	}
	count.metric = cmp.Or(count.metric, e.Metric)
	if !run.Valid() {
		return
	}
	count.valid = true
	for _, v := range run.Values {
		if v.Better == metric.Neutral {
			continue
		}
		if count.values[v.Metric] == 0 {
			count.metrics = append(count.metrics, v.Metric)
		}
		count.values[v.Metric]++
	}
}

// hasFact reports whether there is a fact of this name.
func hasFact(facts []result.Fact, name string) bool {
	return slices.ContainsFunc(facts, func(f result.Fact) bool { return f.Name == name })
}

// caseName returns the name of a record's case, given the value of --case: a path is prefixed to the workload, unless
// the file has the path; any other value is the name.
func caseName(r Record, given string) string {
	switch {
	case given == "":
		return r.name()
	case !isPath(given) && r.Part != "":
		return given + "/" + r.Part
	case !isPath(given):
		return given
	case r.Case == "":
		r.Path = cmp.Or(r.Path, given)
		return r.name()
	case slices.ContainsFunc(result.Paths(), func(p result.Path) bool {
		return strings.HasPrefix(r.Case, string(p)+"/")
	}):
		return r.Case
	}
	return given + "/" + r.Case
}

func isPath(text string) bool { return slices.Contains(result.Paths(), result.Path(text)) }

// checkCase returns an error if --case names one case, but the files have several.
func checkCase(entries iter.Seq[entry], given string) error {
	if given == "" || isPath(given) {
		return nil
	}
	var names []string
	seen := map[string]bool{}
	for e := range entries {
		if n := e.Record.name(); !e.failedEarly() && e.Part == "" && !seen[n] {
			names, seen[n] = append(names, n), true
		}
	}
	if few := 4; len(names) > few {
		names = append(names[:few], fmt.Sprintf("and %d more", len(names)-few))
	}
	if len(names) > 1 {
		return fmt.Errorf("--case %s names one case, but the files measure %s; give one of the nine paths, or leave it out",
			given, strings.Join(names, ", "))
	}
	return nil
}

func role(name string, primary []string) result.Role {
	if len(primary) == 0 || slices.ContainsFunc(primary, func(p string) bool { return result.Match(p, name) }) {
		return result.Primary
	}
	return result.Exploratory
}

// rawName returns the last 200 bytes of the base name of a file, with underscores for unusual characters. It avoids the
// suffix .hdr, which is that of histograms.
func rawName(name string) string {
	base := filepath.Base(name)
	var b strings.Builder
	for i, c := range []byte(base) {
		plain := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' &&
			c <= '9' || strings.IndexByte("-_+=", c) >= 0 || c == '.' && i > 0
		if !plain {
			c = '_'
		}
		b.WriteByte(c)
	}
	text := b.String()
	if len(text) > 200 {
		text = text[len(text)-200:]
	}
	if strings.HasSuffix(text, ".hdr") || text == "" {
		text += ".txt"
	}
	return text
}

// addTarget registers a target and its facts. A fact with several values is kept with each.
func (b *builder) addTarget(name string, environment []result.Fact) {
	if b.facts[name] == nil {
		b.e.Targets = append(b.e.Targets, result.Target{Name: name, Spec: result.SpecOf(b.e.Imported + ":" + name)})
		b.facts[name] = []result.Fact{{Name: "kind", Value: "imported"}}
	}
	for _, f := range environment {
		if !slices.Contains(b.facts[name], f) {
			b.facts[name] = append(b.facts[name], f)
		}
	}
}

// finish sets what depends on all runs: tool, duration, blocks, baseline, and the metrics and roles of cases.
func (b *builder) finish(o Options) error {
	if len(b.cases) == 0 {
		return errors.New("there is nothing to import")
	}
	b.e.Tool = strings.Join(slices.Sorted(maps.Keys(b.tools)), ", ")
	for window := range b.windows {
		if len(b.windows) == 1 {
			b.e.Design.Duration = window
		}
	}
	b.e.Baseline = cmp.Or(o.Baseline, b.e.Targets[0].Name)
	if names := b.e.TargetNames(); o.Baseline != "" && !slices.Contains(names, o.Baseline) {
		return fmt.Errorf("the baseline %q is none of the targets: %s", o.Baseline, strings.Join(names, ", "))
	}
	b.uniqueSynonyms()
	for i := range b.e.Cases {
		c := &b.e.Cases[i]
		count := b.cases[c.Name]
		c.Metric = count.metricOf(c.Name, o.Families)
		// A case without valid runs must not take a share of alpha from the others.
		if !count.valid {
			c.Role = result.Exploratory
		}
	}
	return nil
}

// uniqueSynonyms clears the synonyms that several cases share, or that are the name of a case.
func (b *builder) uniqueSynonyms() {
	count := map[string]int{}
	for _, c := range b.e.Cases {
		count[c.Name]++
		count[c.Synonym]++
	}
	for i, c := range b.e.Cases {
		if count[c.Synonym] > 1 {
			b.e.Cases[i].Synonym = ""
		}
	}
}

// metricOf returns the metric for verdicts on a case, of those that most valid runs have: the one that its application
// or its records prefer, else a usual one, else the first.
func (c *caseCount) metricOf(name string, families family.List) string {
	most := 0
	for _, n := range c.values {
		most = max(most, n)
	}
	usual := []string{c.metric, metric.Throughput, metric.P50, metric.Mean, metric.Rate}
	// An application that Knotmeter measures itself has a metric for verdicts.
	if c, err := families.Parse(name, ""); err == nil && c.Workload.Traits().Needs.Application != "" {
		usual = slices.Insert(usual, 0, c.Workload.Traits().Metric)
	}
	for _, m := range append(usual, c.metrics...) {
		if m != "" && c.values[m] == most && most > 0 {
			return m
		}
	}
	return metric.Throughput
}
