package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/doc"
	"github.com/knotmeter/knotmeter/internal/report/chart"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/stats"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// specificationSheet returns the values of an experiment with one target, each with figures to compare it with: a card
// for each case, in a page. The list holds the important metrics of each case. Cases that serve as the reference of
// others are shown only as such.
func specificationSheet(in Input, list []compare.Median) doc.Block {
	if len(in.Experiment.Targets) != 1 {
		return doc.Block{}
	}
	cases, published := in.casesByName(), publications(in)
	others := slices.ContainsFunc(list, func(m compare.Median) bool { return m.Role != result.Bound })
	t := doc.Table{Lead: true, Columns: []doc.Column{{Head: "median"}}}
	at := index[string]{}
	for _, m := range list {
		if m.Role == result.Bound && others {
			continue
		}
		i, first := at.add(m.Case)
		if !first {
			c := &t.Rows[i].Cells[0]
			c.Notes = append(c.Notes, m.Metric+" "+format(m.Median, m.Unit))
			continue
		}
		c := doc.Cell{Text: format(m.Median, m.Unit), Notes: []string{intervalText(m)}}
		if b := m.UpperBound; b != nil {
			c.Notes = append(c.Notes, fmt.Sprintf("%s (%s)", shareOfNodeToNode(*b), format(b.Median, m.Unit)))
			if b.Faster == "" {
				c.Plot = chart.Inline(float64(b.TargetShare))
			}
		}
		for _, o := range in.Comparison.Objectives {
			if o.Case == m.Case {
				c.Notes = append(c.Notes, fmt.Sprintf("objective p99 ≤ %s: %s", unit.Format(o.Limit, unit.Second), o.Outcome))
			}
		}
		c.Notes = append(c.Notes, publishedOf(published, m)...)
		subject, quantity := subjectAndQuantity(cases[m.Case], m.Metric)
		t.Rows = append(t.Rows, doc.Row{Group: subject, Head: quantity,
			Sub: m.Case + " " + m.Metric + ", " + betterText(m.Better), Cells: []doc.Cell{c}})
	}
	return doc.Block{Parts: slices.Concat(parts(t), faint(detectableText(in, list)))}
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

// publishedOf returns the figures that others published of the same case and metric: of matched targets, or of all.
func publishedOf(list []publication, m compare.Median) (lines []string) {
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
			lines = append(lines, "published, "+p.Name+": "+strings.Join(texts, "; "))
		}
	}
	return lines
}

// detectableText returns the change that a comparison with a target could detect; empty without planned blocks or with
// too few runs.
func detectableText(in Input, list []compare.Median) string {
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
