package importer

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
)

// A Source is a file to import.
type Source struct {
	Name   string // as the user gave it
	Target string // that its runs are of, unless the file says so itself; empty is unknown
	Data   []byte
	From   string // the directory that Target is the name of; empty if the user gave it
}

// Options are a user's choices. The zero value of one is its default.
type Options struct {
	ID       string
	Version  string      // of this program
	Families family.List // that know cases of ours by their names
	Now      time.Time
	// Case is one of the nine paths, for workloads of which the file tells none; or the whole name of the only case and
	// the beginning of those of its parts.
	Case     string
	Baseline string   // default: the first target
	Primary  []string // patterns of the primary cases; default: all
	Alpha    float64  // 0 < Alpha < 1
	Delta    float64  // 0 <= Delta < 1
	// Facts are what the user knows and the files do not tell, of all runs and targets.
	Facts []result.Fact
}

// Design is what the design of an imported experiment is called.
const Design = "imported, without blocks"

// An Import is the content of a results directory. Raw has the evidence of each run by its id; runs of
// one document have it with the first of them, which the fact import.raw of the others names.
type Import struct {
	result.Results
	Raw map[string][]result.File
}

// Read reads the sources in order. An error Is [ErrFormat] if it is about a file's content.
func Read(f Format, sources []Source, o Options) (Import, error) {
	b := builder{raw: map[string][]result.File{}, facts: map[string][]result.Fact{},
		next: map[[2]string]int{}, metric: map[string]string{}}
	b.e = result.Experiment{
		Schema: result.ExperimentSchema, ID: o.ID, Created: o.Now.UTC(),
		Version: o.Version, Imported: f.Name, Primaries: o.Primary,
		Design: result.Design{Kind: Design, Alpha: o.Alpha, Delta: o.Delta}, NotMeasured: []result.NotMeasured{},
	}
	entries, err := readAll(f, sources, o.Case)
	if err == nil {
		err = oneCase(entries, o.Case)
	}
	if err == nil {
		err = oneDirectoryEach(entries)
	}
	if err != nil {
		return Import{}, err
	}
	for _, e := range entries {
		b.add(e, o)
	}
	if err := b.finish(o); err != nil {
		return Import{}, err
	}
	return Import{Results: result.Results{Experiment: b.e, Runs: b.runs, Facts: b.facts}, Raw: b.raw}, nil
}

// An entry is a record with its source and the name of its case.
type entry struct {
	Source
	Record
	name string
}

// readAll reads the records of all sources and names their cases. A test that failed before the tool said
// what it was is of the same case as the others, if they are all of one.
func readAll(f Format, sources []Source, given string) ([]entry, error) {
	var entries []entry
	var told []string
	for _, s := range sources {
		records, err := f.Read(s.Name, s.Data)
		if err != nil {
			return nil, err
		}
		for _, r := range records {
			e := entry{s, r, caseName(r, given)}
			entries = append(entries, e)
			if !e.lost() && !slices.Contains(told, e.name) {
				told = append(told, e.name)
			}
		}
	}
	if len(told) != 1 {
		return entries, nil
	}
	for i := range entries {
		if entries[i].lost() {
			entries[i].name = told[0]
		}
	}
	return entries, nil
}

// lost says whether the tool failed before it said what it would do.
func (e entry) lost() bool {
	return len(e.Invalid) > 0 && e.Case == "" && orUnknown(e.Workload) == result.Unknown
}

// synonym returns the name of the case in a user's own file; empty if none is known or --case names the case.
func (e entry) synonym() string {
	if e.Synonym == "" || e.name != e.Record.name() {
		return ""
	}
	return e.Path + "/" + e.Synonym
}

