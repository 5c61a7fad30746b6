package report

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/doc"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// noise returns what is known of the noise of the experiment.
func (b *builder) noise() doc.Block {
	spread := b.quartileSpread()
	return doc.Block{ID: "noise", Title: "Noise and power", Level: doc.Data, Parts: append(b.placebos(), nested(
		doc.Block{Title: "Detectable change of the primary comparisons", Parts: parts(b.power()), About: "Detectable " +
			"change at 80 % power with the planned blocks, and the spread of the paired ratios that it follows from."},
		doc.Block{Title: fmt.Sprintf("Spread of the runs, first to third quartile (%d cases)", len(spread.Rows)),
			Level: doc.Data, Parts: parts(spread)},
		invalid(b.in.Comparison))...)}
}

// placebos returns the A/A controls: the baseline against itself.
func (b *builder) placebos() []doc.Element {
	c := b.in.Comparison
	table := doc.Table{Columns: []doc.Column{{Head: "as"}, {Head: "change"}, {Head: "interval"},
		{Head: "verdict", Words: true}}}
	for _, g := range b.groups {
		if !g.Main && g.Role != result.Primary || g.Baseline != c.Baseline {
			continue
		}
		for _, r := range g.Rows {
			if !slices.Contains(c.Placebos, r.Target) {
				continue
			}
			metric := r.Metric
			if r.Role != result.Primary {
				metric += ", exploratory"
			}
			table.Rows = append(table.Rows, doc.Row{Head: r.Case, Sub: metric, Cells: []doc.Cell{{Text: r.Target},
				{Text: change(r.Change)}, {Text: interval(r.CI)}, verdictCell(r)}})
		}
	}
	if len(table.Rows) == 0 {
		return faint("No A/A control was run. With one (the same target under another label) the experiment shows its " +
			"own noise.")
	}
	return nested(doc.Block{Title: "A/A control: the baseline against itself", Parts: parts(table),
		About: "The same target under two names. Whatever it seems to differ by is noise; do not trust a change of another " +
			"target that is no larger."})
}

// power returns the detectable change of each primary comparison with the planned blocks, and the spread that it
// follows from.
func (b *builder) power() doc.Table {
	t := newTargetTable(b.in.Comparison)
	t.Columns = slices.DeleteFunc(t.Columns, func(c doc.Column) bool {
		return !slices.ContainsFunc(b.in.Comparison.Comparisons, func(r compare.Row) bool { return r.Target == c.Head })
	})
	for _, g := range b.groups {
		known := slices.ContainsFunc(g.Rows, func(r compare.Row) bool { return r.Spread.Known() || r.Detectable.Known() })
		if g.Role != result.Primary || !known {
			continue
		}
		t.addCompared(g, doc.Cell{Text: "baseline"}, func(r compare.Row) doc.Cell {
			return doc.Cell{Text: "± " + format(r.Detectable, unit.Ratio),
				Notes: []string{"spread " + format(r.Spread, unit.Ratio)}}
		})
	}
	return t.Table
}

// quartileSpread returns the quartiles of the runs of each target.
func (b *builder) quartileSpread() doc.Table {
	t, against := newTargetTable(b.in.Comparison), b.in.Comparison.Against()
	for _, g := range b.groups {
		if (!g.Main && g.Role != result.Primary) || len(g.Rows) == 0 || g.Baseline != against[g.Rows[0].Target] {
			continue
		}
		baseline := doc.Cell{Text: span(g.Rows[0].BaselineQuartiles, g.Unit)}
		t.addCompared(g, baseline, func(r compare.Row) doc.Cell { return doc.Cell{Text: span(r.TargetQuartiles, g.Unit)} })
	}
	return t.Table
}

// maxInvalidReasons is the number of shown reasons for invalid runs of a target.
const maxInvalidReasons = 5

// invalid returns the number of invalid runs of each target, with reasons.
func invalid(c compare.Comparison) doc.Block {
	table := doc.Table{Columns: []doc.Column{{Head: "runs"}, {Head: "invalid"}, {Head: "why", Words: true}}}
	all := 0
	for _, t := range c.Targets {
		why := doc.Cell{Text: "-"}
		for i, r := range t.Reasons[:min(len(t.Reasons), maxInvalidReasons)] {
			text := fmt.Sprintf("%s (%d)", r.Text, r.Runs)
			if i == 0 {
				why.Text = text
			} else {
				why.Notes = append(why.Notes, text)
			}
		}
		if more := len(t.Reasons) - maxInvalidReasons; more > 0 {
			why.Notes = append(why.Notes, fmt.Sprintf("and %d more reasons", more))
		}
		all += t.Invalid
		table.Rows = append(table.Rows, doc.Row{Head: t.Name,
			Cells: []doc.Cell{{Text: strconv.Itoa(t.Runs)}, {Text: strconv.Itoa(t.Invalid)}, why}})
	}
	if all == 0 {
		return doc.Block{Title: "Invalid runs",
			Parts: []doc.Element{doc.Paragraph{Text: "None: every run passed every validity check."}}}
	}
	return doc.Block{Title: "Invalid runs", Parts: parts(table), About: "These runs failed a validity check. They do " +
		"not count, and their blocks were repeated. Counts that differ much between targets are a finding in themselves."}
}
