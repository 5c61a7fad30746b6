package plan

import (
	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
)

// A pace is the seconds that a kind of target usually takes, whatever is measured on it.
type pace struct {
	making, removing float64 // of a site
	run              float64 // of a run, besides its windows and the pause before it: starting and ending a tool
	makes            bool    // what a workload needs of a site, such as a volume, for each site
	switching        float64 // to it, from the beginning of the command until it is ready
}

// paces are by kind of target.
var paces = map[string]pace{
	"lab":   {making: 0.1, removing: 0.3, run: 0.07, switching: 1},
	"local": {run: 0.05, switching: 1},
	"kube":  {making: 2.3, removing: 1.9, run: 0.08, makes: true, switching: 60},
}

// nominalRun is the seconds of a run in a design, with the pause before it, before any was measured.
func (d *Durations) nominalRun(caseName, on string, design result.Design) float64 {
	n, p := d.cases[caseName].Nominal, paces[d.targets[on].Kind]
	seconds := Pause.Seconds() + (1+n.Windows)*(design.Warmup+design.Duration) + n.Run.Seconds() + p.run
	runs := d.sharers(caseName, on)
	if !p.makes {
		runs *= max(1, d.e.Design.Blocks) // what is there already is there in all blocks
	}
	return seconds + n.First.Seconds()/float64(runs)
}

// sharers is the number of cases that share a site on a target and of which the first takes longer.
func (d *Durations) sharers(caseName, on string) int {
	n := 0
	for _, c := range d.e.Cases {
		if d.cases[c.Name].Sitting() == d.cases[caseName].Sitting() && d.cases[c.Name].Nominal.First > 0 &&
			d.e.Measures(c, on) {
			n++
		}
	}
	return max(1, n)
}

// nominalSwitch is the seconds of a switch before any was made; what a command does is the user's own matter.
func (d *Durations) nominalSwitch(to string) float64 { return paces[d.targets[to].Kind].switching }

// nominalSite is the seconds of a site before any was made. What its cases need is made at the same time.
func (d *Durations) nominalSite(sitting, on string) (making, removing float64) {
	spec := d.targets[on]
	p, longest := paces[spec.Kind], 0.0
	for _, c := range d.e.Cases {
		traits := d.cases[c.Name]
		if p.makes && d.cases[c.Name].Sitting() == sitting && made(spec, traits) && d.e.Measures(c, on) {
			longest = max(longest, traits.Nominal.Site.Seconds())
		}
	}
	return p.making + longest, p.removing
}

// made says whether a target makes what a case needs: an application is there already, unless it is to be deployed.
func made(spec targets.Spec, t family.Traits) bool {
	return t.Needs.Application == "" || spec.Deploys(t.Needs.Application)
}
