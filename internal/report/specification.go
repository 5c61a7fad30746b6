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

// A sheetEntry is an entry of the specification sheet of a single target: a value, and figures to compare it with.
type sheetEntry struct {
	Title, Sub   string
	Number, Unit string
	Bar          template.HTML // share of the node-to-node reference
	Lines        []sheetLine
}

type sheetLine struct{ Text, Class string }

// addLine adds a line of text, unless it is empty.
func (s *sheetEntry) addLine(text string) {
	if text != "" {
		s.Lines = append(s.Lines, sheetLine{Text: text})
	}
}

// specificationSheet returns the specification sheet of an experiment with one target; nil if it has several. The list
// holds the important metrics of each case. Cases that serve as the reference of others are shown only as such.
func specificationSheet(in Input, list []compare.Median) []sheetEntry {
	if len(in.Experiment.Targets) != 1 {
		return nil
	}
	cases, published := in.casesByName(), publications(in)
	others := slices.ContainsFunc(list, func(m compare.Median) bool { return m.Role != result.Bound })
	var specs []sheetEntry
	at := index[string]{}
	for _, m := range list {
		if m.Role == result.Bound && others {
			continue
		}
		i, first := at.add(m.Case)
		if !first {
			specs[i].addLine(m.Metric + " " + format(m.Median, m.Unit))
			continue
		}
		s := sheetEntry{Sub: m.Case + " " + m.Metric + ", " + betterText(m.Better)}
		subject, quantity := subjectAndQuantity(cases[m.Case], m.Metric)
		s.Title = subject + " · " + quantity
		s.Number, s.Unit, _ = strings.Cut(format(m.Median, m.Unit), " ")
		s.addLine(intervalText(m))
		if b := m.UpperBound; b != nil {
			s.addLine(fmt.Sprintf("%s (%s)", shareOfNodeToNode(*b), format(b.Median, m.Unit)))
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

// intervalText returns the interval of a median and its number of runs.
func intervalText(m compare.Median) string {
	if !m.CI.Bounded() {
		return fmt.Sprintf("%s, too few for an interval", unit.Plural(m.Runs, "run"))
	}
	return fmt.Sprintf("%s at %s, %s", medianInterval(m), stats.Percent(m.Level), unit.Plural(m.Runs, "run"))
}

// shareOfNodeToNode returns the share of the node-to-node reference that a median reaches; only the name of the
// reference if the share is unknown.
func shareOfNodeToNode(b compare.UpperBound) string {
	switch {
	case b.Faster != "":
		return "faster than node to node"
	case !b.TargetShare.Known():
		return referenceName
	}
	return fmt.Sprintf("%.0f %% of node to node", b.TargetShare*100)
}

// objectives adds the outcomes of the objectives of a case.
func (s *sheetEntry) objectives(c compare.Comparison, name string) {
	for _, o := range c.Objectives {
		if o.Case != name {
			continue
		}
		line := sheetLine{Text: fmt.Sprintf("objective p99 ≤ %s: %s", unit.Format(o.Limit, unit.Second), o.Outcome)}
		switch o.Outcome {
		case compare.Met:
			line.Class = "badge passed"
		case compare.NotMet:
			line.Class = "badge failed"
		}
		s.Lines = append(s.Lines, line)
	}
}

// published adds the figures that others published of the same case and metric: of matched targets, or of all.
func (s *sheetEntry) published(list []publication, m compare.Median) {
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
			s.addLine("published, " + p.Name + ": " + strings.Join(texts, "; "))
		}
	}
}

// detectableText returns the change that a comparison with this target could detect; empty without planned blocks or
// with too few runs.
func detectableText(in Input, list []compare.Median) string {
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
