package report

import (
	"slices"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// spoken is the input with the values of storage in the units that its readers expect, MiB/s and IOPS: for formats that
// are read. What is processed stays in base units.
func (in Input) spoken() Input {
	volumes := map[string]bool{}
	for name, c := range in.casesByName() {
		if c.Load.Volume {
			volumes[name] = true
		}
	}
	if len(volumes) == 0 {
		return in
	}
	in.Comparison = spokenComparison(in.Comparison, volumes)
	in.Runs = spokenRuns(in.Runs, volumes)
	return in
}

// number is a value of a volume as it is spoken.
func number(n compare.Number, u unit.Unit) compare.Number {
	v, _ := unit.Spoken(float64(n), u, true)
	return compare.Number(v)
}

func spokenEnds(i compare.Interval, u unit.Unit) compare.Interval {
	return compare.Interval{Lo: float64(number(compare.Number(i.Lo), u)), Hi: float64(number(compare.Number(i.Hi), u))}
}

func spokenUnit(u unit.Unit) unit.Unit {
	_, spoken := unit.Spoken(1, u, true)
	return spoken
}

func spokenComparison(c compare.Comparison, volumes map[string]bool) compare.Comparison {
	c.Comparisons = slices.Clone(c.Comparisons)
	for i := range c.Comparisons {
		if volumes[c.Comparisons[i].Case] {
			spokenRow(&c.Comparisons[i])
		}
	}
	c.Medians = slices.Clone(c.Medians)
	for i := range c.Medians {
		if m := &c.Medians[i]; volumes[m.Case] {
			m.Median, m.CI, m.Unit = number(m.Median, m.Unit), spokenEnds(m.CI, m.Unit), spokenUnit(m.Unit)
		}
	}
	c.Groups = slices.Clone(c.Groups)
	for i := range c.Groups {
		if g := &c.Groups[i]; volumes[g.Case] {
			g.Members = slices.Clone(g.Members)
			for k := range g.Members {
				g.Members[k].Median = number(g.Members[k].Median, g.Unit)
			}
			g.Unit = spokenUnit(g.Unit)
		}
	}
	c.Limits = slices.Clone(c.Limits)
	for i := range c.Limits {
		if l := &c.Limits[i]; volumes[l.Case] {
			l.Limit, l.Median, l.Unit = number(l.Limit, l.Unit), number(l.Median, l.Unit), spokenUnit(l.Unit)
		}
	}
	c.Boxes = slices.Clone(c.Boxes)
	for i := range c.Boxes {
		if b := &c.Boxes[i]; volumes[b.Case] {
			spokenBox(b)
		}
	}
	return c
}

func spokenRow(r *compare.Row) {
	u := r.Unit
	for _, n := range []*compare.Number{&r.BaselineMedian, &r.TargetMedian, &r.BaselineQuartiles[0],
		&r.BaselineQuartiles[1], &r.TargetQuartiles[0], &r.TargetQuartiles[1]} {
		*n = number(*n, u)
	}
	if r.Shift != nil {
		r.Shift = &compare.Shift{Estimate: number(r.Shift.Estimate, u), CI: spokenEnds(r.Shift.CI, u)}
	}
	if r.UpperBound != nil {
		bound := *r.UpperBound
		bound.Median, bound.TargetMedian = number(bound.Median, u), number(bound.TargetMedian, u)
		r.UpperBound = &bound
	}
	r.Unit = spokenUnit(u)
}

func spokenBox(b *compare.Box) {
	for _, n := range []*compare.Number{&b.Lowest, &b.Q1, &b.Median, &b.Q3, &b.Highest} {
		*n = number(*n, b.Unit)
	}
	b.Beyond = slices.Clone(b.Beyond)
	for i := range b.Beyond {
		b.Beyond[i] = number(b.Beyond[i], b.Unit)
	}
	b.Unit = spokenUnit(b.Unit)
}

func spokenRuns(runs []result.Run, volumes map[string]bool) []result.Run {
	runs = slices.Clone(runs)
	for i := range runs {
		if !volumes[runs[i].Case] {
			continue
		}
		runs[i].Values = slices.Clone(runs[i].Values)
		for k := range runs[i].Values {
			v := &runs[i].Values[k]
			v.Number, v.Unit = unit.Spoken(v.Number, v.Unit, true)
		}
	}
	return runs
}
