package plan

import (
	"slices"
	"strings"
	"time"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/result"
)

// Pause before a run, so that one does not disturb the next, unless somebody says otherwise.
const Pause = 20 * time.Millisecond

// Durations are the seconds that runs and sites of an experiment take: nominal ones corrected by those that were
// measured. What has not been measured yet is corrected by what is most like it.
type Durations struct {
	e        result.Experiment
	families family.List
	runs     map[scope]*mean // seconds beyond the nominal ones
	making   map[scope]*mean
	removing map[scope]*mean
}

// A scope is what a measured duration is taken for: a case on a target, or all that is more or less like it.
type scope struct{ of, on string }

type mean struct {
	sum float64
	n   int
}

// NewDurations are those of an experiment whose cases are of these families, before anything was measured.
func NewDurations(e result.Experiment, families family.List) Durations {
	return Durations{
		e: e, families: families,
		runs: map[scope]*mean{}, making: map[scope]*mean{}, removing: map[scope]*mean{},
	}
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
	return d
}

// AddRun adds a run that took so many seconds, from the pause before it to its end.
func (d *Durations) AddRun(r result.Run, took float64) { d.addRun(r, took, d.e.Design) }

func (d *Durations) addRun(r result.Run, took float64, design result.Design) {
	beyond := took - d.nominalRun(r.Case, r.Target, design)
	for _, s := range d.runScopes(r.Case, r.Target) {
		add(d.runs, s, beyond)
	}
}

// AddSite adds a site that was removed again.
func (d *Durations) AddSite(s result.Site) {
	making, removing := d.nominalSite(s.Target)
	for _, scope := range d.siteScopes(s.Target) {
		add(d.making, scope, s.Setup-making)
		add(d.removing, scope, s.Cleanup-removing)
	}
}

// Run predicts the seconds of a run, with the pause before it: from runs of the same case and target, else of the case
// on targets of that kind, else of its family on such targets, else the nominal ones.
func (d *Durations) Run(caseName, target string) float64 {
	return max(0, d.nominalRun(caseName, target, d.e.Design)+narrowest(d.runs, d.runScopes(caseName, target)))
}

// Site predicts the seconds of a site: from sites of the same target, else of targets of that kind, else the nominal
// ones.
func (d *Durations) Site(target string) (making, removing float64) {
	making, removing = d.nominalSite(target)
	scopes := d.siteScopes(target)
	return max(0, making+narrowest(d.making, scopes)), max(0, removing+narrowest(d.removing, scopes))
}

// Sites predicts the seconds of a block's sites, which are made at the same time, and removed at the same time.
func (d *Durations) Sites(targets []string) float64 {
	var making, removing float64
	for _, t := range targets {
		m, r := d.Site(t)
		making, removing = max(making, m), max(removing, r)
	}
	return making + removing
}

func (d *Durations) runScopes(caseName, target string) []scope {
	kind := "kind " + d.kind(target)
	return []scope{{caseName, target}, {caseName, kind}, {"family " + d.family(caseName), kind}}
}

func (d *Durations) siteScopes(target string) []scope {
	return []scope{{on: target}, {on: "kind " + d.kind(target)}}
}

// kind is what the text of a target begins with: lab, kube.
func (d *Durations) kind(target string) string {
	for _, t := range d.e.Targets {
		if t.Name == target {
			kind, _, _ := strings.Cut(t.Spec, ":")
			return kind
		}
	}
	return ""
}

// family is the name of the family that a case is of; empty if it is not known.
func (d *Durations) family(caseName string) string {
	for _, c := range d.e.Cases {
		if c.Name != caseName {
			continue
		}
		for _, f := range d.families {
			if slices.Contains(f.Paths, c.Path) {
				return f.Name
			}
		}
	}
	return ""
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
