package compare

import (
	"fmt"
	"math"

	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/stats"
)

// A Leak counts how often forbidden traffic passed in all trials of a case on a target.
type Leak struct {
	Case   string `json:"case"`
	Target string `json:"target"`
	Trials int    `json:"trials"`
	Leaked int    `json:"leaked"` // trials in which traffic passed
	// Lo and Hi are the ends of the 95 % interval of the probability of a leak; if none was seen, Hi is its one-sided
	// upper bound at 95 %.
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
	l.Trials += int(trials.Number)
	l.Leaked += int(math.Round(share.Number * trials.Number))
}

// withInterval adds the interval and the sentence: two-sided if traffic leaked, otherwise one-sided.
func (l Leak) withInterval() Leak {
	if l.Leaked == 0 {
		_, l.Hi = stats.Proportion(0, l.Trials, 1-2*objectiveAlpha)
		l.Sentence = fmt.Sprintf("%s on %s: none in %d trials: below %.3g %% of them, at 95 %%.", l.Case, l.Target,
			l.Trials, 100*l.Hi)
		return l
	}
	l.Lo, l.Hi = stats.Proportion(l.Leaked, l.Trials, 1-objectiveAlpha)
	l.Sentence = fmt.Sprintf("%s on %s: something passed in %d of %d trials: %.3g %% [%.3g, %.3g] of them, at 95 %%.",
		l.Case, l.Target, l.Leaked, l.Trials, 100*float64(l.Leaked)/float64(l.Trials), 100*l.Lo, 100*l.Hi)
	return l
}
