package compare

import (
	"maps"
	"slices"
	"strings"

	"github.com/knotmeter/knotmeter/internal/audit"
	"github.com/knotmeter/knotmeter/internal/result"
)

// namesOf are the facts that say what a target is called, which cluster it is, what it costs, and where limits are
// from; they differ by intent, and explain nothing.
var namesOf = []string{
	PriceFact, "name", "label", "spec", "target", "api-server", "cluster-uid", "datapath", "as-used-by", "underlay-header",
	audit.FactLimitSource, audit.FactLimitNote, audit.FactMachineLinkSource, audit.FactMachineSource,
	audit.FactMachineNote,
}

// absent is the value of a fact that one side does not have at all.
const absent = "-"

// addDifferences lists the facts that differ between the baseline and a target. A fact that only one side
// could find out may differ, and is marked.
func (c *Comparison) addDifferences(target string, baseline, other []result.Fact) {
	names := []string{}
	list := differences(baseline, other)
	for _, d := range list {
		if d.Baseline == result.Unknown || d.Target == result.Unknown {
			d.Fact += " (" + result.Unknown + ")"
		}
		names = append(names, d.Fact)
	}
	c.AlsoDiffers[target], c.Differences[target] = names, list
}

// differences lists the facts that differ. Of one that neither side could find out there is nothing to say.
func differences(baseline, other []result.Fact) []Difference {
	a, b := byName(baseline), byName(other)
	list := []Difference{}
	for _, name := range factNames(baseline, other) {
		x, y := a[name], b[name]
		if x == y || orAbsent(x) == absent && y == result.Unknown || x == result.Unknown && orAbsent(y) == absent {
			continue
		}
		list = append(list, Difference{Fact: name, Baseline: orAbsent(x), Target: orAbsent(y)})
	}
	return list
}

// placeFacts returns the facts of the runs that differ between two targets: those on which all runs of a case agree on
// either side, each in its way. They are a property of the places, such as the MTU that the check of a site saw; what
// varies from run to run says nothing here.
func (t *trial) placeFacts(of versus) (baseline, other []result.Fact) {
	for _, rc := range t.e.Cases {
		x, y := differing(steady(t.valid(rc.Name, of.baseline)), steady(t.valid(rc.Name, of.target)))
		baseline, other = append(baseline, x...), append(other, y...)
	}
	return baseline, other
}

// differing returns the facts that both sides have and that differ.
func differing(a, b map[string]string) (baseline, other []result.Fact) {
	for name, x := range a {
		if y, both := b[name]; both && x != y {
			baseline = append(baseline, result.Fact{Name: name, Value: x})
			other = append(other, result.Fact{Name: name, Value: y})
		}
	}
	return baseline, other
}

// steady returns the facts that are the same in all of at least two runs.
func steady(runs map[int]*result.Run) map[string]string {
	if len(runs) < 2 {
		return nil
	}
	var same map[string]string
	for _, r := range runs {
		if same == nil {
			same = byName(r.Facts)
			continue
		}
		maps.DeleteFunc(same, func(name, value string) bool { return named(r.Facts, name) != value })
	}
	return same
}

// byName joins the values of facts of one name, in their order made irrelevant.
func byName(facts []result.Fact) map[string]string {
	values := map[string][]string{}
	for _, f := range facts {
		values[f.Name] = append(values[f.Name], f.Value)
	}
	joined := map[string]string{}
	for name, v := range values {
		joined[name] = join(v)
	}
	return joined
}

// named joins the values of the facts of one name.
func named(facts []result.Fact, name string) string {
	var buffer [4]string // of most names there is one
	values := buffer[:0]
	for _, f := range facts {
		if f.Name == name {
			values = append(values, f.Value)
		}
	}
	return join(values)
}

func join(values []string) string {
	if len(values) == 1 {
		return values[0]
	}
	slices.Sort(values)
	return strings.Join(slices.Compact(values), ", ")
}

// factNames lists the names of facts of both sides, sorted.
func factNames(a, b []result.Fact) []string {
	var names []string
	for _, f := range slices.Concat(a, b) {
		if !slices.Contains(namesOf, f.Name) {
			names = append(names, f.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func orAbsent(v string) string {
	if v == "" {
		return absent
	}
	return v
}
