package compare

import (
	"slices"
	"strings"

	"github.com/knotmeter/knotmeter/internal/result"
)

// placebos lists the targets that are the baseline a second time, under another label.
func placebos(e result.Experiment) []string {
	names := []string{}
	baseline := ""
	for _, x := range e.Targets {
		if x.Name == e.Baseline {
			baseline = unlabelled(x.Spec)
		}
	}
	for _, x := range e.Targets {
		// Runs of another tool have no specification that says anything.
		if x.Name != e.Baseline && e.Imported == "" && baseline != "" && unlabelled(x.Spec) == baseline {
			names = append(names, x.Name)
		}
	}
	return names
}

// unlabelled is the text of a target without its label, and with its options in one order.
func unlabelled(spec string) string {
	kind, options, _ := strings.Cut(spec, "?")
	var kept []string
	for _, o := range strings.Split(options, "&") {
		if name, _, _ := strings.Cut(o, "="); name != "label" && name != "" {
			kept = append(kept, o)
		}
	}
	slices.Sort(kept)
	return strings.Join(append([]string{kind}, kept...), "?")
}
