// Package compute is the family of what the CPUs, the memory and the kernel of a machine do when nothing else is
// involved: no network, no storage, no server.
//
// What each kind of workload counts, what it stresses and what it does not measure is in one table, in kind.go, from
// which docs/compute.md has its own. No kind is a score of CoreMark, SPEC or STREAM, and none is called that: their
// rules fix sources, compilers and sizes that differ from these.
package compute

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/parameter"
	"github.com/knotmeter/knotmeter/internal/prose"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// path is the first part of the names of all cases.
const path = "compute"

// Family returns the family of what a machine computes, measured by the tools.
func Family(tools ...family.Tool) family.Family {
	var samples []family.Sample
	for _, k := range kinds {
		w := Workload{Kind: k.name, CPUs: k.name.properties().cpus}
		samples = append(samples, family.Sample{Name: string(k.name), Workload: w})
	}
	return family.Family{
		Name: path, Paths: []string{path}, Suites: suites(), Tools: tools, Kinds: samples,
		Offers:     []family.Sample{{Name: path, Workload: Workload{Kind: Sort, CPUs: OneCPU}}},
		Parse:      func(_, name, _ string) (family.Workload, error) { return Parse(name) },
		Parameters: family.ParametersOf(parameters),
	}
}

// ByOthers reports whether only programs of others carry out the kind, because it is defined by one of them.
func (k Kind) ByOthers() bool { return k.properties().byOthers }

// Busy reports whether the workload keeps its CPUs busy all the time, and does not sleep or wait.
func (w Workload) Busy() bool { return w.Kind.properties().metric != metric.P50 || w.Kind == FileOpen }

// CPUs is how many CPUs a workload uses at the same time: a number from 1 on, or one of the words below.
type CPUs string

// Values of CPUs besides numbers.
const (
	OneCPU  CPUs = "1"
	OneCore CPUs = "core" // all hardware threads of one core
	AllCPUs CPUs = "all"  // all that the process may use
)

// maxCPUs is the largest number of CPUs that a name may ask for.
const maxCPUs = 4096

