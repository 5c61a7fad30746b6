package plan

import "github.com/knotmeter/knotmeter/internal/result"

// A nominalTimes holds the typical seconds of a kind of target, whatever is measured on it.
type nominalTimes struct {
	opening, closing float64 // of a site
	run              float64 // of a run, in addition to windows and pause: starting and ending the tool
	creates          bool    // whether each site creates what its workloads need, such as a volume
	switching        float64 // from the start of the switch until the target is ready
}

// paces are the typical seconds by kind of target.
var paces = map[string]nominalTimes{
	"lab":   {opening: 0.1, closing: 0.3, run: 0.07, switching: 1},
	"local": {run: 0.05, switching: 1},
	"kube":  {opening: 2.3, closing: 1.9, run: 0.08, creates: true, switching: 60},
}

// nominalRun returns the typical seconds of a run in a design, with the pause before it.
func (d *Durations) nominalRun(caseName, on string, design result.Design) float64 {
	n, p := d.cases[caseName], paces[d.targets[on].Kind]
	seconds := Pause.Seconds() + (1+n.Windows)*(design.Warmup+design.Duration) + n.Run.Seconds() + p.run
	runs := d.sharers(caseName, on) // cases in the site, any of which may run first, which takes longer
	if !p.creates {
		runs *= max(1, d.e.Design.Blocks) // sites of all blocks use the same volume
	}
	return seconds + n.First.Seconds()/float64(runs)
}

// sharers returns the number of cases in the same site, at least 1, whose first run there takes longer.
func (d *Durations) sharers(caseName, on string) int {
	n := 0
	for _, c := range d.e.Cases {
		if d.cases[c.Name].Sitting == d.cases[caseName].Sitting && d.cases[c.Name].First > 0 &&
			d.e.Measures(c, on) {
			n++
		}
	}
	return max(1, n)
}

// nominalSwitch returns the typical seconds of a switch; the user's command may take any other time.
func (d *Durations) nominalSwitch(to string) float64 { return paces[d.targets[to].Kind].switching }

// nominalSite returns the typical seconds of a site. What its cases need is created at the same time.
func (d *Durations) nominalSite(sitting, on string) (opening, closing float64) {
	spec := d.targets[on]
	p, longest := paces[spec.Kind], 0.0
	for _, c := range d.e.Cases {
		times := d.cases[c.Name]
		if p.creates && times.Sitting == sitting && created(spec, times) && d.e.Measures(c, on) {
			longest = max(longest, times.Site.Seconds())
		}
	}
	return p.opening + longest, p.closing
}

// created reports whether a target creates what a case needs: an application only if it is to be deployed.
func created(spec result.Spec, c CaseTimes) bool {
	return c.Application == "" || spec.Deploys(c.Application)
}
