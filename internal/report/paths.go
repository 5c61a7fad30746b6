package report

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/doc"
	"github.com/knotmeter/knotmeter/internal/report/chart"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// A pathSection has the rows of a workload, one for each path.
type pathSection struct {
	title string
	about string
	unit  unit.Unit
	rows  []pathRow
}

type pathRow struct {
	path    result.Path // or the name of a case without a path
	medians []float64   // by target; NaN if there is none
	cells   []doc.Cell
}

// pathTitles are the workloads of the view with their titles, in order; other workloads follow.
var pathTitles = []pair{
	{"tcp-stream", "Throughput"}, {"service tcp-stream", "Throughput through a Service"},
	{"tcp-rr", "Latency on a long connection"}, {"tcp-crr", "Latency with a connection for each request"},
}

// paths returns the median of each target on each path, as bars and as a table.
func (b *builder) paths() doc.Block {
	names := columns(b.in.Comparison)
	block := doc.Block{ID: "paths", Title: "Paths and targets", Level: doc.Data, About: "The median of each target, " +
		"with the verdict against the baseline. Bars of the table are scaled per row."}
	if len(b.in.Comparison.Groups) > 0 {
		block.About += " Targets that share a letter cannot be distinguished; ★ marks the best target and those that " +
			"cannot be distinguished from it."
	}
	table := doc.Table{}
	for _, name := range names {
		table.Columns = append(table.Columns, doc.Column{Head: name})
	}
	table.Columns = append(table.Columns, doc.Column{Head: referenceName})
	for _, s := range b.pathSections(names) {
		if bars, drawn := s.bars(len(names)); drawn {
			f := b.names.figure(bars, s.title+" by path and target", "paths", s.title)
			f.Title, f.Note, f.Legend = s.title, s.about, targetLabels(names, true)
			for _, row := range s.rows {
				f.Columns = append(f.Columns, doc.Label{Name: string(row.path)})
			}
			block.Parts = append(block.Parts, f)
		}
		for _, row := range s.rows {
			table.Rows = append(table.Rows, doc.Row{Group: s.title + ", " + s.about, Head: string(row.path), Cells: row.cells})
		}
	}
	block.Parts = append(append(block.Parts, parts(table.WithoutEmptyColumns())...), nested(
		list("Order of the targets", slices.Concat(conclusions(b.in.Comparison.Groups, true),
			conclusions(b.in.Comparison.Groups, false)), ""),
		list("By group of cases", subjectSentences(b.in.Comparison), ""))...)
	return block
}

// pathSections returns the sections with their rows, in order.
func (b *builder) pathSections(names []string) []pathSection {
	var list []pathSection
	at, verdicts := index[string]{}, b.verdicts()
	for _, m := range b.results {
		about := strings.TrimSpace(m.Planned.Workload+" "+m.Metric) + ", " + betterText(m.Better)
		key, path := cmp.Or(m.Planned.Workload, m.Metric), cmp.Or(m.Planned.Path, result.Path(m.Case))
		if words := m.Planned.Words; words.Group != "" {
			key, path, about = words.Group, result.Path(words.Member), m.Metric+", "+betterText(m.Better)
			if m.Unit != unit.Second || m.Planned.Metric != "" && m.Metric != m.Planned.Metric {
				key += " " + m.Metric // a separate figure with its own axis
			}
		}
		if key == "tcp-stream" && path.Service() {
			key = "service tcp-stream"
		}
		i, first := at.add(key)
		if first {
			list = append(list, pathSection{title: key, about: about, unit: m.Unit})
		}
		row := b.pathRow(names, m, verdicts)
		row.path = path
		list[i].rows = append(list[i].rows, row)
	}
	rank := func(i int) uint { return uint(i) } // an unknown entry, -1, comes last
	title := func(key string) int { return slices.IndexFunc(pathTitles, func(t pair) bool { return t.Name == key }) }
	slices.SortStableFunc(list, func(a, b pathSection) int {
		return cmp.Compare(rank(title(a.title)), rank(title(b.title)))
	})
	for i, s := range list {
		if k := title(s.title); k >= 0 {
			list[i].title = pathTitles[k].Value
		}
		slices.SortStableFunc(s.rows, func(a, b pathRow) int {
			return cmp.Compare(rank(slices.Index(result.Paths(), a.path)), rank(slices.Index(result.Paths(), b.path)))
		})
	}
	return list
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

// pathRow returns the row of a case with a cell for each target, and one for the reference.
func (b *builder) pathRow(names []string, m caseResult, verdicts map[[3]string]compare.Row) pathRow {
	var row pathRow
	g := groupOf(b.in.Comparison, m.Case, m.Metric)
	best, letters, medians := bestTargets(g), map[string]string{}, maps.Clone(m.Medians)
	for _, member := range g.Members {
		medians[member.Target], letters[member.Target] = member.Median, member.Letters
	}
	most := math.NaN()
	for _, n := range medians {
		if n.Known() && !(most > float64(n)) {
			most = float64(n)
		}
	}
	for _, name := range names {
		c, v := doc.Cell{Text: "-", Letters: letters[name]}, math.NaN()
		if median, known := medians[name]; known {
			v = float64(median)
			c.Text, c.Plot = format(median, m.Unit), chart.Inline(v/most)
			c.Links = links(b.findings.marks(m.Case, name, name, m.Metric))
		}
		c.Best = best[name]
		if r, ok := verdicts[[3]string{m.Case, m.Metric, name}]; ok {
			c.Mark, c.Parts = mark(r), []string{verdictWord(r)}
		}
		row.cells, row.medians = append(row.cells, c), append(row.medians, v)
	}
	reference := doc.Cell{}
	if known := references(names, m.Bounds, m.Unit); len(known) > 0 {
		known[len(known)-1] += exceededText(*m.Bound)
		reference = doc.Cell{Text: known[0], Notes: known[1:]}
	}
	row.cells = append(row.cells, reference)
	return row
}

// bars returns the medians as bars, if there are several paths, but not too many, several targets, and a value above 0.
func (s pathSection) bars(targets int) (bars chart.Bars, drawn bool) {
	bars = chart.Bars{Columns: chart.Columns{Height: primaryHeight, Count: len(s.rows), Labels: axisLabels(s.unit)}}
	var values []float64
	for _, row := range s.rows {
		bars.Sets, values = append(bars.Sets, row.medians), append(values, row.medians...)
	}
	bars.Scale = onAxis(chart.FromZero(values...), s.unit)
	return bars, len(s.rows) > 1 && len(s.rows) <= maxCases && targets > 1 &&
		slices.ContainsFunc(values, func(v float64) bool { return v > 0 })
}
