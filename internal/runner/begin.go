package runner

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
)

// Begin calls Begin of every target with the placements planned on it. It must be called before anything is written and
// before [Run], with the same tool. The warnings are about the whole experiment.
func Begin(ctx context.Context, c Config, share bool) (warnings []result.Warning, err error) {
	e := c.Experiment
	about := map[string][]string{} // names of the targets that returned a warning, by its text
	var texts []string             // of warnings, each once
	plans := make([]targets.Plan, len(c.Targets))
	filling := map[string]int{} // number of targets, by what they fill
	for i, t := range c.Targets {
		plans[i] = targets.Plan{Experiment: e.ID, Version: e.Version, Share: share, InTurn: e.InTurn(),
			Earlier: c.EarlierFacts[t.Name]}
		if plans[i].Placements, err = placements(e, t.Name, c.Families, c.Tool); err != nil {
			return nil, err
		}
		if of := filled(t, plans[i]); of != "" {
			filling[of]++
		}
	}
	for i, t := range c.Targets {
		plans[i].Filling = filling[filled(t, plans[i])]
		list, err := t.Places.Begin(ctx, plans[i])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", t.Name, err)
		}
		for _, w := range list {
			if about[w] == nil {
				texts = append(texts, w)
			}
			about[w] = append(about[w], t.Name)
		}
	}
	for _, t := range e.Targets {
		if e.InTurn() && t.Switch == nil {
			warnings = append(warnings, result.Warning{Code: result.NoSwitch,
				Text: t.Name + " has no switch: it was measured as the visit before its own left it, unless it is elsewhere"})
		}
	}
	for _, w := range texts {
		warnings = append(warnings, result.Warning{Code: result.TargetReports, Text: strings.Join(about[w], ", ") + ": " + w})
	}
	return warnings, nil
}

// filled identifies the storage that a target fills while others may fill it, too; empty if there is none.
func filled(t Target, p targets.Plan) string {
	f, is := t.Places.(targets.Filler)
	writes := slices.ContainsFunc(p.Placements, func(p targets.Placement) bool { return p.Volume })
	if !is || !writes || p.InTurn { // only one target at a time has a site
		return ""
	}
	return f.Fills()
}

// placements returns the placements of the cases that are planned on a target.
func placements(
	e result.Experiment, name string, families family.List, by family.Tool,
) ([]targets.Placement, error) {
	var list []targets.Placement
	for _, c := range e.Cases {
		if !e.Measures(c, name) {
			continue
		}
		sc, err := families.Parse(c.Name, c.Definition)
		if err != nil {
			return nil, fmt.Errorf("a case of the experiment: %w", err)
		}
		list = append(list, Placement(by, sc.Workload, 0))
	}
	return list, nil
}
