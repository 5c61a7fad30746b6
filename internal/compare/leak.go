package compare

import (
	"math"

	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/stats"
)

// A Leak counts how often forbidden traffic passed in all trials of a case on a target. The trials of a block share its
// pods, its run and its moment: they are no independent evidence. The interval counts blocks.
type Leak struct {
	Case   string `json:"case"`
	Target string `json:"target"`
	Trials int    `json:"trials"`
	Leaked int    `json:"leaked"` // trials in which traffic passed
	Blocks int    `json:"blocks"`
	// LeakedBlocks counts the blocks with a trial in which traffic passed.
	LeakedBlocks int `json:"leaked_blocks"`
	// Lo and Hi are the ends of the 95 % interval of the probability that traffic passes in a block; if none passed, Hi
	// is its one-sided upper bound at 95 %.
	Lo float64 `json:"lo"`
	Hi float64 `json:"hi"`
}

// leaks returns the leaks in valid runs, by case and target in the order of the plan.
func (t *runTable) leaks() []Leak {
	var list []Leak
	for _, c := range t.e.Cases {
		for _, x := range t.e.Targets {
			l := Leak{Case: c.Name, Target: x.Name}
			for _, r := range t.valid(c.Name, x.Name) {
				l.add(r)
			}
			if l.Trials > 0 {
				list = append(list, l.withInterval())
			}
		}
	}
	return list
}

func (l *Leak) add(r *result.Run) {
	share, has := r.Value(metric.Leaked)
	trials, counted := r.Value(metric.Trials)
	if !has || !counted {
		return
	}
	leaked := int(math.Round(share.Number * trials.Number))
	l.Trials, l.Leaked, l.Blocks = l.Trials+int(trials.Number), l.Leaked+leaked, l.Blocks+1
	if leaked > 0 {
		l.LeakedBlocks++
	}
}

// withInterval adds the interval: two-sided if traffic leaked, otherwise one-sided.
func (l Leak) withInterval() Leak {
	if l.Leaked == 0 {
		_, l.Hi = stats.Proportion(0, l.Blocks, 1-2*objectiveAlpha)
	} else {
		l.Lo, l.Hi = stats.Proportion(l.LeakedBlocks, l.Blocks, 1-objectiveAlpha)
	}
	return l
}
