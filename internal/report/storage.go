package report

import (
	"maps"
	"slices"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/published"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// inStorageUnits returns the input with the values of storage cases in the usual units, MiB/s and IOPS, for formats
// that users read. Formats for programs stay in base units.
func (in Input) inStorageUnits() Input {
	volumes := map[string]bool{}
	for name, c := range in.casesByName() {
		if c.Load.Volume {
			volumes[name] = true
		}
	}
	if len(volumes) == 0 {
		return in
	}
	in.Comparison = convertComparison(in.Comparison, volumes)
	in.Runs = convertRuns(in.Runs, volumes)
	in.Reference = convertReference(in.Reference, volumes)
	return in
}

// convertReference converts the rows of a copy of published tables that have a counterpart among the storage cases.
func convertReference(tables []published.Table, volumes map[string]bool) []published.Table {
	names := slices.Collect(maps.Keys(volumes))
	tables = slices.Clone(tables)
	for i := range tables {
		tables[i].Rows = slices.Clone(tables[i].Rows)
		for k := range tables[i].Rows {
			row := &tables[i].Rows[k]
			measured := func(name string) bool { return name == row.Synonym || published.SameCase(row.Case, name) }
			if !slices.ContainsFunc(names, measured) {
				continue
			}
			row.Figures = slices.Clone(row.Figures)
			for n := range row.Figures {
				row.Figures[n].Value, _ = unit.ForDisplay(row.Figures[n].Value, row.Unit, true)
			}
			row.Unit = convertUnit(row.Unit)
		}
	}
	return tables
}

// convertNumber converts a value of a storage case.
func convertNumber(n compare.Number, u unit.Unit) compare.Number {
	v, _ := unit.ForDisplay(float64(n), u, true)
	return compare.Number(v)
}

func convertInterval(i compare.Interval, u unit.Unit) compare.Interval {
	lo, hi := convertNumber(compare.Number(i.Lo), u), convertNumber(compare.Number(i.Hi), u)
	return compare.Interval{Lo: float64(lo), Hi: float64(hi)}
}

func convertUnit(u unit.Unit) unit.Unit {
	_, spoken := unit.ForDisplay(1, u, true)
	return spoken
}

// convertComparison converts the storage cases, named in volumes, of a copy of a comparison.
func convertComparison(c compare.Comparison, volumes map[string]bool) compare.Comparison {
	c.Comparisons = slices.Clone(c.Comparisons)
	for i := range c.Comparisons {
		if volumes[c.Comparisons[i].Case] {
			convertRow(&c.Comparisons[i])
		}
	}
	c.Medians = slices.Clone(c.Medians)
	for i := range c.Medians {
		if m := &c.Medians[i]; volumes[m.Case] {
			m.Median, m.CI, m.Unit = convertNumber(m.Median, m.Unit), convertInterval(m.CI, m.Unit), convertUnit(m.Unit)
		}
	}
	c.Groups = slices.Clone(c.Groups)
	for i := range c.Groups {
		if g := &c.Groups[i]; volumes[g.Case] {
			g.Members = slices.Clone(g.Members)
			for k := range g.Members {
				g.Members[k].Median = convertNumber(g.Members[k].Median, g.Unit)
			}
			g.Unit = convertUnit(g.Unit)
		}
	}
	c.Limits = slices.Clone(c.Limits)
	for i := range c.Limits {
		if l := &c.Limits[i]; volumes[l.Case] {
			l.Limit, l.Median, l.Unit = convertNumber(l.Limit, l.Unit), convertNumber(l.Median, l.Unit), convertUnit(l.Unit)
		}
	}
	c.Boxes = slices.Clone(c.Boxes)
	for i := range c.Boxes {
		if b := &c.Boxes[i]; volumes[b.Case] {
			convertBox(b)
		}
	}
	return c
}

func convertRow(r *compare.Row) {
	u := r.Unit
	for _, n := range []*compare.Number{&r.BaselineMedian, &r.TargetMedian, &r.BaselineQuartiles[0],
		&r.BaselineQuartiles[1], &r.TargetQuartiles[0], &r.TargetQuartiles[1]} {
		*n = convertNumber(*n, u)
	}
	if r.Shift != nil {
		r.Shift = &compare.Shift{Estimate: convertNumber(r.Shift.Estimate, u), CI: convertInterval(r.Shift.CI, u)}
	}
	if r.UpperBound != nil {
		bound := *r.UpperBound
		bound.Median, bound.TargetMedian = convertNumber(bound.Median, u), convertNumber(bound.TargetMedian, u)
		r.UpperBound = &bound
	}
	r.Unit = convertUnit(u)
}

func convertBox(b *compare.Box) {
	for _, n := range []*compare.Number{&b.Lowest, &b.Q1, &b.Median, &b.Q3, &b.Highest} {
		*n = convertNumber(*n, b.Unit)
	}
	b.Beyond = slices.Clone(b.Beyond)
	for i := range b.Beyond {
		b.Beyond[i] = convertNumber(b.Beyond[i], b.Unit)
	}
	b.Unit = convertUnit(b.Unit)
}

func convertRuns(runs []result.Run, volumes map[string]bool) []result.Run {
	runs = slices.Clone(runs)
	for i := range runs {
		if !volumes[runs[i].Case] {
			continue
		}
		runs[i].Values = slices.Clone(runs[i].Values)
		for k := range runs[i].Values {
			v := &runs[i].Values[k]
			v.Number, v.Unit = unit.ForDisplay(v.Number, v.Unit, true)
		}
	}
	return runs
}
