// Package result defines what is measured and planned as data: every measurement, with any tool on any target, becomes
// a [Run] with its [Value]s. Statistics, comparison and reports depend on these types alone.
//
// The types are also the file format: experiment.json holds an [Experiment]; each line of runs.ndjson a [Run], of
// sites.ndjson a [Site], of sessions.ndjson a [Session], of switches.ndjson a [Switch]; facts/<target>.json a list of
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

// Unknown is the value of a fact that could not be determined. Such a fact is not left out.
const Unknown = "unknown"

// None is the value of a property, such as encapsulation, that a path does not have.
const None = "none"

// ConfidentialVM is the fact of a machine with the signs that it is a confidential virtual machine, or
// NoConfidentialSign.
const (
	ConfidentialVM     = "confidential-vm"
	NoConfidentialSign = "no sign seen"
)

// MeshIntercepted is the fact of a run on pods of a service mesh: whether the mesh took over their connections. Its
// value is yes, no, unknown or not applicable.
const MeshIntercepted = "mesh.intercepted"

// ErrNotSupported marks errors about what a kernel, a tool or a target does not support. The text of such an error
// names the missing feature; it is reported under not_measured, and the experiment continues.
var ErrNotSupported = errors.New("not supported")

// A NotSupported is an error that Is ErrNotSupported. Its text is the reason, a sentence without full stop that names
// the missing feature.
type NotSupported string

func (e NotSupported) Error() string { return string(e) }

// Is reports whether target is ErrNotSupported.
func (e NotSupported) Is(target error) bool { return target == ErrNotSupported }

// A Value is one number that a run measured, in its base unit.
type Value struct {
	Metric string        `json:"metric"` // of package metric, or of published figures
	Unit   unit.Unit     `json:"unit"`
	Better metric.Better `json:"better,omitempty"`
	Number float64       `json:"value"` // finite
	// Step is the resolution of the measurement as a fraction, such as the grid of a search; 0: not known.
	Step float64 `json:"step,omitempty"`
}

// NewValue returns a value of a metric.
func NewValue(m metric.Metric, number float64) Value {
	return Value{Metric: m.Name, Unit: m.Unit, Better: m.Better, Number: number}
}

// Usable reports whether the number can have been measured: it is 0, or its size is between 1e-100 and 1e100. Others
// come from errors, and ratios with them may overflow.
func (v Value) Usable() bool {
	size := math.Abs(v.Number)
	return size == 0 || size > 1e-100 && size < 1e100
}

// A Fact describes a target or a run without being a measurement: a kernel version, an MTU, the CPU of a thread. Names
// are lower-case words joined by dots and dashes. A value that follows from evidence, such as the encapsulation vxlan,
// is a word that can be compared; the evidence is next to it.
type Fact struct {
	Name     string `json:"name"`
	Value    string `json:"value"`
	Evidence string `json:"evidence,omitempty"` // what shows the value; empty if the value itself was read
}

// String returns the value with its evidence: "vxlan (config map cilium-config)".
func (f Fact) String() string {
	if f.Evidence == "" {
		return f.Value
	}
	return f.Value + " (" + f.Evidence + ")"
}

// A Series is a quantity over the window of a run, one number per step.
type Series struct {
	Name   string    `json:"name"` // of the metric
	Unit   unit.Unit `json:"unit"`
	Step   float64   `json:"step"` // seconds
	Values []float64 `json:"values"`
	// Marks are events during the series. A series with marks has its main event at time 0, and Begin is the time of the
	// first value in seconds.
	Begin float64 `json:"begin,omitempty"`
	Marks []Mark  `json:"marks,omitempty"`
}

// A Mark is an event at a time of a series, in seconds.
type Mark struct {
	Name string  `json:"name"`
	At   float64 `json:"at"`
}

// A Histogram is a distribution of latencies in nanoseconds, encoded as compressed HdrHistogram V2 in base64 with three
// significant digits. Histograms can be merged.
type Histogram struct {
	Name    string `json:"name"` // latency
	Unit    string `json:"unit"` // ns
	Count   int64  `json:"count"`
	Encoded string `json:"hdr,omitempty"` // empty in runs.ndjson; the store keeps it under raw/
}

// A File is unchanged raw evidence of a run: a command line, a tool's output.
type File struct {
	Name string // without directories
	Data []byte
}

