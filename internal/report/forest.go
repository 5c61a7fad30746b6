package report

import (
	"fmt"
	"html/template"
	"slices"
	"strconv"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/doc/html"
	"github.com/knotmeter/knotmeter/internal/report/chart"
	"github.com/knotmeter/knotmeter/internal/result"
)

// A forest is a forest plot: rows of cases on one axis.
type forest struct {
	ID, Title, About string
	File             string
	Folded           bool // too long to be shown open
	Axis             template.HTML
	Change           string // heading of the changes
	Groups           []forestGroup
	Shown, All       int // number of comparisons
}

type forestGroup struct {
	Case, Metric, Better string
	Against              string // baseline, if it differs from that of the whole comparison
	Rows                 []forestRow
	Missing              []result.NotMeasured
}

type forestRow struct {
	compare.Row
	Plot  template.HTML
	Marks []finding
}

// Rest returns a note about the comparisons that are left out.
func (f forest) Rest() string { return html.Rest(f.Shown, f.All) }

// manyCases is the number of exploratory cases above which they are folded.
const manyCases = 8

// axis returns the common axis of all comparisons of the page.
func (b *builder) axis() chart.Forest {
	primary, _ := partition(b.groups, result.Primary)
	exploratory, _ := partition(b.groups, result.Exploratory)
	var rows []chart.Interval
	for _, g := range slices.Concat(primary, exploratory) {
		for _, r := range g.Rows {
			rows = append(rows, forestInterval(r, 0))
		}
	}
	return chart.NewForest(rows, b.in.Comparison.Delta)
}

// forests draws primary and exploratory comparisons.
func (b *builder) forests(axis chart.Forest) (list []forest) {
	primary, _ := partition(b.groups, result.Primary)
	exploratory, _ := partition(b.groups, result.Exploratory)
	number := 0
	add := func(f forest, groups []group) {
		if len(groups) == 0 {
			return
		}
		f.Axis, f.Change = axis.Axis(), "change"
		if b.in.Comparison.Paired {
			f.Change = "paired change"
		}
		for _, g := range groups {
			fg := forestGroup{Case: g.Case, Metric: g.Metric, Better: betterText(g.Better), Missing: g.Missing}
			if g.Baseline != b.in.Comparison.Baseline {
				fg.Against = g.Baseline
			}
			for _, r := range g.Rows {
				if f.All++; f.All > maxRows {
					continue
				}
				number++
				fg.Rows = append(fg.Rows, forestRow{r, axis.Row(forestInterval(r, number)),
					b.findings.marks(r.Case, r.Target, r.Baseline, r.Metric)})
				f.Shown++
			}
			if len(fg.Rows)+len(fg.Missing) > 0 {
				f.Groups = append(f.Groups, fg)
			}
		}
		list = append(list, f)
	}
	planned := "A verdict was planned for these."
	if b.in.Comparison.Paired {
		planned += " Their intervals hold all together."
	}
	add(forest{ID: "primary", Title: "Primary comparisons", About: planned}, primary)
	add(forest{
		ID: "exploratory", Title: "Exploratory comparisons", Folded: len(exploratory) > manyCases,
		About: "No verdict was planned for these. Each interval is at its own level, so among many some exclude zero by " +
			"chance; the verdicts are under false discovery rate control.",
	}, exploratory)
	return list
}

// forestInterval returns a comparison as a row of a forest plot; the number makes its id unique.
func forestInterval(r compare.Row, number int) chart.Interval {
	return chart.Interval{
		Change: float64(r.Change), Lo: r.CI.Lo, Hi: r.CI.Hi, Mark: mark(r), Primary: r.Role == result.Primary,
		Caption: chart.Caption{ID: "f" + strconv.Itoa(number), Title: fmt.Sprintf("%s %s: %s %s, %s",
			r.Case, r.Target, change(r.Change), interval(r.CI), verdictWithReason(r))},
	}
}
