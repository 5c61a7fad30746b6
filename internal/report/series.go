package report

import (
	"encoding/json"
	"html/template"
	"math"
	"strconv"
	"strings"

	"github.com/knotmeter/knotmeter/internal/report/chart"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// A seriesSection is a quantity over the time within the runs of a case.
type seriesSection struct {
	Case, Name, Unit string
	Figure           figure      // as it is printed, and seen without script
	Data             template.JS // what the script makes zoomable
	Thinned          bool        // the least and the greatest of several steps stand for them
	Sampled          bool        // not every run is there
}

// seriesData is what the page's script reads. Numbers are in the unit that is named.
type seriesData struct {
	Unit    string       `json:"unit"`
	Step    float64      `json:"step"` // seconds
	Targets []string     `json:"targets"`
	Styles  []int        `json:"styles"` // of the targets' lines, from 1
	Runs    []seriesLine `json:"runs"`
}

type seriesLine struct {
	Target int             `json:"t"` // index
	Block  int             `json:"b"`
	Values json.RawMessage `json:"v"`
}

// The most lines of a target, and values of a line, in the series of a case.
const (
	mostLines  = 15
	mostValues = 150
)

func (b *builder) series() folded[seriesSection] {
	var list folded[seriesSection]
	room := allowance(seriesRoom)
	for i, m := range b.measured {
		if s, ok := b.seriesSection(m, i+1); ok {
			list.add(&room, m.Role, s)
		}
	}
	return list
}

// A recorded is the series of the runs of a case on all targets, that have the same name and step.
type recorded struct {
	name    string
	unit    unit.Unit
	step    float64
	targets []string
	styles  []int
	lines   [][]result.Series // by target
	blocks  [][]int
	sampled bool
}

func (b *builder) seriesSection(m measured, number int) (seriesSection, bool) {
	r := b.record(m)
	if len(r.targets) == 0 {
		return seriesSection{}, false
	}
	s := seriesSection{Case: m.Case, Name: r.name, Sampled: r.sampled}
	longest, most := 0, 0.0
	for _, lines := range r.lines {
		for _, l := range lines {
			longest = max(longest, len(l.Values))
			for _, v := range l.Values {
				most = max(most, v)
			}
		}
	}
	bucket := 1
	if longest > mostValues {
		bucket, s.Thinned = (2*longest+mostValues-1)/mostValues, true
	}
	name, scale := prefixed(most, r.unit)
	s.Unit = name
	data := seriesData{Unit: name, Step: r.step, Targets: r.targets, Styles: r.styles}
	if bucket > 1 {
		data.Step = r.step * float64(bucket) / 2
	}
	t := chart.Traces{Step: data.Step, Longest: r.step * float64(longest)}
	t.Height, t.Count, t.Labels = exploratoryHeight, len(r.targets), axisLabels(r.unit)
	var all []float64
	for i, lines := range r.lines {
		var set [][]float64
		for k, l := range lines {
			values := thinned(l.Values, bucket)
			set, all = append(set, values), append(all, values...)
			data.Runs = append(data.Runs, seriesLine{i, r.blocks[i][k], numbers(values, scale)})
		}
		t.Sets = append(t.Sets, set)
		s.Figure.Columns = append(s.Figure.Columns, figureColumn{Name: r.targets[i], Key: chart.Key(r.styles[i] - 1)})
	}
	t.Scale = chart.Linear(all...)
	t.Caption = chart.Caption{ID: "t" + strconv.Itoa(number), Title: r.name + " within the runs of " + m.Case,
		Desc: strings.Join(r.targets, ", ") + ": a line for each run, 0 to " + unit.Format(t.Longest, unit.Second) +
			" in each column"}
	s.Figure.Axis, s.Figure.Plot = t.YAxis(), t.Plot()
	// json.Marshal escapes <, > and &; what it writes here cannot fail, for every number is finite.
	text, err := json.Marshal(data)
	s.Data = template.JS(text)
	return s, err == nil
}

// record collects the series of a case: the first one that its runs have.
func (b *builder) record(m measured) recorded {
	var r recorded
	for rank, target := range b.columns {
		var lines []result.Series
		var blocks []int
		for _, run := range b.runs[m.Case][target] {
			for _, s := range run.Series {
				if run.state != chart.Counts || !(s.Step > 0) || len(s.Values) == 0 {
					continue
				}
				if r.name == "" {
					r.name, r.unit, r.step = s.Name, s.Unit, s.Step
				}
				if s.Name == r.name && s.Unit == r.unit && s.Step == r.step {
					lines, blocks = append(lines, s), append(blocks, run.Block)
					break
				}
			}
		}
		if len(lines) == 0 {
			continue
		}
		if n := len(lines); n > mostLines {
			r.sampled = true
			for i := range mostLines {
				lines[i], blocks[i] = lines[i*n/mostLines], blocks[i*n/mostLines]
			}
			lines, blocks = lines[:mostLines], blocks[:mostLines]
		}
		r.targets, r.styles = append(r.targets, target), append(r.styles, chart.Series(rank))
		r.lines, r.blocks = append(r.lines, lines), append(r.blocks, blocks)
	}
	return r
}

// thinned replaces each bucket of values by its least and its greatest, in the order in which they
// came, so that no peak or gap is lost.
func thinned(values []float64, bucket int) []float64 {
	if bucket <= 1 {
		return values
	}
	var kept []float64
	for from := 0; from < len(values); from += bucket {
		part := values[from:min(from+bucket, len(values))]
		least, greatest := 0, 0
		for i, v := range part {
			if v < part[least] {
				least = i
			}
			if v > part[greatest] {
				greatest = i
			}
		}
		kept = append(kept, part[min(least, greatest)], part[max(least, greatest)])
	}
	return kept
}

// numbers are values in a unit with a prefix, to four digits, as a list of JSON; null where there is none.
func numbers(values []float64, scale float64) json.RawMessage {
	list := make([]string, len(values))
	for i, v := range values {
		list[i] = "null"
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			list[i] = shortest(v / scale)
		}
	}
	return json.RawMessage("[" + strings.Join(list, ",") + "]")
}

// shortest is v to four digits, without zeros at their end.
func shortest(v float64) string {
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(v, 'e', 3, 64), 64)
	if err != nil {
		return float(v)
	}
	return float(rounded)
}