// A Measurement is what a tool returns of one run of one workload.
type Measurement struct {
	// Window is the length of the measured window in seconds; 0: the design's Duration.
	Window     float64
	Values     []Value
	Series     []Series
	Histograms []Histogram
	Facts      []Fact
	// Invalid lists the checks that the run failed. An invalid run is kept and shown, but not used; its case is measured
	// again.
	Invalid  []Warning
	Warnings []Warning
	Raw      []File
}

// A Site records the pods or namespaces of a block on a target, from opening to closing. Times are in seconds.
type Site struct {
	Schema   string    `json:"schema"`
	Number   int       `json:"site"` // unique in the experiment, from 1
	Target   string    `json:"target"`
	Block    int       `json:"block"`             // from 1
	Session  int       `json:"session,omitempty"` // in which it was opened, from 1
	Start    time.Time `json:"start"`
	Setup    float64   `json:"setup"`            // opening it and checking its places
	Used     float64   `json:"used"`             // from then until closing began
	Cleanup  float64   `json:"cleanup"`          // closing it
	Values   []Value   `json:"values,omitempty"` // cost for the target besides the load of its runs
	Warnings []Warning `json:"warnings,omitempty"`
}

// End returns the time when the site was closed.
func (s Site) End() time.Time { return after(s.Start, s.Setup+s.Used+s.Cleanup) }

// Value returns the value of a metric, and whether the site has it.
func (s Site) Value(metric string) (Value, bool) { return valueOf(s.Values, metric) }

// A Run is one measurement of one case on one target. Times are in seconds.
type Run struct {
	Schema  string `json:"schema"`
	ID      string `json:"run"` // unique in the experiment, and the name of its directory under raw/
	Case    string `json:"case"`
	Target  string `json:"target"`
	Block   int    `json:"block"`             // from 1
	Attempt int    `json:"attempt"`           // from 1; see LastAttempts
	Slot    int    `json:"slot"`              // position within the block, from 1
	Session int    `json:"session,omitempty"` // from 1; 0 for an imported run
	Site    int    `json:"site,omitempty"`    // from 1; 0 for an imported run
	// Visit is the number of the switch that put the target in place; 0 unless targets are measured in turn.
	Visit   int       `json:"visit,omitempty"`
	Start   time.Time `json:"start"`
	Setup   float64   `json:"setup"`   // starting the tool, warming up
	Window  float64   `json:"window"`  // measuring
	Cleanup float64   `json:"cleanup"` // ending the tool, checking the health of its place
	Tool    string    `json:"tool"`
	// Experiment is the label of the run's experiment if runs of several experiments are joined.
	Experiment string `json:"-"`

	Values     []Value     `json:"values"`
	Series     []Series    `json:"series,omitempty"`
	Histograms []Histogram `json:"histograms,omitempty"`
	Facts      []Fact      `json:"facts,omitempty"`
	Invalid    []Warning   `json:"invalid,omitempty"`
	Warnings   []Warning   `json:"warnings,omitempty"`
}

// Valid reports whether the run passed every check.
func (r Run) Valid() bool { return len(r.Invalid) == 0 }

// End returns the time when the run ended.
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

// Fact returns the value of a fact of the run; "" if it has none of that name.
func (r Run) Fact(name string) string { return FactOf(r.Facts, name) }

// ThroughMesh reports whether a service mesh is known to have taken over the connections of the run.
func (r Run) ThroughMesh() bool { return r.Fact(MeshIntercepted) == "yes" }

// FactOf returns the value of the first fact of a name; "" if there is none.
func FactOf(facts []Fact, name string) string {
	for _, f := range facts {
		if f.Name == name {
			return f.Value
		}
	}
	return ""
}

// A Role is the purpose of a case.
type Role string

// The roles of cases. Verdicts are about primary cases. A bound, which users know as a reference, is measured once per
// block on each underlay and shows what other cases could reach at best.
const (
	Primary     Role = "primary"
	Exploratory Role = "exploratory"
	Bound       Role = "bound"
)

