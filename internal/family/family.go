// Package family says what can be measured. A Family is a kind of thing that is measured: network paths, storage, API
// servers, applications. All that is particular to one is in its own folder below this one: workloads with their text
// form and limits, cases, suites, what it needs of a target. Everything else knows workloads by the types here alone.
package family

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
)

// A Workload is what a case measures, never how: a resolved, immutable value that == compares.
type Workload interface {
	// String is the full name of its case, which its family parses: pod-pod/other/tcp-rr:flows=4.
	String() string
	// Traits are what is known of it outside its family.
	Traits() Traits
}

// Traits are what is known of a workload outside its family.
type Traits struct {
	Path   string            // the first part of its name: pod-pod/other, storage
	Kind   string            // the rest of its name: tcp-rr:flows=4
	Metric string            // that a verdict on it is about
	Load   result.Load       // by which its numbers are judged
	Words  result.Words      // by which readers know it
	Needs  targets.Placement // of a target
	Limits Limits
	// Alone says that it has sites of its own: it would leave something in them that others would feel, or takes long.
	Alone bool
	// Nominal is what it usually takes; the zero value is the windows alone.
	Nominal Nominal
	// Reference is what it can reach at most or at best, such as the same from node to node; nil: nothing is.
	Reference Workload
	// Definition is what the name alone does not say: the text of a user's own job or requests.
	Definition string
}

// Sitting names the cases of a block that are measured in the same sites: all but those that are alone.
func (t Traits) Sitting() string {
	if t.Alone {
		return t.Path + "/" + t.Kind
	}
	return ""
}

// Limits are what a run may take besides what every run may. The zero value is nothing.
type Limits struct {
	Open, Close time.Duration // making and removing its places
	Run         time.Duration // the tool, besides its windows
	Windows     int           // that the tool may take, each with its warm-up; 0 is 1
}

// Nominal is what a workload usually takes, by which plans predict how long an experiment takes before anything of it
// was measured.
type Nominal struct {
	Site    time.Duration // making and removing what a cluster has to make for it besides pods
	First   time.Duration // the first run in a site that was made, besides what every run takes
	Run     time.Duration // every run, besides its windows
	Windows float64       // of a search, besides the one that counts, each with its warm-up
}

// Times are those of a run, and what it draws random numbers from.
type Times struct {
	Warmup time.Duration `json:"warmup"`
	Window time.Duration `json:"window"`
	Seed   uint64        `json:"seed,omitempty"` // another one for each run of an experiment
}

// TimesOf are those of every run in a design.
func TimesOf(d result.Design) Times {
	seconds := func(v float64) time.Duration { return time.Duration(v * float64(time.Second)) }
	return Times{Warmup: seconds(d.Warmup), Window: seconds(d.Duration)}
}

// Total is how long a window takes with its warm-up.
func (t Times) Total() time.Duration { return t.Warmup + t.Window }

// Bound is how long the tool may take, with some grace.
func (l Limits) Bound(t Times, grace time.Duration) time.Duration {
	return time.Duration(max(1, l.Windows))*t.Total() + l.Run + grace
}

// A Disturbing workload may be felt by other users of what it is measured on.
type Disturbing interface {
	// Disturbs says what of it, with these times, is beyond what no other user should feel; empty if nothing is.
	Disturbs(t Times) string
}

// A Request is a workload that sends what users gave it.
type Request interface {
	// Sends is what it names itself; zero if its target says where requests go.
	Sends() Sent
}

// Sent is where requests go that a user describes, and what of this machine they take with them.
type Sent struct {
	To        host.Destination
	Files     []string // that are read
	Variables []string // of the environment
}

// A Paced workload has another rate per second, or so many clients in a closed loop; each 0 leaves it as it is.
type Paced interface {
	At(rate float64, clients int) Workload
}

// A Capped workload can be limited to so many bits per second in each direction. One that sends nothing in bulk stays
// as it is; what cannot be limited is an error.
type Capped interface {
	Capped(bitsPerSecond float64) (Workload, error)
}

// A Case is a workload, and what it is measured for.
type Case struct {
	Workload Workload
	Role     result.Role
}