// oneDirectoryEach returns an error if a target that is named by its directory would have the runs of several, or if a
// directory has files beside directories of files.
func oneDirectoryEach(entries []entry) error {
	const hint = "name the targets: TARGET=FILE or TARGET=DIR"
	named := map[string]string{} // directories, by target
	inside := map[string]string{}
	for _, e := range entries {
		if e.From == "" || orUnknown(e.Record.Target) != result.Unknown {
			continue
		}
		if other := named[e.Source.Target]; other != "" && other != e.From {
			return fmt.Errorf("%s and %s would both be target %q; %s", other, e.From, e.Source.Target, hint)
		}
		named[e.Source.Target] = e.From
		if above := filepath.Dir(e.From); above != e.From {
			inside[above] = e.From
		}
	}
	for _, e := range entries {
		if below := inside[e.From]; e.From != "" && named[e.Source.Target] == e.From && below != "" {
			return fmt.Errorf("%s has files of its own beside those in %s, so that their target is not clear; %s",
				e.From, below, hint)
		}
	}
	return nil
}

// builder makes an experiment of records.
type builder struct {
	e      result.Experiment
	runs   []result.Run
	raw    map[string][]result.File
	facts  map[string][]result.Fact
	next   map[[2]string]int // runs of a case and target so far
	metric map[string]string // by case
	// The document that the last record was from, and the run that has it as evidence.
	text  []byte
	keeps string
}

func (b *builder) add(e entry, o Options) {
	r, s, name := e.Record, e.Source, e.name
	run := result.Run{
		Schema: result.RunSchema, ID: fmt.Sprintf("%04d", len(b.runs)+1),
		Case: name, Target: orUnknown(r.Target), Attempt: 1, Slot: 1,
		Start: r.Start, Window: r.Window, Tool: orUnknown(r.Tool),
		Values: r.Values, Series: r.Series, Histograms: r.Histograms,
		Invalid: r.Invalid, Warnings: r.Warnings,
	}
	if run.Target == result.Unknown {
		run.Target = orUnknown(s.Target)
	}
	key := [2]string{run.Case, run.Target}
	b.next[key]++
	run.Block = b.next[key]
	known := slices.DeleteFunc(slices.Clone(r.Facts), func(f result.Fact) bool { return has(o.Facts, f.Name) })
	run.Facts = append(slices.Concat(known, o.Facts), result.Fact{Name: "import.file", Value: s.Name},
		result.Fact{Name: "import.place", Value: r.Place})
	if r.Block > 0 {
		run.Facts = append(run.Facts, result.Fact{Name: "import.block", Value: fmt.Sprint(r.Block)})
	}
	b.keep(s, r, &run)
	b.runs = append(b.runs, run)
	b.addTarget(run.Target, slices.Concat(r.Environment, o.Facts))
	i := slices.IndexFunc(b.e.Cases, func(c result.Case) bool { return c.Name == name })
	switch {
	case i < 0:
		c := o.Families.ImportedCase(name)
		c.Role, c.Synonym = role(name, o.Primary), e.synonym()
		b.e.Cases = append(b.e.Cases, c)
	case b.e.Cases[i].Synonym != e.synonym(): // jobs of several names
		b.e.Cases[i].Synonym = ""
	}
	if b.metric[name] == "" {
		b.metric[name] = r.Metric
	}
}

func has(facts []result.Fact, name string) bool {
	return slices.ContainsFunc(facts, func(f result.Fact) bool { return f.Name == name })
}

// caseName applies --case: a path goes before the workload, unless the file tells the path itself; anything
// else is the name.
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
	case slices.ContainsFunc(targets.Paths(), func(p targets.Path) bool {
		return strings.HasPrefix(r.Case, string(p)+"/")
	}):
		return r.Case
	}
	return given + "/" + r.Case
}

func isPath(text string) bool { return slices.Contains(targets.Paths(), targets.Path(text)) }

