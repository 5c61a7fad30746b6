// Package family defines what can be measured. A Family is a kind of measurement: network paths, storage, API servers,
// applications. Everything specific to a family is in its own folder below this one: workloads with their text form and
// limits, cases, suites, and requirements on targets. All other packages know only the types defined here.
package family

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/parameter"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
)

// A Workload is what a case measures, not how: a resolved, immutable value that is comparable with ==.
type Workload interface {
	// String returns the full name of its case, which its family parses: pod-pod/other/tcp-rr:flows=4.
	String() string
	// Traits returns the properties that other packages need.
	Traits() Traits
}

// Traits are the properties of a workload that packages outside of its family need.
type Traits struct {
	Path   string            // first part of the name: pod-pod/other, storage
	Kind   string            // rest of the name: tcp-rr:flows=4
	Metric string            // metric that verdicts are about
	Load   result.Load       // properties that the audit checks results against
	Words  result.Words      // names for readers
	Needs  targets.Placement // requirements on the target
	Limits Limits
	// Alone means that the workload has sites of its own, because it would affect later workloads there or takes long.
	Alone bool
	// Nominal is the usual time of a run outside of its windows.
	Nominal Nominal
	// Reference is the workload whose result is the best that this one can reach, such as the same one from node to node;
	// nil: there is none.
	Reference Workload
	// Definition is the text of a user's job or requests, which the name does not contain.
	Definition string
}

// Sitting returns a key that is equal for the cases of a block that share sites: all but those with Alone.
func (t Traits) Sitting() string {
	if t.Alone {
		return t.Path + "/" + t.Kind
	}
	return ""
}

// Limits are the time limits of a workload in addition to those of every run. The zero value adds nothing.
type Limits struct {
	Open, Close time.Duration // opening and closing its site
	Run         time.Duration // the tool, outside of its windows
	Windows     int           // windows that the tool may use, each with its warm-up; 0 means 1
}

// Nominal is the usual time of a workload outside of its window. Plans predict the length of an experiment with it
// before anything is measured. The zero value adds nothing.
type Nominal struct {
	Site    time.Duration // creating and removing what a cluster needs for it in addition to pods
	First   time.Duration // the first run in a new site, in addition to Run
	Run     time.Duration // every run
	Windows float64       // windows of a search in addition to the one that counts, each with its warm-up
}

// Times holds the times and the random seed of a run.
type Times struct {
	Warmup time.Duration `json:"warmup"`         // ns
	Window time.Duration `json:"window"`         // ns
	Seed   uint64        `json:"seed,omitempty"` // differs between the runs of an experiment
}

// TimesOf returns the times of every run in a design, without a seed.
func TimesOf(d result.Design) Times {
	seconds := func(v float64) time.Duration { return time.Duration(v * float64(time.Second)) }
	return Times{Warmup: seconds(d.Warmup), Window: seconds(d.Duration)}
}

// Total returns the time of a window with its warm-up.
func (t Times) Total() time.Duration { return t.Warmup + t.Window }

// Bound returns how long the tool may run, plus a grace period.
func (l Limits) Bound(t Times, grace time.Duration) time.Duration {
	return time.Duration(max(1, l.Windows))*t.Total() + l.Run + grace
}

// A Disturbing workload may disturb other users of the system under test.
type Disturbing interface {
	// Disturbs returns the reason why it may disturb others with these times, empty if it does not.
	Disturbs(t Times) string
}

// A Sender is a workload that sends requests.
type Sender interface {
	// Sends returns where its requests go and what they contain; zero if the target determines that.
	Sends() Sent
}

// Sent holds what the requests of a user's description are, where they go, and which files and variables of this
// machine they contain.
type Sent struct {
	To        host.Destination
	Requests  []string // each with its method and path, such as GET /list
	Files     []string // files of this machine
	Variables []string // environment variables of this machine
}

// A Paced workload can have another rate or number of clients.
type Paced interface {
	// At returns the workload with another rate, in operations per second, or another number of clients in a closed
	// loop. A value of 0 changes nothing.
	At(rate float64, clients int) Workload
}

// A Capped workload can have its throughput limited.
type Capped interface {
	// Capped returns the workload limited to bitsPerSecond in each direction. A workload without bulk traffic is
	// returned unchanged; it is an error if a workload cannot be limited.
	Capped(bitsPerSecond float64) (Workload, error)
}

// A Case is a workload with its role in the experiment.
type Case struct {
	Workload Workload
	Role     result.Role
}

// Name returns <path>/<workload>, for example pod-pod/other/tcp-rr.
func (c Case) Name() string { return c.Workload.String() }

// Planned returns the case as the plan of an experiment contains it.
func (c Case) Planned() result.Case {
	t := c.Workload.Traits()
	return result.Case{
		Name: c.Name(), Path: result.Path(t.Path), Workload: t.Kind, Role: c.Role, Metric: t.Metric, Load: t.Load,
		Words: t.Words, Definition: t.Definition,
	}
}

// A Suite is a named list of cases.
type Suite struct {
	Name  string // such as network:quick
	About string // one line for the command list
	Cases []Case
	// Duration is the default window of a run; 0: the design's.
	Duration time.Duration
}

// A SuiteFile reads a suite from a user's file: --suite storage:jobs.fio.
type SuiteFile struct {
	About string
	// Read returns the suite. name is the name of the file, for errors and the suite's name.
	Read func(name string, data []byte) (Suite, error)
}