// Name is <path>/<workload>, for example pod-pod/other/tcp-rr.
func (c Case) Name() string { return c.Workload.String() }

// Planned is the case in the plan of an experiment.
func (c Case) Planned() result.Case {
	t := c.Workload.Traits()
	return result.Case{
		Name: c.Name(), Path: t.Path, Workload: t.Kind, Role: c.Role, Metric: t.Metric, Load: t.Load,
		Words: t.Words, Definition: t.Definition,
	}
}

// A Suite is a named list of cases.
type Suite struct {
	Name  string // network:quick
	About string // one line for list
	Cases []Case
	// Duration is the window of a run unless somebody says otherwise; 0: as the design has it.
	Duration time.Duration
}

// A SuiteFile makes a suite of a user's own file: --suite storage:jobs.fio.
type SuiteFile struct {
	About string
	// Read makes the suite. Name is the file's, for errors and the suite's name.
	Read func(name string, data []byte) (Suite, error)
}

// A Sample is a workload that stands for others of its family, under the name that they have in lists.
type Sample struct {
	Name     string
	Workload Workload
}

// A Family is a kind of thing that is measured.
type Family struct {
	Name  string   // network; what --suite NAME:FILE begins with
	Paths []string // that the names of its cases begin with
	// Parse reads what follows a path and a slash in a name, and the definition, which most workloads do not have. Its
	// errors are about the workload.
	Parse  func(path, name, definition string) (Workload, error)
	Suites []Suite
	File   *SuiteFile // nil: it has none
	// Kinds are its kinds of workloads, for the list of what tools can do; Offers what a target is asked for to tell what
	// it offers.
	Kinds, Offers []Sample
	Tools         []Tool
}

// Errors about the name of a case, and about what is a workload's part of it.
var (
	ErrNoCase  = errors.New("no such case")
	ErrInvalid = errors.New("invalid workload")
)

// A List is all families that there are.
type List []Family

// Parse reads a case from its full name and its definition; exploratory until somebody says otherwise. Every error Is
// ErrNoCase.
func (l List) Parse(name, definition string) (Case, error) {
	f, path, rest := l.split(name)
	if path == "" {
		return Case{}, fmt.Errorf("%w: %q does not begin with a path, such as %s", ErrNoCase, name, l.heads())
	}
	w, err := f.Parse(path, rest, definition)
	if err != nil {
		return Case{}, fmt.Errorf("%w: %q: %w", ErrNoCase, name, err)
	}
	return Case{Workload: w, Role: result.Exploratory}, nil
}

// Known is the exploratory case that other people's numbers are of, with as much of its path, workload and load as
// follows from its name. The name may be without a path.
func (l List) Known(name string) result.Case {
	f, path, rest := l.split(name)
	known := result.Case{Name: name, Path: path, Workload: rest, Role: result.Exploratory}
	if path != "" {
		l = List{f}
	}
	known.Load.Volume = len(f.Offers) > 0 && f.Offers[0].Workload.Traits().Load.Volume // whatever the workload
	for _, f := range l {
		if w, err := f.Parse(cmp.Or(path, f.Paths[0]), rest, ""); err == nil {
			known.Load = w.Traits().Load
			break
		}
	}
	return known
}

// split finds the family and the path of a name, and the rest of it: all of it if it begins with no path.
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

// heads are examples of what names of cases begin with.
func (l List) heads() string {
	var heads []string
	for _, f := range l {
		heads = append(heads, f.Paths[len(f.Paths)-1]+"/")
	}
	return strings.Join(heads, ", ")
}

// Suites are those of all families.
func (l List) Suites() []Suite {
	var suites []Suite
	for _, f := range l {
		suites = append(suites, f.Suites...)
	}
	return suites
}

// Tools are those of all families, each once.
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

// Cases are those of the names in order, each with the role. A name that its parser refuses is a mistake in the
// program.
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

// Once leaves out cases that come a second time.
func Once(cases []Case) []Case {
	var kept []Case
	for _, c := range cases {
		if !slices.ContainsFunc(kept, func(k Case) bool { return k.Name() == c.Name() }) {
			kept = append(kept, c)
		}
	}
	return kept
}
