package report

import (
	"cmp"
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/report/chart"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// A pathView is the view of paths and targets: for each workload a table with a row for each path.
type pathView struct {
	Columns  []string
	Legend   []figureColumn
	Sections []pathSection
	Letters  bool   // whether a row has groups
	Bounds   bool   // whether a row has a reference
	Rest     string // note about rows that are left out
}

type pathSection struct {
	File         string
	Title, About string
	Rows         []pathRow
	Figure       figure // the rows as bars, if there are several paths and targets

	unit unit.Unit
}

type pathRow struct {
	Path       result.Path // or the name of a case without a path
	Bounds     []string    // node-to-node reference, and those of targets with their own
	Conclusion string
	Cells      []pathCell
}

// Width returns the number of columns of the table.
func (p *pathView) Width() int {
	if p.Bounds {
		return len(p.Columns) + 2
	}
	return len(p.Columns) + 1
}

// A pathCell is the median of a target, with the letters of its groups.
type pathCell struct {
	Text, Letters, Class, Word string
	Best                       bool
	Bar                        template.HTML
	Marks                      []finding

	value float64 // NaN if there is none
}

// pathTitles are the workloads of the view with their titles, in order; other workloads follow.
var pathTitles = []pair{
	{"tcp-stream", "Throughput"}, {"service tcp-stream", "Throughput through a Service"},
	{"tcp-rr", "Latency on a long connection"}, {"tcp-crr", "Latency with a connection for each request"},
}

// paths returns the view; nil if there are no results.
func (b *builder) paths() *pathView {
	verdicts := b.verdicts()
	p := &pathView{Columns: columns(b.in.Comparison)}
	lines := firstRows(b.results)
	p.Rest = lines.Rest()
	at := index[string]{}
	for _, m := range lines.Rows {
		row := b.pathRow(p, m, groupOf(b.in.Comparison, m.Case, m.Metric), verdicts)
		key := cmp.Or(m.Planned.Workload, m.Metric)
		if words := m.Planned.Words; words.Group != "" {
			key, row.Path = words.Group, result.Path(words.Member)
			if m.Unit != unit.Second || m.Planned.Metric != "" && m.Metric != m.Planned.Metric {
				key += " " + m.Metric // a separate figure with its own axis
			}
		}
		if key == "tcp-stream" && row.Path.Service() {
			key = "service tcp-stream"
		}
		i, first := at.add(key)
		if first {
			about := strings.TrimSpace(m.Planned.Workload+" "+m.Metric) + ", " + betterText(m.Better)
			if m.Planned.Words.Group != "" {
				about = m.Metric + ", " + betterText(m.Better)
			}
			p.Sections = append(p.Sections, pathSection{Title: key, About: about, unit: m.Unit})
		}
		p.Sections[i].Rows = append(p.Sections[i].Rows, row)
		p.Letters = p.Letters || row.Conclusion != ""
		p.Bounds = p.Bounds || len(row.Bounds) > 0
	}
	if len(p.Sections) == 0 {
		return nil
	}
	p.sort()
	for i := range p.Sections {
		p.Sections[i].draw(len(p.Columns), i)
	}
	for i, name := range p.Columns {
		p.Legend = append(p.Legend, figureColumn{Name: name, Key: chart.Swatch(i)})
	}
	return p
}

// Drawn reports whether there are bars.
func (p *pathView) Drawn() bool {
	return slices.ContainsFunc(p.Sections, func(s pathSection) bool { return s.Figure.Plot != "" })
}

// draw adds the bars of a section, if it has several rows and targets, and a value above 0.
func (s *pathSection) draw(targetCount, number int) {
	if len(s.Rows) < 2 || targetCount < 2 {
		return
	}
	bars := chart.Bars{Columns: chart.Columns{Height: primaryHeight, Count: len(s.Rows), Labels: axisLabels(s.unit),
		Caption: chart.Caption{ID: fmt.Sprintf("p%d", number+1), Title: s.Title + " by path and target"}}}
	var values []float64
	for _, row := range s.Rows {
		var set []chart.Bar
		for i, c := range row.Cells {
			set = append(set, chart.Bar{Index: i, Value: c.value})
			values = append(values, c.value)
		}
		bars.Sets = append(bars.Sets, set)
		s.Figure.Columns = append(s.Figure.Columns, figureColumn{Name: string(row.Path)})
	}
	if !slices.ContainsFunc(values, func(v float64) bool { return v > 0 }) {
		return
	}
	bars.Scale = chart.FromZero(values...)
	s.Figure.Axis, s.Figure.Plot = bars.YAxis(), bars.Plot()
}

// sort orders sections and rows, and sets the titles of sections.
func (p *pathView) sort() {
	title := func(key string) int { return slices.IndexFunc(pathTitles, func(t pair) bool { return t.Name == key }) }
	unknownLast := func(i int) uint { return uint(i) } // an unknown entry, -1, comes last
	slices.SortStableFunc(p.Sections, func(a, b pathSection) int {
		return cmp.Compare(unknownLast(title(a.Title)), unknownLast(title(b.Title)))
	})
	for i := range p.Sections {
		s := &p.Sections[i]
		if k := title(s.Title); k >= 0 {
			s.Title = pathTitles[k].Value
		}
		slices.SortStableFunc(s.Rows, func(a, b pathRow) int {
			return cmp.Compare(unknownLast(slices.Index(result.Paths(), a.Path)),
				unknownLast(slices.Index(result.Paths(), b.Path)))
		})
	}
}

// verdicts returns the rows of targets against their main baselines, by case, metric and target.
func (b *builder) verdicts() map[[3]string]compare.Row {
	rows, against := map[[3]string]compare.Row{}, b.in.Comparison.Against()
	for _, r := range b.in.Comparison.Comparisons {
		if r.Baseline == against[r.Target] {
			rows[[3]string{r.Case, r.Metric, r.Target}] = r
		}
	}
	return rows
}

// pathRow returns the row of a case with a cell for each column of p.
func (b *builder) pathRow(p *pathView, m caseResult, g compare.Group, verdicts map[[3]string]compare.Row) pathRow {
	row := pathRow{Path: cmp.Or(m.Planned.Path, result.Path(m.Case)), Conclusion: g.Conclusion}
	if row.Bounds = references(p.Columns, m.Bounds, m.Unit); len(row.Bounds) > 0 {
		row.Bounds[len(row.Bounds)-1] += exceededText(*m.Bound)
	}
	members := map[string]compare.Member{}
	best := bestTargets(g)
	for _, member := range g.Members {
		members[member.Target] = member
	}
	most := math.NaN()
	for _, n := range m.Medians {
		if n.Known() && !(most > float64(n)) {
			most = float64(n)
		}
	}
	for _, name := range p.Columns {
		c := pathCell{Text: "-", value: math.NaN()}
		median, known := m.Medians[name]
		if member, ok := members[name]; ok {
			median, known = member.Median, true
			c.Letters = member.Letters
			c.Best = best[name]
		}
		if known {
			c.value = float64(median)
			c.Text, c.Bar = unit.Format(float64(median), m.Unit), chart.Inline(float64(median)/most)
			c.Marks = b.findings.marks(m.Case, name, name, m.Metric)
		}
		if r, ok := verdicts[[3]string{m.Case, m.Metric, name}]; ok {
			c.Class, c.Word = class(r), verdictWord(r)
		}
		row.Cells = append(row.Cells, c)
	}
	return row
}
