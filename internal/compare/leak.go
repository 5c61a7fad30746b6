package compare

import (
	"fmt"
	"math"

	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/stats"
	"github.com/knotmeter/knotmeter/internal/unit"
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
	Lo       float64 `json:"lo"`
	Hi       float64 `json:"hi"`
	Sentence string  `json:"sentence"`
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

// withInterval adds the interval and the sentence: two-sided if traffic leaked, otherwise one-sided.
func (l Leak) withInterval() Leak {
	seen := unit.Plural(l.Trials, "trial") + " of " + unit.Plural(l.Blocks, "block")
	if l.Leaked == 0 {
		_, l.Hi = stats.Proportion(0, l.Blocks, 1-2*objectiveAlpha)
		l.Sentence = fmt.Sprintf("%s on %s: none in %s: below %.3g %% of blocks, at 95 %%.", l.Case, l.Target, seen,
			100*l.Hi)
		return l
	}
	l.Lo, l.Hi = stats.Proportion(l.LeakedBlocks, l.Blocks, 1-objectiveAlpha)
	l.Sentence = fmt.Sprintf("%s on %s: traffic passed in %d of %s, in %d of the blocks: %.3g %% [%.3g, %.3g] of blocks, "+
		"at 95 %%.", l.Case, l.Target, l.Leaked, seen, l.LeakedBlocks, 100*float64(l.LeakedBlocks)/float64(l.Blocks),
		100*l.Lo, 100*l.Hi)
	return l
}
