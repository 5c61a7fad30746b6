package compare

import (
	"github.com/knotmeter/knotmeter/internal/result"
)

// placebos lists the targets with the same specification as the baseline under another label.
func placebos(e result.Experiment) []string {
	names := []string{}
	if e.Imported != "" || e.InTurn() {
		return names // what an imported target or one after a switch is does not follow from its specification
	}
	specs := map[string]result.Spec{}
	for _, x := range e.Targets {
		specs[x.Name] = without(x.Spec, "label")
	}
	for _, x := range e.Targets {
		if x.Name != e.Baseline && x.Spec.Kind != "" && sameTarget(specs[x.Name], specs[e.Baseline]) {
			names = append(names, x.Name)
		}
	}
	return names
}
