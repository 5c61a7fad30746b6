package plan

import (
	"slices"
	"time"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
)

// Pause before a run, so that one does not disturb the next, unless somebody says otherwise.
const Pause = 20 * time.Millisecond

// Durations are the seconds that runs and sites of an experiment take: nominal ones corrected by those that were
// measured. What has not been measured yet is corrected by what is most like it.
type Durations struct {
	e        result.Experiment
	families map[string]string        // names, by case
	cases    map[string]family.Traits // by name
	targets  map[string]targets.Spec  // by name
	sittings map[int]string           // of sites that only one case had, by number
	// Seconds beyond the nominal ones.
	runs, making, removing, switching map[scope]*mean
}

// A scope is what a measured duration is taken for: a case on a target, or all that is more or less like it.
type scope struct{ of, on string }

type mean struct {
	sum float64
	n   int
}

// NewDurations are those of an experiment whose cases are of these families, before anything was measured. Of a case
// that none of them knows and of a target that is none, nothing is known but the design.
func NewDurations(e result.Experiment, families family.List) Durations {
	d := Durations{
		e: e, families: map[string]string{}, cases: map[string]family.Traits{}, targets: map[string]targets.Spec{},
		sittings: map[int]string{},
		runs:     map[scope]*mean{}, making: map[scope]*mean{}, removing: map[scope]*mean{}, switching: map[scope]*mean{},
	}
	for _, t := range e.Targets {
		d.targets[t.Name], _ = targets.ParseSpec(t.Spec)
	}
	for _, c := range e.Cases {
		for _, f := range families {
			if !slices.Contains(f.Paths, c.Path) {
				continue
			}
			d.families[c.Name] = f.Name
			if w, err := f.Parse(c.Path, c.Workload, c.Definition); err == nil {
				d.cases[c.Name] = w.Traits()
			}
		}
	}
	return d
}

// Learn is [NewDurations] with what earlier runs and sites of the same cases and targets took, under the names that
// they have now, whatever the design was.
func Learn(e result.Experiment, families family.List, earlier result.Results) Durations {
	d := NewDurations(e, families)
	for _, r := range earlier.Runs {
		if r.Valid() {
			d.addRun(r, Pause.Seconds()+r.Setup+r.Window+r.Cleanup, earlier.Experiment.Design)
		}
	}
	for _, s := range earlier.Sites {
		d.AddSite(s)
	}
	for _, s := range earlier.Switches {
		d.AddSwitch(s)
	}
	return d
}

// AddRun adds a run that took so many seconds, from the pause before it to its end.
func (d *Durations) AddRun(r result.Run, took float64) { d.addRun(r, took, d.e.Design) }

func (d *Durations) addRun(r result.Run, took float64, design result.Design) {
	d.sittings[r.Site] = d.cases[r.Case].Sitting()
	beyond := took - d.nominalRun(r.Case, r.Target, design)
	for _, s := range d.runScopes(r.Case, r.Target) {
		add(d.runs, s, beyond)
	}
}

// AddSite adds a site that was removed again, after its runs.
func (d *Durations) AddSite(s result.Site) {
	sitting := d.sittings[s.Number]
	making, removing := d.nominalSite(sitting, s.Target)
	for _, scope := range d.siteScopes(sitting, s.Target) {
		add(d.making, scope, s.Setup-making)
		add(d.removing, scope, s.Cleanup-removing)
	}
}

// AddSwitch adds a visit that did not fail.
func (d *Durations) AddSwitch(s result.Switch) {
	if s.Failed == "" && s.Target != "" {
		for _, scope := range d.switchScopes(s.Target) {
			add(d.switching, scope, s.Took+s.Ready-d.nominalSwitch(s.Target))
		}
	}
}

// Switch predicts the seconds from the beginning of a visit until its target is ready: from visits of the same target,
// else of others of that kind, else the nominal ones.
func (d *Durations) Switch(target string) float64 {
	return max(0, d.nominalSwitch(target)+narrowest(d.switching, d.switchScopes(target)))
}

// Run predicts the seconds of a run, with the pause before it: from runs of the same case and target, else of the case
// on targets of that kind, else of its family on such targets, else the nominal ones.
func (d *Durations) Run(caseName, target string) float64 {
	return max(0, d.nominalRun(caseName, target, d.e.Design)+narrowest(d.runs, d.runScopes(caseName, target)))
}

