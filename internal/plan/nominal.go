package plan

import "github.com/knotmeter/knotmeter/internal/result"

// A nominal cost is the seconds that things are thought to take on a kind of target before any has been measured.
type nominal struct {
	making, removing float64 // of a site
	run              float64 // of a run besides its windows and the pause before it
}

// nominals are by kind of target.
var nominals = map[string]nominal{
	"lab":   {making: 0.3, removing: 0.1, run: 0.1},
	"local": {making: 0.1, removing: 0.1, run: 0.1},
	"kube":  {making: 3, removing: 1.5, run: 0.2},
}

func (d *Durations) nominalRun(_, target string, design result.Design) float64 {
	return Pause.Seconds() + design.Warmup + design.Duration + nominals[d.kind(target)].run
}

func (d *Durations) nominalSite(target string) (making, removing float64) {
	n := nominals[d.kind(target)]
	return n.making, n.removing
}
