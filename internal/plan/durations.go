package plan

import (
	"slices"
	"time"

	"github.com/knotmeter/knotmeter/internal/result"
)

// Pause is the default pause before a run, so that runs do not disturb each other.
const Pause = 20 * time.Millisecond

// Durations predict the seconds of runs, sites and switches of an experiment: nominal values, corrected by the mean
// deviation of the ones measured so far. Without a measurement of the same case and target, the most similar ones
// count.
type Durations struct {
	e        result.Experiment
	cases    map[string]CaseTimes   // by name
	targets  map[string]result.Spec // by name
	sittings map[int]string         // CaseTimes.Sitting of the cases of a site, by the site's number
	// Seconds beyond the nominal ones.
	runs, opening, closing, switching map[scope]*mean
}

// A scope is a set of measured durations: of a case on a target, or of all similar cases or targets.
type scope struct{ of, on string }

type mean struct {
	sum float64
	n   int
}

// CaseTimes are the usual times of a case, which the family of its workload knows before anything is measured. They add
// to the times of every case.
type CaseTimes struct {
	Family      string
	Sitting     string        // equal for the cases of a block that share sites
	Application string        // what the case asks and a target may deploy; empty: nothing
	Site        time.Duration // creating and removing what a cluster needs for it in addition to pods
	First       time.Duration // the first run in a new site, in addition to Run
	Run         time.Duration // every run, outside of its window
	Windows     float64       // windows of a search in addition to the one that counts, each with its warm-up
}

// NewDurations returns the nominal durations of an experiment, from the times of its cases, by name. For an unknown
// case or target, only the design is used.
func NewDurations(e result.Experiment, cases map[string]CaseTimes) Durations {
	d := Durations{
		e: e, cases: cases, targets: map[string]result.Spec{}, sittings: map[int]string{},
		runs: map[scope]*mean{}, opening: map[scope]*mean{}, closing: map[scope]*mean{}, switching: map[scope]*mean{},
	}
	for _, t := range e.Targets {
		d.targets[t.Name] = t.Spec
	}
	return d
}