// Longest predicts the seconds that the runs of a block take in the sites in which they take longest.
func (d *Durations) Longest() float64 {
	longest, sittings := 0.0, map[string]float64{}
	for _, c := range d.e.Cases {
		s, block := d.cases[c.Name].Sitting(), 0.0
		for _, t := range d.e.MeasuredOn(c) {
			if d.e.InTurn() {
				block = max(block, d.Run(c.Name, t))
			} else {
				block = Together(d.e.Design, block, d.Run(c.Name, t))
			}
		}
		sittings[s] += block
		longest = max(longest, sittings[s])
	}
	return longest
}

// Sites predicts the seconds that sites take of so many blocks of each case, by name. Those of a block are made at the
// same time on all targets, and removed at the same time, or in turn, each in a visit; they last as long as any of the
// cases that share them. The switches before visits are not in it.
func (d *Durations) Sites(blocks map[string]float64) float64 {
	most := map[string]float64{} // blocks, by sitting
	var order []string
	for _, c := range d.e.Cases {
		n, s := blocks[c.Name], d.cases[c.Name].Sitting()
		if _, known := most[s]; !known {
			order = append(order, s)
		}
		most[s] = max(most[s], n)
	}
	total := 0.0
	for _, s := range order {
		total += most[s] * d.sit(s, d.e.TargetNames())
	}
	return total
}

// Switches predicts the seconds that the switches take of so many blocks of each case, by name.
func (d *Durations) Switches(blocks map[string]float64) float64 {
	if !d.e.InTurn() {
		return 0
	}
	visits := map[string]float64{}
	for _, c := range d.e.Cases {
		for _, t := range d.e.MeasuredOn(c) {
			visits[t] = max(visits[t], blocks[c.Name])
		}
	}
	total := 0.0
	for _, t := range d.e.TargetNames() {
		total += visits[t] * d.Switch(t)
	}
	return total
}

// Sit predicts the seconds that the sites take that a case has, with others, on targets in a block.
func (d *Durations) Sit(caseName string, on []string) float64 {
	return d.sit(d.cases[caseName].Sitting(), on)
}

// sit predicts the seconds that the sites of a sitting take on targets in a block.
func (d *Durations) sit(sitting string, on []string) float64 {
	var making, removing, inTurn float64
	for _, t := range on {
		needed := func(c result.Case) bool { return d.cases[c.Name].Sitting() == sitting && d.e.Measures(c, t) }
		if !slices.ContainsFunc(d.e.Cases, needed) {
			continue
		}
		m, r := d.site(sitting, t)
		making, removing, inTurn = max(making, m), max(removing, r), inTurn+m+r
	}
	if d.e.InTurn() {
		return inTurn
	}
	return making + removing
}

// site predicts the seconds of a site: from sites of the same target, else of targets of that kind, else the nominal
// ones.
func (d *Durations) site(sitting, target string) (making, removing float64) {
	making, removing = d.nominalSite(sitting, target)
	scopes := d.siteScopes(sitting, target)
	return max(0, making+narrowest(d.making, scopes)), max(0, removing+narrowest(d.removing, scopes))
}

func (d *Durations) runScopes(caseName, target string) []scope {
	kind := "kind " + d.targets[target].Kind
	return []scope{{caseName, target}, {caseName, kind}, {"family " + d.families[caseName], kind}}
}

func (d *Durations) siteScopes(sitting, target string) []scope {
	return []scope{{sitting, target}, {sitting, "kind " + d.targets[target].Kind}}
}

func (d *Durations) switchScopes(target string) []scope {
	return []scope{{"", target}, {"", "kind " + d.targets[target].Kind}}
}

func add(means map[scope]*mean, s scope, v float64) {
	if means[s] == nil {
		means[s] = &mean{}
	}
	means[s].sum += v
	means[s].n++
}

// narrowest is the mean of the first scope that has any, else 0.
func narrowest(means map[scope]*mean, scopes []scope) float64 {
	for _, s := range scopes {
		if m := means[s]; m != nil {
			return m.sum / float64(m.n)
		}
	}
	return 0
}
