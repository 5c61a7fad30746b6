package report

import (
	"slices"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// noise holds the section about the noise of the experiment.
type noise struct {
	Placebos capped[compare.Row] // A/A controls: the baseline against itself
	Power    *matrix             // spread and detectable change
	Spread   *matrix             // quartiles of the runs
	Invalid  []invalidRow
	Any      bool // whether there are invalid runs
}

type invalidRow struct {
	compare.TargetRuns
	More int // number of reasons that are left out
}

// maxInvalidReasons is the number of shown reasons for invalid runs of a target.
const maxInvalidReasons = 5

// noise returns the section about the noise of the experiment.
func (b *builder) noise() noise {
	c := b.in.Comparison
	n := noise{Power: power(c, b.groups), Spread: quartileSpread(c, b.groups)}
	var placebos []compare.Row
	for _, g := range b.groups {
		if !g.Main && g.Role != result.Primary || g.Baseline != c.Baseline {
			continue
		}
		for _, r := range g.Rows {
			if slices.Contains(c.Placebos, r.Target) {
				placebos = append(placebos, r)
			}
		}
	}
	n.Placebos = firstRows(placebos)
	for _, t := range c.Targets {
		row := invalidRow{TargetRuns: t}
		if more := len(t.Reasons) - maxInvalidReasons; more > 0 {
			row.Reasons, row.More = t.Reasons[:maxInvalidReasons], more
		}
		n.Invalid = append(n.Invalid, row)
		n.Any = n.Any || t.Invalid > 0
	}
	return n
}

// power returns the table of the detectable change of each primary comparison with the planned blocks, and of the
// spread that it follows from.
func power(c compare.Comparison, all []group) *matrix {
	m := newMatrix(c)
	m.Columns = slices.DeleteFunc(slices.Clone(m.Columns), func(name string) bool {
		return !slices.ContainsFunc(c.Comparisons, func(r compare.Row) bool { return r.Target == name })
	})
	for _, g := range all {
		known := slices.ContainsFunc(g.Rows, func(r compare.Row) bool { return r.Spread.Known() || r.Detectable.Known() })
		if g.Role != result.Primary || !known {
			continue
		}
		m.add(g, cell{Text: "baseline"}, func(r compare.Row) cell {
			return cell{Text: "± " + unit.Format(float64(r.Detectable), unit.Ratio),
				Sub: "spread " + unit.Format(float64(r.Spread), unit.Ratio)}
		})
	}
	return m.capped()
}
