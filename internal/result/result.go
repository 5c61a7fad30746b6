// Package result is the narrow waist of the program: whatever is measured, with whatever tool on
// whatever target, becomes a [Run] with its [Value]s, and nothing to the right of it in the data
// flow may know where it came from.
//
// The types here are also the file format: experiment.json holds an [Experiment], runs.ndjson one [Run] a line,
// sites.ndjson one [Site], sessions.ndjson one [Session], switches.ndjson one [Switch], facts/<target>.json a list of
// [Fact]s. Fields are added, never renamed.
package result

import (
	"errors"
	"math"
	"slices"
	"time"

	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// The schemas of the files that are written.
const (
	ExperimentSchema = "knotmeter/experiment/v2"
	RunSchema        = "knotmeter/run/v2"
	SiteSchema       = "knotmeter/site/v1"
	SessionSchema    = "knotmeter/session/v1"
	SwitchSchema     = "knotmeter/switch/v1"
)

// Unknown is the value of a fact that could not be found out. A fact is never left out for that.
const Unknown = "unknown"

// ErrNotSupported marks what cannot be done here, by a kernel, a tool or a target. An error that Is
// ErrNotSupported says in its text what is missing, by name; it is reported under not_measured and
// the experiment goes on.
var ErrNotSupported = errors.New("not supported")

// NotSupported is an error that Is ErrNotSupported; its text is the reason alone, a sentence
// without full stop that names the missing feature.
type NotSupported string

func (e NotSupported) Error() string        { return string(e) }
func (e NotSupported) Is(target error) bool { return target == ErrNotSupported }

// A Value is one number that came out of a run, in its base unit.
type Value struct {
	Metric string        `json:"metric"` // one of package metric, or of a table of other people
	Unit   unit.Unit     `json:"unit"`
	Better metric.Better `json:"better,omitempty"`
	Number float64       `json:"value"` // finite
	// Step is the smallest difference that the measurement can show, as a fraction, where it is known: the grid of a
	// search.
	Step float64 `json:"step,omitempty"`
}

// NewValue is a value of a metric.
func NewValue(m metric.Metric, number float64) Value {
	return Value{Metric: m.Name, Unit: m.Unit, Better: m.Better, Number: number}
}

// Usable says whether the number can have been measured. What is farther from 1 than any quantity in its base unit
// comes from an error, and its ratios could not be written.
func (v Value) Usable() bool {
	size := math.Abs(v.Number)
	return size == 0 || size > 1e-100 && size < 1e100
}

// A Fact is something true of a target or a run that is not a measurement: a kernel version, an
// MTU, the CPU a thread ran on. Names are lower-case words joined by dots and dashes.
type Fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// A Series is a quantity over the window of a run, one number per step.
type Series struct {
	Name   string    `json:"name"` // the metric it is a series of
	Unit   unit.Unit `json:"unit"`
	Step   float64   `json:"step"` // seconds
	Values []float64 `json:"values"`
	// Marks are what happened meanwhile; a series with marks is around an event, which is its time 0, and Begin is the
	// time of the first value, s.
	Begin float64 `json:"begin,omitempty"`
	Marks []Mark  `json:"marks,omitempty"`
}

// A Mark is something that happened at a time of a series, s.
type Mark struct {
	Name string  `json:"name"`
	At   float64 `json:"at"`
}

// A Histogram is a distribution of latencies in nanoseconds, as HdrHistogram V2 compressed base64,
// three significant digits, mergeable with others.
type Histogram struct {
	Name    string `json:"name"` // latency
	Unit    string `json:"unit"` // ns
	Count   int64  `json:"count"`
	Encoded string `json:"hdr,omitempty"` // in runs.ndjson left out: the store keeps it under raw/
}

// A File is raw evidence of a run, kept as it was: a command line, a tool's output.
type File struct {
	Name string // without directories
	Data []byte
}

// A Measurement is what a tool returns of one run of one workload.
type Measurement struct {
	// Window is the seconds that were measured; 0 means the workload's Duration.
	Window     float64
	Values     []Value
	Series     []Series
	Histograms []Histogram
	Facts      []Fact
	// Invalid lists the validity gates that the run failed. An invalid run is kept and shown, never averaged; its block
	// is run again.
	Invalid  []Warning
	Warnings []Warning
	Raw      []File
}

// A Site is what the runs of a block had on a target, from its making to its end. Times are in seconds.
type Site struct {
	Schema   string    `json:"schema"`
	Number   int       `json:"site"` // unique in the experiment, from 1
	Target   string    `json:"target"`
	Block    int       `json:"block"`             // from 1
	Session  int       `json:"session,omitempty"` // in which it was made, from 1
	Start    time.Time `json:"start"`
	Setup    float64   `json:"setup"`            // making and checking its places
	Used     float64   `json:"used"`             // from then until its removal began
	Cleanup  float64   `json:"cleanup"`          // removing them
	Values   []Value   `json:"values,omitempty"` // what it took of the target beside the load of its runs
	Warnings []Warning `json:"warnings,omitempty"`
}

// End is when the site was gone.
func (s Site) End() time.Time { return after(s.Start, s.Setup+s.Used+s.Cleanup) }

// Value returns the value of a metric, and whether the site has it.
func (s Site) Value(metric string) (Value, bool) { return valueOf(s.Values, metric) }

// A Run is one measurement of one case on one target, in the places of a site. Times are in seconds.
type Run struct {
	Schema  string `json:"schema"`
	ID      string `json:"run"` // unique in the experiment, and the name of its directory under raw/
	Case    string `json:"case"`
	Target  string `json:"target"`
	Block   int    `json:"block"`             // from 1
	Attempt int    `json:"attempt"`           // from 1; the block's last attempt counts, in turn that of its target
	Slot    int    `json:"slot"`              // position within the block, from 1
	Session int    `json:"session,omitempty"` // in which it was measured, from 1; 0 of an imported run
	Site    int    `json:"site,omitempty"`    // in which it was measured, from 1; 0 of an imported run
	// Visit is the number of the switch that put the target in place; 0 unless targets are measured in turn.
	Visit   int       `json:"visit,omitempty"`
	Start   time.Time `json:"start"`
	Setup   float64   `json:"setup"`   // starting the tool, warming up
	Window  float64   `json:"window"`  // measuring
	Cleanup float64   `json:"cleanup"` // ending the tool, asking what became of the places
	Tool    string    `json:"tool"`
	// Experiment is the label of the run's experiment, where those of several are together.
	Experiment string `json:"-"`

	Values     []Value     `json:"values"`
	Series     []Series    `json:"series,omitempty"`
	Histograms []Histogram `json:"histograms,omitempty"`
	Facts      []Fact      `json:"facts,omitempty"`
	Invalid    []Warning   `json:"invalid,omitempty"`
	Warnings   []Warning   `json:"warnings,omitempty"`
}

// Valid says whether the run passed every gate.
func (r Run) Valid() bool { return len(r.Invalid) == 0 }

// End is when the run was over.
func (r Run) End() time.Time { return after(r.Start, r.Setup+r.Window+r.Cleanup) }

func after(t time.Time, seconds float64) time.Time {
	return t.Add(time.Duration(seconds * float64(time.Second)))
}

// Value returns the value of a metric, and whether the run has it.
func (r Run) Value(metric string) (Value, bool) { return valueOf(r.Values, metric) }

func valueOf(values []Value, metric string) (Value, bool) {
	for _, v := range values {
		if v.Metric == metric {
			return v, true
		}
	}
	return Value{}, false
}

// Fact returns the value of the run's fact of that name, "" if it has none.
func (r Run) Fact(name string) string { return FactOf(r.Facts, name) }

// FactOf returns the value of the first fact of that name, "" if there is none.
func FactOf(facts []Fact, name string) string {
	for _, f := range facts {
		if f.Name == name {
			return f.Value
		}
	}
	return ""
}

// Role says what a case is for.
type Role string

// The roles. A bound is measured once per block on each underlay, to tell what the path could reach at most.
const (
	Primary     Role = "primary"
	Exploratory Role = "exploratory"
	Bound       Role = "bound"
)

// A Case is one thing that is measured on every target.
type Case struct {
	Name     string `json:"name"`               // <path>/<workload>
	Path     string `json:"path,omitempty"`     // pod-pod/other, storage, …; empty of an imported case that has none
	Workload string `json:"workload,omitempty"` // tcp-rr:flows=4, randread-4k-qd1, …
	Role     Role   `json:"role"`               //
	Metric   string `json:"metric"`             // the metric that the verdict of a primary case is about
	Planned  string `json:"-"`                  // the metric of the plan, where another was chosen for the verdict
	Bound    string `json:"bound,omitempty"`    // the name of the case that bounds this one, if it is measured
	Load     Load   `json:"load,omitzero"`
	Words    Words  `json:"words,omitzero"`
	// Definition is what the name alone does not say: the text of a job of the user's own.
	Definition string `json:"definition,omitempty"`
	// Synonym is the name that the case has where a user describes it, if another tool's output tells that:
	// storage/job/read_iops of an imported storage/randread-4k-qd128.
	Synonym string `json:"synonym,omitempty"`
}

// Words say in plain words what a case measures: the latency of "Pod → pod, other node". The family of its workload
// knows them; the zero value leaves readers with the case's name.
type Words struct {
	Subject  string `json:"subject,omitempty"`
	Quantity string `json:"quantity,omitempty"` // that its metric tells: throughput, latency
	// Group is of cases about one thing, which are shown side by side: Deployments. Member is the case in it: create.
	// Both are empty if the case is in none.
	Group  string `json:"group,omitempty"`
	Member string `json:"member,omitempty"`
}

// A Load is what is known of what a case does by which its numbers are judged. The family of its workload says it; the
// zero value is nothing.
type Load struct {
	// Outstanding is how many requests are under way at any time, in a closed loop with one on each connection.
	Outstanding int  `json:"outstanding,omitempty"`
	BothWays    bool `json:"both_ways,omitempty"`    // a stream's bytes go both ways at once
	Volume      bool `json:"volume,omitempty"`       // what is measured is a volume
	Reads       bool `json:"reads,omitempty"`        // it is read
	SingleReads bool `json:"single_reads,omitempty"` // at random places, one after another, and nothing else is done
}

// A Target is one of the things that are compared.
type Target struct {
	Name string `json:"name"` // its label, unique in the experiment
	Spec string `json:"spec"` // as given: lab:vxlan?mtu=9000
	// Underlay is what carries traffic between its nodes; targets with equal ones share their bounds. Empty: it has one of
	// its own.
	Underlay string `json:"underlay,omitempty"`
	// Switch puts the target in place before each of its visits; nil: it is in place. Where one target has a Switch, all
	// are measured in turn.
	Switch *Command `json:"switch,omitempty"`
	// Alias is its name in its own experiment, where the targets of several are together.
	Alias string `json:"-"`
}

// Matches reports whether a pattern is about the target, by one of its names.
func (t Target) Matches(pattern string) bool {
	return Match(pattern, t.Name) || Match(pattern, t.Alias)
}

// A Command is one of the user's own, for sh -c.
type Command struct {
	Text      string  `json:"command"`
	Directory string  `json:"directory"` // where it runs; absolute
	Limit     float64 `json:"limit"`     // seconds after which it is killed
}

// A Switch is a visit of a target whose configuration is put in place for it, or the end of all of them: what the
// command did, and what was found then. Times are in seconds.
type Switch struct {
	Schema  string    `json:"schema"`
	Number  int       `json:"switch"`            // unique in the experiment, from 1
	Session int       `json:"session,omitempty"` // from 1
	Target  string    `json:"target,omitempty"`  // empty: the testbed was restored
	Block   int       `json:"block,omitempty"`   // from 1; 0 of a restoration
	Start   time.Time `json:"start"`
	Took    float64   `json:"took"`             // running the command
	Ready   float64   `json:"ready,omitempty"`  // from its end until the target was ready and its facts were found
	Output  string    `json:"output,omitempty"` // what the command printed, both streams; of much the end
	Failed  string    `json:"failed,omitempty"` // why nothing was measured, or what is not restored
	Facts   []Fact    `json:"facts,omitempty"`
}

// Design is how an experiment is laid out. Times are in seconds.
type Design struct {
	Kind     string  `json:"kind"` // "randomised complete blocks"
	Blocks   int     `json:"blocks"`
	Duration float64 `json:"duration"` // of the window of a run
	Warmup   float64 `json:"warmup"`
	Budget   float64 `json:"budget,omitempty"` // 0: none
	// Looks are the numbers of blocks after which a case may stop, ascending, the last one Blocks. None:
	// every case has all blocks, and is looked at once.
	Looks    []int   `json:"looks,omitempty"`
	AllPairs bool    `json:"all_pairs,omitempty"` // every target is compared with every other, not only with the baseline
	Parallel bool    `json:"parallel,omitempty"`  // a block's runs of a case are at once, on targets that share nothing
	Alpha    float64 `json:"alpha"`               // of the whole family of primary comparisons
	Delta    float64 `json:"delta"`               // smallest difference that matters, as a fraction
}

// NotMeasured says what was left out, and why. Target and Case may be "*": all of them.
type NotMeasured struct {
	Target string `json:"target"`
	Case   string `json:"case"`
	Reason string `json:"reason"`
}

// Covers says whether a case on a target was left out.
func (n NotMeasured) Covers(target, caseName string) bool {
	return (n.Target == target || n.Target == "*") && (n.Case == caseName || n.Case == "*")
}

// An Experiment is the resolved plan: with it and the runs, everything can be computed again.
type Experiment struct {
	Schema      string        `json:"schema"`
	ID          string        `json:"experiment"`
	Created     time.Time     `json:"created"`
	Version     string        `json:"version"` // of this program
	Seed        uint64        `json:"seed"`
	Suite       string        `json:"suite"`
	Chosen      []string      `json:"chosen,omitempty"`    // the patterns that chose among the suite's cases
	Primaries   []string      `json:"primaries,omitempty"` // the patterns that chose the primary ones
	Metric      string        `json:"metric,omitempty"`    // chosen instead of the cases' own, where they have it
	Tool        string        `json:"tool"`
	Design      Design        `json:"design"`
	Baseline    string        `json:"baseline"`
	Targets     []Target      `json:"targets"`
	Restore     *Command      `json:"restore,omitempty"`  // puts the testbed back, after targets were measured in turn
	Gates       []string      `json:"gates,omitempty"`    // conditions on the outcome: "pod-pod/*/tcp-rr p99 <= +5%"
	Imported    string        `json:"imported,omitempty"` // format of the tool that made the runs, which have no blocks
	Cases       []Case        `json:"cases"`
	NotMeasured []NotMeasured `json:"not_measured"`
	Warnings    []string      `json:"warnings,omitempty"` // about all of it, each a sentence without full stop
}

// CasesByName are cases by their names, of which the last one counts.
func CasesByName(cases []Case) map[string]Case {
	of := map[string]Case{}
	for _, c := range cases {
		of[c.Name] = c
	}
	return of
}

// Case returns the case of a name, and whether there is one.
func (e Experiment) Case(name string) (Case, bool) {
	for _, c := range e.Cases {
		if c.Name == name {
			return c, true
		}
	}
	return Case{}, false
}

// Measures reports whether a case is measured on a target: a bound on one target of each underlay, and nothing that was
// left out.
func (e Experiment) Measures(c Case, target string) bool {
	leftOut := slices.ContainsFunc(e.NotMeasured, func(n NotMeasured) bool { return n.Covers(target, c.Name) })
	return !leftOut && (c.Role != Bound || target == e.BoundsOf(target))
}

// BoundsOf returns the target whose bounds are a target's: of those on its underlay the baseline, else the first.
func (e Experiment) BoundsOf(target string) string {
	underlays := map[string]string{}
	for _, t := range e.Targets {
		underlays[t.Name] = t.Underlay
	}
	for _, name := range append([]string{e.Baseline}, e.TargetNames()...) {
		if name == target || underlays[name] != "" && underlays[name] == underlays[target] {
			return name
		}
	}
	return target
}

// InTurn reports whether a block visits one target after another, since they are never in place at the same time.
func (e Experiment) InTurn() bool {
	return slices.ContainsFunc(e.Targets, func(t Target) bool { return t.Switch != nil })
}

// MeasuredOn are the names of the targets that a case is measured on, in the order of the experiment.
func (e Experiment) MeasuredOn(c Case) []string {
	return slices.DeleteFunc(e.TargetNames(), func(name string) bool { return !e.Measures(c, name) })
}

// TargetNames are the names of the targets, in their order.
func (e Experiment) TargetNames() []string {
	names := make([]string, len(e.Targets))
	for i, t := range e.Targets {
		names[i] = t.Name
	}
	return names
}

// A Session is one start of the program to measure an experiment, or to resume it, and what it found at its beginning.
type Session struct {
	Schema  string            `json:"schema"`
	Number  int               `json:"session"` // from 1
	Start   time.Time         `json:"start"`
	Version string            `json:"version"` // of this program
	Facts   map[string][]Fact `json:"facts"`   // by target
}

// Results is what a results directory holds.
type Results struct {
	Experiment Experiment
	Sessions   []Session
	Switches   []Switch
	Sites      []Site
	Runs       []Run
	Facts      map[string][]Fact // by target, of its first session, or visit
}
