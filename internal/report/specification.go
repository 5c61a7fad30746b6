package report

import (
	"fmt"
	"html/template"
	"slices"
	"strings"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/report/chart"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/stats"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// A spec is a line of the specification sheet of one target: a value, and what it can be held against.
type spec struct {
	Title, Sub   string
	Number, Unit string
	Bar          template.HTML // the share of the node-to-node reference
	Lines        []specLine
}

type specLine struct{ Text, Class string }

func (s *spec) say(text string) {
	if text != "" {
		s.Lines = append(s.Lines, specLine{Text: text})
	}
}

// sheet is the specification sheet of an experiment with one target, none of others. List has the metrics of each case
// that a reader looks for first; what is a reference of others is said with those.
func sheet(in Input, list []compare.Median, published []publication) []spec {
	if len(in.Experiment.Targets) != 1 {
		return nil
	}
	cases := in.casesByName()
	others := slices.ContainsFunc(list, func(m compare.Median) bool { return m.Role != result.Bound })
	var specs []spec
	at := index[string]{}
	for _, m := range list {
		if m.Role == result.Bound && others {
			continue
		}
		i, first := at.of(m.Case)
		if !first {
			specs[i].say(m.Metric + " " + format(m.Median, m.Unit))
			continue
		}
		s := spec{Sub: m.Case + " " + m.Metric + ", " + betterText(m.Better)}
		subject, quantity := inPlainWords(cases[m.Case], m.Metric)
		s.Title = subject + " · " + quantity
		s.Number, s.Unit, _ = strings.Cut(format(m.Median, m.Unit), " ")
		s.say(specInterval(m))
		if b := m.UpperBound; b != nil {
			s.say(fmt.Sprintf("%s (%s)", nodeToNode(*b), format(b.Median, m.Unit)))
			if b.Faster == "" {
				s.Bar = chart.Inline(float64(b.TargetShare))
			}
		}
		s.objectives(in.Comparison, m.Case)
		s.published(published, m)
		specs = append(specs, s)
	}
	return specs
}

func specInterval(m compare.Median) string {
	if !m.CI.Bounded() {
		return fmt.Sprintf("%s, too few for an interval", unit.Plural(m.Runs, "run"))
	}
	return fmt.Sprintf("%s at %s, %s", around(m), stats.Percent(m.Level), unit.Plural(m.Runs, "run"))
}

// nodeToNode is the share of the reference in words.
func nodeToNode(b compare.UpperBound) string {
	if b.Faster != "" || !b.TargetShare.Known() {
		return "faster than node to node"
	}
	return fmt.Sprintf("%.0f %% of node to node", b.TargetShare*100)
}

// objectives says what became of those that others have set for a case.
func (s *spec) objectives(c compare.Comparison, name string) {
	for _, o := range c.Objectives {
		if o.Case != name {
			continue
		}
		line := specLine{Text: fmt.Sprintf("objective p99 ≤ %s: %s", unit.Format(o.Limit, unit.Second), o.Outcome)}
		switch o.Outcome {
		case compare.Met:
			line.Class = "badge passed"
		case compare.NotMet:
			line.Class = "badge failed"
		}
		s.Lines = append(s.Lines, line)
	}
}

// published says what others published of the same case and metric: what the target is matched with, or all.
func (s *spec) published(list []publication, m compare.Median) {
	for _, p := range list {
		for _, row := range p.Rows {
			if row.Ours != m.Case || row.Metric != m.Metric {
				continue
			}
			figures := row.Figures
			if len(row.Pairs) > 0 {
				figures = nil
				for _, pair := range row.Pairs {
					figures = append(figures, pair.There)
				}
			}
			const most = 2
			var texts []string
			for _, f := range figures[:min(len(figures), most)] {
				texts = append(texts, f.Target+" "+row.Value(f))
			}
			if rest := len(figures) - most; rest > 0 {
				texts = append(texts, fmt.Sprintf("%d more below", rest))
			}
			s.say("published, " + p.Name + ": " + strings.Join(texts, "; "))
		}
	}
}

// detectable says what a comparison with this target could tell apart; nothing where no block was planned or the runs
// are too few.
func detectable(in Input, list []compare.Median) string {
	if len(in.Experiment.Targets) != 1 {
		return ""
	}
	cases, least, most := in.casesByName(), compare.Missing(), compare.Missing()
	for _, m := range list {
		if m.Role != result.Primary || m.Metric != cases[m.Case].Metric || !m.Detectable.Known() {
			continue
		}
		if !least.Known() || m.Detectable < least {
			least = m.Detectable
		}
		if !most.Known() || m.Detectable > most {
			most = m.Detectable
		}
	}
	if !least.Known() {
		return ""
	}
	text := "Next to a target whose runs spread alike, " + unit.Plural(in.Experiment.Design.Blocks, "block") +
		" would show a change of " + change(least)
	if most > least {
		text += " to " + change(most) + ", depending on the case,"
	}
	return text + " with a probability of 80 %."
}
