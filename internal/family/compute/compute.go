// Package compute is the family of what the CPUs, the memory and the kernel of a machine do when nothing else is
// involved: no network, no storage, no server.
//
// What each kind of workload counts, what it stresses and what it does not measure is in one table, in kind.go, from
// which docs/compute.md has its own. No kind is a score of CoreMark, SPEC or STREAM, and none is called that: their
// rules fix sources, compilers and sizes that differ from these.
package compute

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/prose"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// path is the first part of the names of all cases.
const path = "compute"

// Family returns the family of what a machine computes, measured by the tools.
func Family(tools ...family.Tool) family.Family {
	var samples []family.Sample
	for _, k := range kinds {
		samples = append(samples, family.Sample{Name: string(k.name), Workload: Workload{Kind: k.name, CPUs: k.cpus}})
	}
	return family.Family{
		Name: path, Paths: []string{path}, Suites: suites(), Tools: tools, Kinds: samples,
		Offers: []family.Sample{{Name: path, Workload: Workload{Kind: Sort, CPUs: OneCPU}}},
		Parse:  func(_, name, _ string) (family.Workload, error) { return Parse(name) },
	}
}

// ByOthers reports whether only programs of others carry out the kind, because it is defined by one of them.
func (k Kind) ByOthers() bool {
	of, _ := find(k)
	return of.byOthers
}

// Busy reports whether the workload keeps its CPUs busy all the time, and does not sleep or wait.
func (w Workload) Busy() bool {
	k, _ := find(w.Kind)
	return k.metric != metric.P50 || w.Kind == FileOpen
}

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

// Parse reads a workload as Title writes it: sort, memory-latency:set=16KiB, memory-walk:pages=huge,cpus=all. Every
// error wraps family.ErrInvalid.
func Parse(text string) (Workload, error) {
	name, options, _ := strings.Cut(text, ":")
	k, ok := find(Kind(name))
	if !ok {
		return Workload{}, fmt.Errorf("%w: there is no kind %q; there are %s", family.ErrInvalid, name,
			prose.Choices(name, names()))
	}
	w := Workload{Kind: k.name, CPUs: k.cpus, Set: k.set}
	err := family.Parameters(text, options, func(key, value string) error {
		if err := family.CheckParameter(name, key, k.parameters); err != nil {
			return err
		}
		return w.set(key, value)
	})
	if err != nil {
		return Workload{}, err
	}
	if err := w.validate(k); err != nil {
		return Workload{}, fmt.Errorf("%w: %q: %w", family.ErrInvalid, text, err)
	}
	return w, nil
}

// find returns the properties of a kind.
func find(name Kind) (kind, bool) {
	i := slices.IndexFunc(kinds, func(k kind) bool { return k.name == name })
	if i < 0 {
		return kind{}, false
	}
	return kinds[i], true
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

// set sets one of the parameters of the table.
func (w *Workload) set(key, value string) (err error) {
	switch key {
	case cpusParameter:
		w.CPUs, err = parseCPUs(value)
	case setParameter:
		w.Set, err = family.Positive(unit.ParseSize(value))
	case pagesParameter:
		if w.Pages = Pages(value); w.Pages != SmallPages && w.Pages != HugePages {
			err = fmt.Errorf("it is %s or %s", SmallPages, HugePages)
		}
	}
	return err
}

// validate returns an error unless the workload has all that its kind needs, within the limits.
func (w Workload) validate(k kind) error {
	switch {
	case k.largest > 0 && w.Set == 0:
		return fmt.Errorf("%s needs the size of the working set: %[1]s:set=256MiB", k.name)
	case k.largest > 0 && (w.Set < k.smallest || w.Set > k.largest || w.Set%smallPage != 0):
		return fmt.Errorf("set=%s is not from %s to %s, in whole pages of %s", formatSize(w.Set), formatSize(k.smallest),
			formatSize(k.largest), formatSize(smallPage))
	case slices.Contains(k.parameters, pagesParameter) && w.Pages == "":
		return fmt.Errorf("%s needs the size of pages: %[1]s:pages=%[2]s or %[1]s:pages=%[3]s", k.name, SmallPages, HugePages)
	case w.Pages == HugePages && w.Set%hugePage != 0:
		return fmt.Errorf("set=%s is not a multiple of %s", formatSize(w.Set), formatSize(hugePage))
	case w.CPUs == OneCPU && k.cpus != OneCPU:
		return errors.New("it takes at least two CPUs")
	}
	return nil
}

// formatSize returns a size as a name has it: 16KiB.
func formatSize(bytes int) string {
	for _, of := range []struct {
		name string
		size int
	}{{"GiB", gib}, {"MiB", mib}, {"KiB", kib}} {
		if bytes > 0 && bytes%of.size == 0 {
			return strconv.Itoa(bytes/of.size) + of.name
		}
	}
	return strconv.Itoa(bytes)
}

// Title returns the workload's part of its case's name. Defaults are not written.
func (w Workload) Title() string {
	k, _ := find(w.Kind)
	var options []string
	for _, p := range k.parameters {
		switch {
		case p == pagesParameter:
			options = append(options, p+"="+string(w.Pages))
		case p == setParameter && w.Set != k.set:
			options = append(options, p+"="+formatSize(w.Set))
		case p == cpusParameter && w.CPUs != k.cpus:
			options = append(options, p+"="+string(w.CPUs))
		}
	}
	return family.Title(string(w.Kind), options)
}

func (w Workload) String() string { return path + "/" + w.Title() }