// A Sample is a workload that represents others of its family, with their name in lists.
type Sample struct {
	Name     string
	Workload Workload
}

// A Family is a kind of measurement.
type Family struct {
	Name  string   // such as network; --suite NAME:FILE uses it too
	Paths []string // first parts of the names of its cases
	// Parse returns a workload from its path, the rest of its name, and its definition, which most workloads do not have.
	Parse func(path, name, definition string) (Workload, error)
	// Parameters returns the parameters that names of a workload may have; of nil: those of all workloads.
	Parameters func(of Workload) []parameter.Help
	Suites     []Suite
	File       *SuiteFile // nil: it reads no files
	// Kinds has a sample of each kind of workload, to list what tools support. Offers has the samples that show what a
	// target supports.
	Kinds, Offers []Sample
	Tools         []Tool
}

// ParametersOf returns [Family.Parameters] of a family whose workloads are a W.
func ParametersOf[W Workload](table parameter.Schema[W]) func(Workload) []parameter.Help {
	return func(of Workload) []parameter.Help {
		if w, is := of.(W); is {
			return table.HelpOf(w)
		}
		return table.Help()
	}
}

// ErrNoCase is wrapped by errors about names of cases.
var ErrNoCase = errors.New("no such case")

// A List is a list of all families.
type List []Family

// Parse returns the exploratory case with a full name and a definition. Every error wraps [ErrNoCase].
func (l List) Parse(name, definition string) (Case, error) {
	f, path, rest := l.split(name)
	if path == "" {
		return Case{}, fmt.Errorf("%w: %q does not begin with a path, such as %s", ErrNoCase, name, l.examplePaths())
	}
	w, err := f.Parse(path, rest, definition)
	if err != nil {
		return Case{}, fmt.Errorf("%w: %q: %w", ErrNoCase, name, err)
	}
	return Case{Workload: w, Role: result.Exploratory}, nil
}

// ImportedCase returns the exploratory case of an imported or published result, with the path, workload and load as far
// as they follow from its name. The name may lack a path, and need not be that of a known workload.
func (l List) ImportedCase(name string) result.Case {
	f, path, rest := l.split(name)
	known := result.Case{Name: name, Path: result.Path(path), Workload: rest, Role: result.Exploratory}
	if path != "" {
		l = List{f}
	}
	known.Load.Volume = len(f.Offers) > 0 && f.Offers[0].Workload.Traits().Load.Volume // the same for every workload
	for _, f := range l {
		if w, err := f.Parse(cmp.Or(path, f.Paths[0]), rest, ""); err == nil {
			known.Load = w.Traits().Load
			break
		}
	}
	return known
}

// split returns the family and the path of a name, and the rest of the name. Without a known path the rest is the name.
func (l List) split(name string) (f Family, path, rest string) {
	for _, f := range l {
		for _, path := range f.Paths {
			if rest, is := strings.CutPrefix(name, path+"/"); is {
				return f, path, rest
			}
		}
	}
	return Family{}, "", name
}

// Parameters returns the parameters that a case may have whose name, perhaps incomplete, is given; those of all its
// family's cases if it needs some that are not there yet.
func (l List) Parameters(name string) []parameter.Help {
	name, _, _ = strings.Cut(name, ":")
	f, path, rest := l.split(name)
	if f.Parameters == nil {
		return nil
	}
	if w, err := f.Parse(path, rest, ""); err == nil {
		return f.Parameters(w)
	}
	return f.Parameters(nil)
}

// examplePaths returns one path of each family, for errors.
func (l List) examplePaths() string {
	var paths []string
	for _, f := range l {
		paths = append(paths, f.Paths[len(f.Paths)-1]+"/")
	}
	return strings.Join(paths, ", ")
}

// Suites returns the suites of all families.
func (l List) Suites() []Suite {
	var suites []Suite
	for _, f := range l {
		suites = append(suites, f.Suites...)
	}
	return suites
}

// Needs returns what the cases of all suites need of targets.
func (l List) Needs() []targets.Placement {
	var list []targets.Placement
	for _, s := range l.Suites() {
		for _, c := range s.Cases {
			list = append(list, c.Workload.Traits().Needs)
		}
	}
	return list
}

// Tools returns the tools of all families, each once.
func (l List) Tools() Set {
	var tools Set
	for _, f := range l {
		for _, t := range f.Tools {
			if !slices.ContainsFunc(tools, func(other Tool) bool { return other.Name() == t.Name() }) {
				tools = append(tools, t)
			}
		}
	}
	return tools
}

// Cases returns the cases with these names, each with the role. It panics if parse returns an error, because the names
// are constants of the program.
func Cases(role result.Role, parse func(name string) (Workload, error), names ...string) []Case {
	cases := make([]Case, 0, len(names))
	for _, name := range names {
		w, err := parse(name)
		if err != nil {
			panic("a case of a suite is none: " + err.Error())
		}
		cases = append(cases, Case{Workload: w, Role: role})
	}
	return cases
}

// Unique returns the cases without duplicates: of several cases with one name it keeps the first.
func Unique(cases []Case) []Case {
	var kept []Case
	for _, c := range cases {
		if !slices.ContainsFunc(kept, func(k Case) bool { return k.Name() == c.Name() }) {
			kept = append(kept, c)
		}
	}
	return kept
}