// parseCPUs reads a number of CPUs, or one of the words.
func parseCPUs(text string) (CPUs, error) {
	if c := CPUs(text); c == OneCore || c == AllCPUs {
		return c, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > maxCPUs {
		return "", fmt.Errorf("it is a number of CPUs from 1 to %d, core (all hardware threads of one core) or all",
			maxCPUs)
	}
	return CPUs(strconv.Itoa(n)), nil
}

// Number returns the number of CPUs; 0 if it depends on the machine.
func (c CPUs) Number() int {
	n, _ := strconv.Atoi(string(c)) // 0 for words
	return n
}

// words returns the CPUs for readers, empty for one.
func (c CPUs) words() string {
	switch c {
	case OneCPU:
		return ""
	case OneCore:
		return "all threads of a core"
	case AllCPUs:
		return "all CPUs"
	}
	return unit.Plural(c.Number(), "CPU")
}

// Pages is the size of the pages that hold a working set.
type Pages string

// The sizes of pages. The zero value leaves the choice to the workload.
const (
	SmallPages Pages = "4KiB"
	HugePages  Pages = "huge" // those of the kernel's transparent huge pages
)

// A Workload is what is computed again and again. It is comparable with ==.
type Workload struct {
	Kind  Kind
	CPUs  CPUs
	Set   int   // bytes of the working set of each CPU; 0: the kind has none
	Pages Pages // empty: the kind has no choice
}

// parameters are those of all kinds, in the order of canonical names.
var parameters = parameter.Schema[Workload]{
	parameter.New(parameter.Parameter[Workload]{
		Name: "pages", Of: "`memory-walk`", Has: func(w Workload) bool { return w.Kind.properties().pages },
		Help: "size of the pages of the working set, `huge` for the kernel's transparent huge pages; it has to be given",
	}, func(w *Workload) *Pages { return &w.Pages }, parameter.OneOf(SmallPages, HugePages)),
	parameter.New(parameter.Parameter[Workload]{
		Name: "set", Of: "`memory-*`, `page-fault`", Has: func(w Workload) bool { return w.Kind.properties().largest > 0 },
		Default: "64MiB to 384MiB; of `memory-latency` it has to be given",
		DefaultOf: func(w Workload) string {
			if set := w.Kind.properties().set; set > 0 {
				return parameter.SizeText(set)
			}
			return ""
		},
		Help: "working set of each CPU, whole pages of 4 KiB; each kind has limits of its own",
	}, func(w *Workload) *int { return &w.Set }, parameter.Size(smallPage, gib, parameter.SizeText)),
	parameter.New(parameter.Parameter[Workload]{
		Name: "cpus", Of: "all but `futex-wake`", Has: func(w Workload) bool { return !w.Kind.properties().fixedCPUs },
		Default:   "1, of `compare-and-swap` 2",
		DefaultOf: func(w Workload) string { return string(w.Kind.properties().cpus) },
		Help:      "how many CPUs do the same at the same time",
	}, func(w *Workload) *CPUs { return &w.CPUs }, parameter.Values[CPUs]{
		Valid: fmt.Sprintf("1 to %d, core (all hardware threads of one core) or all", maxCPUs),
		Parse: parseCPUs, Format: func(c CPUs) string { return string(c) },
	}),
}

// Parse returns the workload with a name such as sort, memory-latency:set=16KiB or memory-walk:pages=huge,cpus=all.
func Parse(text string) (Workload, error) {
	name, _, _ := strings.Cut(text, ":")
	k, ok := find(Kind(name))
	if !ok {
		return Workload{}, fmt.Errorf("there is no kind %q; there are %s", name, prose.Choices(name, names()))
	}
	w := Workload{Kind: k.name}
	if err := parameters.Parse(&w, text); err != nil {
		return Workload{}, err
	}
	parameters.Fill(&w)
	if k.fixedCPUs {
		w.CPUs = k.cpus
	}
	if err := w.validate(k); err != nil {
		return Workload{}, fmt.Errorf("%q: %w", text, err)
	}
	return w, nil
}

// properties returns the properties of a kind that exists.
func (k Kind) properties() kind {
	of, _ := find(k)
	return of
}

// find returns the properties of a kind.
func find(name Kind) (kind, bool) {
	i := slices.IndexFunc(kinds, func(k kind) bool { return k.name == name })
	if i < 0 {
		return kind{}, false
	}
	k := kinds[i]
	k.cpus = cmp.Or(k.cpus, OneCPU)
	return k, true
}

// Kinds returns all kinds, in the order of the documentation.
func Kinds() []Kind {
	var list []Kind
	for _, k := range kinds {
		list = append(list, k.name)
	}
	return list
}

func names() []string {
	var list []string
	for _, k := range Kinds() {
		list = append(list, string(k))
	}
	return list
}

// validate returns an error unless the workload has all that its kind needs, within the limits.
func (w Workload) validate(k kind) error {
	switch {
	case k.largest > 0 && w.Set == 0:
		return fmt.Errorf("%s needs the size of the working set: %[1]s:set=256MiB", k.name)
	case k.largest > 0 && (w.Set < k.smallest || w.Set > k.largest || w.Set%smallPage != 0):
		return fmt.Errorf("set=%s is not from %s to %s, in whole pages of %s", parameter.SizeText(w.Set),
			parameter.SizeText(k.smallest), parameter.SizeText(k.largest), parameter.SizeText(smallPage))
	case k.pages && w.Pages == "":
		return fmt.Errorf("%s needs the size of pages: %[1]s:pages=%[2]s or %[1]s:pages=%[3]s", k.name, SmallPages, HugePages)
	case w.Pages == HugePages && w.Set%hugePage != 0:
		return fmt.Errorf("set=%s is not a multiple of %s", parameter.SizeText(w.Set), parameter.SizeText(hugePage))
	case w.CPUs == OneCPU && k.cpus != OneCPU:
		return errors.New("it takes at least two CPUs")
	}
	return nil
}

// Title returns the workload's part of its case's name.
func (w Workload) Title() string { return parameters.Text(string(w.Kind), w) }

func (w Workload) String() string { return path + "/" + w.Title() }
