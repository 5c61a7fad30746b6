package report

import (
	"slices"
	"strconv"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// A noise is what the experiment says of its own doubts.
type noise struct {
	Placebos []placebo // what the baseline differs from itself by
	Spare    int       // further ones that there was no room for
	Power    *matrix   // the spread and the smallest visible change
	Spread   *matrix   // the quartiles
	Invalid  []invalidRow
	Any      bool // there are invalid runs
}

// A placebo is a comparison of the baseline with itself.
type placebo struct {
	Case, Metric, Target, Change, Interval, Word, Class string
	Primary                                             bool
}

type invalidRow struct {
	Name          string
	Runs, Invalid string
	Reasons       []compare.Reason
	More          int // reasons that are left out
}

func (b *builder) noise() noise {
	c := b.in.Comparison
	n := noise{Power: power(c, b.groups), Spread: spread(c, b.groups)}
	room := allowance(matrixRoom)
	for _, g := range b.groups {
		if !g.Main && g.Role != result.Primary || g.Baseline != c.Baseline {
			continue
		}
		for _, r := range g.Rows {
			switch {
			case !slices.Contains(c.Placebos, r.Target):
			case !room.take(200 + len(r.Case) + len(r.Target)):
				n.Spare++
			default:
				n.Placebos = append(n.Placebos, placebo{r.Case, r.Metric, r.Target,
					change(r.Change), interval(r.CI), word(r), class(r), r.Role == result.Primary})
			}
		}
	}
	const most = 5
	for _, t := range c.Targets {
		row := invalidRow{Name: t.Name, Runs: strconv.Itoa(t.Runs), Invalid: strconv.Itoa(t.Invalid), Reasons: t.Reasons}
		if len(t.Reasons) > most {
			row.Reasons, row.More = t.Reasons[:most], len(t.Reasons)-most
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
	return m.orNil()
}
