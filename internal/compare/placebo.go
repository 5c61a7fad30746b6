package compare

import (
	"maps"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
)

// placebos lists the targets with the same specification as the baseline under another label.
func placebos(e result.Experiment) []string {
	names := []string{}
	if e.Imported != "" {
		return names // runs of another tool have no specification that says anything
	}
	specs := map[string]targets.Spec{}
	for _, x := range e.Targets {
		if s, err := targets.ParseSpec(x.Spec); err == nil {
			delete(s.Options, "label")
			specs[x.Name] = s
		}
	}
	baseline, is := specs[e.Baseline]
	for _, x := range e.Targets {
		s, parsed := specs[x.Name]
		if is && parsed && x.Name != e.Baseline && s.Kind == baseline.Kind && s.Name == baseline.Name &&
			maps.Equal(s.Options, baseline.Options) {
			names = append(names, x.Name)
		}
	}
	return names
}