// A Case is a workload on a path, measured on every target.
type Case struct {
	Name     string `json:"name"`               // <path>/<workload>
	Path     Path   `json:"path,omitempty"`     // pod-pod/other, storage, …; empty for an imported case without one
	Workload string `json:"workload,omitempty"` // tcp-rr:flows=4, randread-4k-qd1, …
	Role     Role   `json:"role"`               // primary, exploratory or bound
	Metric   string `json:"metric"`             // main metric, which the verdict of a primary case is about
	Planned  string `json:"-"`                  // the plan's main metric, if another was chosen for the verdict
	Bound    string `json:"bound,omitempty"`    // name of the case that bounds this one, if it is measured
	Load     Load   `json:"load,omitzero"`
	Words    Words  `json:"words,omitzero"`
	// Definition is the text of a user's own job or requests, which the name does not contain.
	Definition string `json:"definition,omitempty"`
	// Synonym is the name that an imported case would have as a user's own job, if the other tool's output contains the
	// job's name: storage/job/read_iops for storage/randread-4k-qd128.
	Synonym string `json:"synonym,omitempty"`
}

// Words describe in plain words what a case measures, such as the latency of "Pod → pod, other node". They come from
// the family of its workload; without them, reports show the case's name.
type Words struct {
	Subject  string `json:"subject,omitempty"`
	Quantity string `json:"quantity,omitempty"` // of its metric: throughput, latency
	// Group names a group of cases that are shown side by side, such as Deployments; Member the case in it, such as
	// create. Both are empty for a case without a group.
	Group  string `json:"group,omitempty"`
	Member string `json:"member,omitempty"`
}

// ShownUnit returns the unit in which text shows values of the case that are in u: text about volumes has its own.
func (c Case) ShownUnit(u unit.Unit) unit.Unit {
	if c.Load.Volume {
		return u.OfVolume()
	}
	return u
}

// A Load describes the load of a case, as far as it is known, so that the audit can check its numbers. It comes from
// the family of its workload.
type Load struct {
	// Outstanding is the number of requests in flight in a closed loop with one on each connection; 0: not known.
	Outstanding int  `json:"outstanding,omitempty"`
	BothWays    bool `json:"both_ways,omitempty"`    // a stream sends in both directions at the same time
	Volume      bool `json:"volume,omitempty"`       // a volume is measured
	Reads       bool `json:"reads,omitempty"`        // the volume is read
	SingleReads bool `json:"single_reads,omitempty"` // only random reads, one at a time
	Local       bool `json:"local,omitempty"`        // only a node's CPUs and memory are used: no packets, no volume
}

// A Target is one of the compared targets.
type Target struct {
	Name string `json:"name"` // its label, unique in the experiment
	Spec Spec   `json:"spec"` // lab:vxlan?mtu=9000; in the file as this text
	// Underlay identifies the network between its nodes; targets with the same underlay share their bounds. Empty: the
	// target does not share its underlay.
	Underlay string `json:"underlay,omitempty"`
	// Switch puts the target in place before each of its visits; nil: nothing needs to be done. If one target has a
	// Switch, all are measured in turn.
	Switch *Command `json:"switch,omitempty"`
	// Alias is its name in its own experiment, if targets of several experiments are joined.
	Alias string `json:"-"`
}

// Matches reports whether a pattern matches the target's name or alias.
func (t Target) Matches(pattern string) bool {
	return Match(pattern, t.Name) || Match(pattern, t.Alias)
}

// A Command is a command line of the user's, run by sh -c.
type Command struct {
	Text      string  `json:"command"`
	Directory string  `json:"directory"` // where it runs; absolute
	Limit     float64 `json:"limit"`     // seconds after which it is killed
}

// A Switch records a switch to a target before a visit, or the restoration of the testbed at the end: the outcome of
// the command, and the facts found after it. Times are in seconds.
type Switch struct {
	Schema  string    `json:"schema"`
	Number  int       `json:"switch"`            // unique in the experiment, from 1
	Session int       `json:"session,omitempty"` // from 1
	Target  string    `json:"target,omitempty"`  // empty: the testbed was restored
	Block   int       `json:"block,omitempty"`   // from 1; 0 for a restoration
	Start   time.Time `json:"start"`
	Took    float64   `json:"took"`             // running the command
	Ready   float64   `json:"ready,omitempty"`  // from its end until the target was ready and its facts were known
	Output  string    `json:"output,omitempty"` // of the command, both streams; the end if it is long
	Failed  string    `json:"failed,omitempty"` // why nothing was measured or restored; empty: it did not fail
	Facts   []Fact    `json:"facts,omitempty"`
}

