package compare

import (
	"maps"
	"slices"
	"strings"

	"github.com/knotmeter/knotmeter/internal/audit"
	"github.com/knotmeter/knotmeter/internal/result"
)

// ignoredFacts are names, prices and sources of limits. They differ on purpose and explain no difference in results.
var ignoredFacts = []string{
	PriceFact, "name", "label", "spec", "target", "api-server", "cluster-uid", "datapath", "as-used-by", "underlay-header",
	audit.FactLimitSource, audit.FactLimitNote, audit.FactMachineLinkSource, audit.FactMachineSource,
	audit.FactMachineNote,
}

// absent is shown for a fact that one side does not have.
const absent = "-"

// addDifferences records the facts that differ between the baseline and a target. A fact that is unknown on one side
// may differ, and is marked.
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

// differences lists the facts that differ. A fact that is unknown or missing on both sides is skipped.
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

// constantRunFacts returns the facts of runs that differ between two targets but are the same in all runs of a case on
// each side. They are properties of the sites, such as the MTU seen by a check; facts that vary from run to run are
// skipped.
func (t *runTable) constantRunFacts(of targetPair) (baseline, other []result.Fact) {
	for _, rc := range t.e.Cases {
		x, y := differingFacts(constantFacts(t.valid(rc.Name, of.baseline)), constantFacts(t.valid(rc.Name, of.target)))
		baseline, other = append(baseline, x...), append(other, y...)
	}
	return baseline, other
}

// differingFacts returns the facts that both sides have with different values.
func differingFacts(a, b map[string]string) (baseline, other []result.Fact) {
	for name, x := range a {
		if y, both := b[name]; both && x != y {
			baseline = append(baseline, result.Fact{Name: name, Value: x})
			other = append(other, result.Fact{Name: name, Value: y})
		}
	}
	return baseline, other
}

// constantFacts returns the facts that are the same in all of at least two runs.
func constantFacts(runs map[int]*result.Run) map[string]string {
	if len(runs) < 2 {
		return nil
	}
	var same map[string]string
	for _, r := range runs {
		if same == nil {
			same = byName(r.Facts)
			continue
		}
		maps.DeleteFunc(same, func(name, value string) bool { return factValue(r.Facts, name) != value })
	}
	return same
}

// byName returns the values of the facts by name; several values of one name are sorted and joined.
func byName(facts []result.Fact) map[string]string {
	values := map[string][]string{}
	for _, f := range facts {
		values[f.Name] = append(values[f.Name], f.Value)
	}
	joined := map[string]string{}
	for name, v := range values {
		joined[name] = joinValues(v)
	}
	return joined
}

// factValue joins the sorted values of the facts of one name.
func factValue(facts []result.Fact, name string) string {
	var buffer [4]string // avoids an allocation: most names have one value
	values := buffer[:0]
	for _, f := range facts {
		if f.Name == name {
			values = append(values, f.Value)
		}
	}
	return joinValues(values)
}

func joinValues(values []string) string {
	if len(values) == 1 {
		return values[0]
	}
	slices.Sort(values)
	return strings.Join(slices.Compact(values), ", ")
}

// factNames lists the sorted distinct names of the facts of both sides, without the ignored ones.
func factNames(a, b []result.Fact) []string {
	var names []string
	for _, f := range slices.Concat(a, b) {
		if !slices.Contains(ignoredFacts, f.Name) {
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
