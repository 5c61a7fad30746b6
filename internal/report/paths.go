package report

import (
	"cmp"
	"html/template"
	"math"
	"slices"
	"strings"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/report/chart"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// A paths is the view of paths x targets: for each workload a table with a line for each path.
type paths struct {
	Columns  []string
	Sections []pathSection
	Letters  bool // some lines have groups
	Bounds   bool // some lines have a reference
	LeftOut  int  // lines that there was no room for
}

type pathSection struct {
	Title, About string
	Rows         []pathRow
}

type pathRow struct {
	Path, Bound, Conclusion string
	Cells                   []pathCell
}

// Width is the number of columns of the table.
func (p *paths) Width() int {
	if p.Bounds {
		return len(p.Columns) + 2
	}
	return len(p.Columns) + 1
}

// A pathCell is the median of a target, with the letters of its group.
type pathCell struct {
	Text, Letters, Class, Word string
	Best                       bool
	Bar                        template.HTML
	Marks                      []finding
}

// pathTitles are the workloads of the view in its order; what is not among them follows.
var pathTitles = []pair{
	{"tcp-stream", "Throughput"}, {"service tcp-stream", "Throughput through a Service"},
	{"tcp-rr", "Latency on a long connection"}, {"tcp-crr", "Latency with a connection for each request"},
}

// pathOrder is the order of the lines.
var pathOrder = []string{"node-node", "pod-node/same", "pod-node/other", "pod-pod/same",
	"pod-pod/other", "node-svc/same", "node-svc/other", "pod-svc/same", "pod-svc/other"}

func (b *builder) paths() *paths {
	in := map[[2]string]compare.Group{}
	for _, g := range b.in.Comparison.Groups {
		in[[2]string{g.Case, g.Metric}] = g
	}
	verdicts := b.verdicts()
	p := &paths{Columns: columns(b.in.Comparison)}
	room := allowance(pathsRoom)
	at := index[string]{}
	for _, m := range b.measured {
		path, workload := splitCase(m.Case)
		row := b.pathRow(p, m, in[[2]string{m.Case, m.Metric}], verdicts)
		row.Path = path
		if !room.take(row) {
			p.LeftOut++
			continue
		}
		key := workload
		if workload == "tcp-stream" && strings.Contains(path, "-svc") {
			key = "service tcp-stream"
		}
		i, first := at.of(key)
		if first {
			about := workload + " " + m.Metric + ", " + betterText(m.Better)
			p.Sections = append(p.Sections, pathSection{Title: key, About: about})
		}
		p.Sections[i].Rows = append(p.Sections[i].Rows, row)
		p.Letters = p.Letters || row.Conclusion != ""
		p.Bounds = p.Bounds || row.Bound != ""
	}
	if len(p.Sections) == 0 {
		return nil
	}
	p.sort()
	return p
}

// splitCase takes a case apart: pod-pod/other/tcp-rr is tcp-rr on pod-pod/other.
func splitCase(name string) (path, workload string) {
	if i := strings.LastIndex(name, "/"); i >= 0 {
		return name[:i], name[i+1:]
	}
	return name, name
}

// sort puts sections and lines into their order, and names the sections.
func (p *paths) sort() {
	title := func(key string) int { return slices.IndexFunc(pathTitles, func(t pair) bool { return t.Name == key }) }
	last := func(i int) uint { return uint(i) } // what is in no list, -1, comes last
	slices.SortStableFunc(p.Sections, func(a, b pathSection) int {
		return cmp.Compare(last(title(a.Title)), last(title(b.Title)))
	})
	for i := range p.Sections {
		s := &p.Sections[i]
		if k := title(s.Title); k >= 0 {
			s.Title = pathTitles[k].Value
		}
		slices.SortStableFunc(s.Rows, func(a, b pathRow) int {
			return cmp.Compare(last(slices.Index(pathOrder, a.Path)), last(slices.Index(pathOrder, b.Path)))
		})
	}
}

// verdicts are the rows against the baseline of the whole comparison, by case, metric and target.
func (b *builder) verdicts() map[[3]string]compare.Row {
	rows := map[[3]string]compare.Row{}
	for _, r := range b.in.Comparison.Comparisons {
		if r.Baseline == b.in.Comparison.Baseline || !b.in.Comparison.Paired {
			rows[[3]string{r.Case, r.Metric, r.Target}] = r
		}
	}
	return rows
}

func (b *builder) pathRow(p *paths, m measured, g compare.Group, verdicts map[[3]string]compare.Row) pathRow {
	row := pathRow{Conclusion: g.Conclusion}
	if m.Bound != nil {
		row.Bound = format(m.Bound.Median, m.Unit) + noLimit(*m.Bound)
	}
	members := map[string]compare.Member{}
	best, apart := "", false // the letters of the first, and whether the data tell others apart from it
	for i, member := range g.Members {
		if i == 0 {
			best = member.Letters
		}
		members[member.Target] = member
		apart = apart || !strings.Contains(member.Letters, best[:min(1, len(best))])
	}
	most := math.NaN()
	for _, n := range m.Medians {
		if n.Known() && !(most > float64(n)) {
			most = float64(n)
		}
	}
	for _, target := range p.Columns {
		c := pathCell{Text: "-"}
		median, known := m.Medians[target]
		if member, ok := members[target]; ok {
			median, known = member.Median, true
			c.Letters = member.Letters
			c.Best = apart && strings.ContainsAny(member.Letters, best)
		}
		if known {
			c.Text, c.Bar = unit.Format(float64(median), m.Unit), chart.Bar(float64(median)/most)
			c.Marks = b.findings.marks(m.Case, target, target, m.Metric)
		}
		if r, ok := verdicts[[3]string{m.Case, m.Metric, target}]; ok {
			c.Class, c.Word = class(r), word(r)
		}
		row.Cells = append(row.Cells, c)
	}
	return row
}