// A Design is the experimental design. Times are in seconds.
type Design struct {
	Kind     string  `json:"kind"` // "randomised complete blocks"
	Blocks   int     `json:"blocks"`
	Duration float64 `json:"duration"` // of the window of a run
	Warmup   float64 `json:"warmup"`
	Budget   float64 `json:"budget,omitempty"` // 0: none
	// Looks are the numbers of blocks after which a case may end, ascending; the last one is Blocks. If the list is
	// empty, every case has all blocks and is decided once, at the end.
	Looks    []int   `json:"looks,omitempty"`
	AllPairs bool    `json:"all_pairs,omitempty"` // every target is compared with every other, not only with the baseline
	Parallel bool    `json:"parallel,omitempty"`  // all targets measure a case at the same time; they share nothing
	Alpha    float64 `json:"alpha"`               // probability of any false verdict among all primary comparisons
	Delta    float64 `json:"delta"`               // smallest change that matters, as a fraction
}

// A NotMeasured records what was left out, and why. Target and Case may be "*" for all.
type NotMeasured struct {
	Target string `json:"target"`
	Case   string `json:"case"`
	Reason string `json:"reason"`
}

// EveryTarget reports whether it is about all targets.
func (n NotMeasured) EveryTarget() bool { return n.Target == "*" }

// EveryCase reports whether it is about all cases.
func (n NotMeasured) EveryCase() bool { return n.Case == "*" }

// Covers reports whether it includes a case on a target.
func (n NotMeasured) Covers(target, caseName string) bool {
	return (n.Target == target || n.EveryTarget()) && (n.Case == caseName || n.EveryCase())
}

// An Experiment is the resolved plan. Every report can be computed from it and the runs.
type Experiment struct {
	Schema      string        `json:"schema"`
	ID          string        `json:"experiment"`
	Created     time.Time     `json:"created"`
	Version     string        `json:"version"` // of this program
	Seed        uint64        `json:"seed"`
	Suite       string        `json:"suite"`
	Chosen      []string      `json:"chosen,omitempty"`    // patterns that chose among the suite's cases
	Primaries   []string      `json:"primaries,omitempty"` // patterns that chose the primary cases
	Metric      string        `json:"metric,omitempty"`    // main metric of all cases that have it; empty: each case's own
	Tool        string        `json:"tool"`
	Design      Design        `json:"design"`
	Baseline    string        `json:"baseline"`
	Targets     []Target      `json:"targets"`
	Restore     *Command      `json:"restore,omitempty"`  // restores the testbed after targets were measured in turn
	Gates       []string      `json:"gates,omitempty"`    // conditions on the outcome: "pod-pod/*/tcp-rr p99 <= +5%"
	Imported    string        `json:"imported,omitempty"` // format of another tool's results, which have no blocks
	Cases       []Case        `json:"cases"`
	NotMeasured []NotMeasured `json:"not_measured"`
	Warnings    []Warning     `json:"warnings,omitempty"` // about the whole experiment
}

// CasesByName returns the cases by name; the last one of a name wins.
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

// Measures reports whether a case is measured on a target: it was not left out, and a bound is measured on one target
// of each underlay only.
func (e Experiment) Measures(c Case, target string) bool {
	leftOut := slices.ContainsFunc(e.NotMeasured, func(n NotMeasured) bool { return n.Covers(target, c.Name) })
	return !leftOut && (c.Role != Bound || target == e.BoundsOf(target))
}

// BoundsOf returns the target that measures the bounds for a target: on the same underlay the baseline, else the first.
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

// InTurn reports whether targets are measured in turn, because they are never in place at the same time.
func (e Experiment) InTurn() bool {
	return slices.ContainsFunc(e.Targets, func(t Target) bool { return t.Switch != nil })
}

// MeasuredOn returns the names of the targets that measure a case, in the order of the experiment.
func (e Experiment) MeasuredOn(c Case) []string {
	return slices.DeleteFunc(e.TargetNames(), func(name string) bool { return !e.Measures(c, name) })
}

// TargetNames returns the names of the targets, in order.
func (e Experiment) TargetNames() []string {
	names := make([]string, len(e.Targets))
	for i, t := range e.Targets {
		names[i] = t.Name
	}
	return names
}

// A Session records one start or resumption of an experiment, and the facts of its targets then.
type Session struct {
	Schema  string            `json:"schema"`
	Number  int               `json:"session"` // from 1
	Start   time.Time         `json:"start"`
	Version string            `json:"version"` // of this program
	Facts   map[string][]Fact `json:"facts"`   // by target
}

// Results are the contents of a results directory.
type Results struct {
	Experiment Experiment
	Sessions   []Session
	Switches   []Switch
	Sites      []Site
	Runs       []Run
	Facts      map[string][]Fact // by target, as of its first session or visit
}