// oneCase returns an error if the name that was given is to stand for several of what the files tell.
func oneCase(entries []entry, given string) error {
	if given == "" || isPath(given) {
		return nil
	}
	var names []string
	for _, e := range entries {
		if n := e.Record.name(); !e.lost() && e.Part == "" && !slices.Contains(names, n) {
			names = append(names, n)
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

// keep puts the document with the first run that is from it.
func (b *builder) keep(s Source, r Record, run *result.Run) {
	if b.keeps != "" && len(r.Text) > 0 && len(b.text) > 0 && &r.Text[0] == &b.text[0] && len(r.Text) == len(b.text) {
		run.Facts = append(run.Facts, result.Fact{Name: "import.raw", Value: b.keeps})
		return
	}
	b.text, b.keeps = r.Text, run.ID
	b.raw[run.ID] = []result.File{{Name: rawName(s.Name), Data: r.Text}}
}

// rawName is the file's own name with nothing in it that a file system minds.
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

// addTarget makes a target known; a fact with another value than before is kept with both.
func (b *builder) addTarget(name string, environment []result.Fact) {
	if !slices.ContainsFunc(b.e.Targets, func(t result.Target) bool { return t.Name == name }) {
		b.e.Targets = append(b.e.Targets, result.Target{Name: name, Spec: b.e.Imported + ":" + name})
		b.facts[name] = []result.Fact{{Name: "kind", Value: "imported"}}
	}
	for _, f := range environment {
		if !slices.Contains(b.facts[name], f) {
			b.facts[name] = append(b.facts[name], f)
		}
	}
}

// finish decides what needs all runs: the tool, the baseline, what verdicts are about.
func (b *builder) finish(o Options) error {
	if len(b.runs) == 0 {
		return errors.New("there is nothing to import")
	}
	var tools []string
	windows := map[float64]bool{}
	for _, r := range b.runs {
		tools = append(tools, r.Tool)
		windows[r.Window] = true
		b.e.Design.Blocks = max(b.e.Design.Blocks, r.Block)
	}
	slices.Sort(tools)
	b.e.Tool = strings.Join(slices.Compact(tools), ", ")
	if len(windows) == 1 {
		b.e.Design.Duration = b.runs[0].Window
	}
	b.e.Baseline = cmp.Or(o.Baseline, b.e.Targets[0].Name)
	if targets := b.e.TargetNames(); o.Baseline != "" && !slices.Contains(targets, o.Baseline) {
		return fmt.Errorf("the baseline %q is none of the targets: %s", o.Baseline, strings.Join(targets, ", "))
	}
	b.uniqueSynonyms()
	for i := range b.e.Cases {
		c := &b.e.Cases[i]
		c.Metric = b.metricOf(c.Name, o.Families)
		// What was never measured takes nothing of alpha from the others.
		if !slices.ContainsFunc(b.runs, func(r result.Run) bool { return r.Case == c.Name && r.Valid() }) {
			c.Role = result.Exploratory
		}
	}
	return nil
}

// uniqueSynonyms removes the synonyms that stand for several cases.
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

// metricOf is what verdicts on a case are about: what its measurements are for, else the first of the
// usual ones that most of the valid runs have, else the first at all.
func (b *builder) metricOf(name string, families family.List) string {
	count := map[string]int{}
	var order []string
	most := 0
	for _, r := range b.runs {
		if r.Case != name || !r.Valid() {
			continue
		}
		for _, v := range r.Values {
			if v.Better == metric.Neutral {
				continue
			}
			if count[v.Metric] == 0 {
				order = append(order, v.Metric)
			}
			count[v.Metric]++
			most = max(most, count[v.Metric])
		}
	}
	usual := []string{b.metric[name], metric.Throughput, metric.P50, metric.Mean, metric.Rate}
	// Where the application is one of ours, verdicts are about what they are about there.
	if c, err := families.Parse(name, ""); err == nil && c.Workload.Traits().Needs.Application != "" {
		usual = slices.Insert(usual, 0, c.Workload.Traits().Metric)
	}
	for _, m := range append(usual, order...) {
		if m != "" && count[m] == most && most > 0 {
			return m
		}
	}
	return metric.Throughput
}