// Learn returns the [NewDurations] of e, corrected by earlier runs, sites and switches, which may be of another design.
// Their cases and targets must have the names that they have in e.
func Learn(e result.Experiment, cases map[string]CaseTimes, earlier result.Results) Durations {
	d := NewDurations(e, cases)
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

// AddRun adds a run. took is its duration in seconds, from the start of the pause before the run to its end.
func (d *Durations) AddRun(r result.Run, took float64) { d.addRun(r, took, d.e.Design) }

func (d *Durations) addRun(r result.Run, took float64, design result.Design) {
	d.sittings[r.Site] = d.cases[r.Case].Sitting
	beyond := took - d.nominalRun(r.Case, r.Target, design)
	for _, s := range d.runScopes(r.Case, r.Target) {
		add(d.runs, s, beyond)
	}
}

// AddSite adds a closed site. Its runs must have been added before.
func (d *Durations) AddSite(s result.Site) {
	sitting := d.sittings[s.Number]
	opening, closing := d.nominalSite(sitting, s.Target)
	for _, scope := range d.siteScopes(sitting, s.Target) {
		add(d.opening, scope, s.Setup-opening)
		add(d.closing, scope, s.Cleanup-closing)
	}
}

// AddSwitch adds a switch; one that failed, or that restored the testbed, is ignored.
func (d *Durations) AddSwitch(s result.Switch) {
	if s.Failed == "" && s.Target != "" {
		for _, scope := range d.switchScopes(s.Target) {
			add(d.switching, scope, s.Took+s.Ready-d.nominalSwitch(s.Target))
		}
	}
}

// Switch predicts the seconds from the start of a visit until its target is ready: from visits of the same target, else
// of targets of the same kind, else nominally.
func (d *Durations) Switch(target string) float64 {
	return max(0, d.nominalSwitch(target)+narrowest(d.switching, d.switchScopes(target)))
}

// Run predicts the seconds of a run, with the pause before it: from runs of the same case and target, else of the case
// on targets of the same kind, else of its family on such targets, else nominally.
func (d *Durations) Run(caseName, target string) float64 {
	return max(0, d.nominalRun(caseName, target, d.e.Design)+narrowest(d.runs, d.runScopes(caseName, target)))
}

// Longest predicts how many seconds the longest-lived sites of a block are in use.
func (d *Durations) Longest() float64 {
	longest, sittings := 0.0, map[string]float64{}
	for _, c := range d.e.Cases {
		s, block := d.cases[c.Name].Sitting, 0.0
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

// Sites predicts the seconds spent opening and closing sites, given the number of blocks of each case, by name. The
// sites of a block are opened on all targets at the same time, and closed likewise; with visits, one target after
// another. Cases that share sites need them as long as one of them continues. Switches are not included.
func (d *Durations) Sites(blocks map[string]float64) float64 {
	most := map[string]float64{} // blocks, by sitting
	var order []string
	for _, c := range d.e.Cases {
		n, s := blocks[c.Name], d.cases[c.Name].Sitting
		if _, known := most[s]; !known {
			order = append(order, s)
		}
		most[s] = max(most[s], n)
	}
	total := 0.0
	for _, s := range order {
		total += most[s] * d.sitesOfBlock(s, d.e.TargetNames())
	}
	return total
}

// Switches predicts the seconds of all switches, given the number of blocks of each case, by name.
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
		total += visits[t] * d.Switch(t) * (1 + Reinstallations(d.e))
	}
	return total
}

// Reinstallations returns the expected number of switches without a measurement for each visit. Of k targets with a
// switch, a block begins with the one that the block before ended with in one of k times; then another target is put in
// place in between, so that blocks share no installation.
func Reinstallations(e result.Experiment) float64 {
	switched := 0
	for _, t := range e.Targets {
		if t.Switch != nil {
			switched++
		}
	}
	if switched < 2 {
		return 0
	}
	return 1 / float64(switched*len(e.Targets))
}

// SitesOf predicts the seconds spent opening and closing the sites of a case in one block on these targets.
func (d *Durations) SitesOf(caseName string, on []string) float64 {
	return d.sitesOfBlock(d.cases[caseName].Sitting, on)
}

// sitesOfBlock predicts the seconds spent opening and closing the sites of a group of cases in one block.
func (d *Durations) sitesOfBlock(sitting string, on []string) float64 {
	var opening, closing, inTurn float64
	for _, t := range on {
		needed := func(c result.Case) bool { return d.cases[c.Name].Sitting == sitting && d.e.Measures(c, t) }
		if !slices.ContainsFunc(d.e.Cases, needed) {
			continue
		}
		o, c := d.site(sitting, t)
		opening, closing, inTurn = max(opening, o), max(closing, c), inTurn+o+c
	}
	if d.e.InTurn() {
		return inTurn
	}
	return opening + closing
}

// site predicts the seconds of a site: from sites of the same target, else of targets of the same kind, else nominally.
func (d *Durations) site(sitting, target string) (opening, closing float64) {
	opening, closing = d.nominalSite(sitting, target)
	scopes := d.siteScopes(sitting, target)
	return max(0, opening+narrowest(d.opening, scopes)), max(0, closing+narrowest(d.closing, scopes))
}

func (d *Durations) runScopes(caseName, target string) []scope {
	kind := "kind " + d.targets[target].Kind
	return []scope{{caseName, target}, {caseName, kind}, {"family " + d.cases[caseName].Family, kind}}
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

// narrowest returns the mean of the first scope that has measurements, else 0.
func narrowest(means map[scope]*mean, scopes []scope) float64 {
	for _, s := range scopes {
		if m := means[s]; m != nil {
			return m.sum / float64(m.n)
		}
	}
	return 0
}
