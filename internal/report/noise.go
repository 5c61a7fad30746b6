package report

import (
	"slices"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// A noise is what the experiment says of its own doubts.
type noise struct {
	Placebos capped[compare.Row] // what the baseline differs from itself by
	Power    *matrix             // the spread and the smallest visible change
	Spread   *matrix             // the quartiles
	Invalid  []invalidRow
	Any      bool // there are invalid runs
}

type invalidRow struct {
	compare.TargetRuns
	More int // reasons that are left out
}

// mostInvalid is how many reasons for invalid runs of a target are shown.
const mostInvalid = 5

func (b *builder) noise() noise {
	c := b.in.Comparison
	n := noise{Power: power(c, b.groups), Spread: spread(c, b.groups)}
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
	n.Placebos = first(placebos)
	for _, t := range c.Targets {
		row := invalidRow{TargetRuns: t}
		if more := len(t.Reasons) - mostInvalid; more > 0 {
			row.Reasons, row.More = t.Reasons[:mostInvalid], more
		}
		n.Invalid = append(n.Invalid, row)
		n.Any = n.Any || t.Invalid > 0
	}
	return n
}

// power is, of each primary comparison, the smallest change that the planned blocks show, and the
// spread that it comes from.
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
