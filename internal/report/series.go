package report

import (
	"encoding/json"
	"html/template"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/knotmeter/knotmeter/internal/report/chart"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// A seriesSection is a quantity over the time within the runs of a case.
type seriesSection struct {
	File             string
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
	mostLines  = 10
	mostValues = 100
)

func (b *builder) series() folded[seriesSection] {
	var list folded[seriesSection]
	for i, m := range b.drawn() {
		if s, ok := b.seriesSection(m, i+1); ok {
			list.add(m.Role, s)
		}
	}
	return list
}

// A recorded is the series of the runs of a case on all targets, that have the same name and step.
type recorded struct {
	name    string
	unit    unit.Unit
	step    float64
	targets []recordedTarget
	sampled bool
}

type recordedTarget struct {
	name  string
	rank  int
	lines []recordedLine
}

type recordedLine struct {
	block  int
	values []float64
}

func (b *builder) seriesSection(m measured, number int) (seriesSection, bool) {
	r := b.record(m)
	if len(r.targets) == 0 {
		return seriesSection{}, false
	}
	s := seriesSection{Case: m.Case, Name: r.name, Sampled: r.sampled}
	longest, most := 0, 0.0
	for _, target := range r.targets {
		for _, l := range target.lines {
			longest, most = max(longest, len(l.values)), max(most, slices.Max(l.values))
		}
	}
	bucket := 1
	if longest > mostValues {
		bucket, s.Thinned = (2*longest+mostValues-1)/mostValues, true
	}
	name, scale := prefixed(most, r.unit)
	s.Unit = name
	data := seriesData{Unit: name, Step: r.step}
	if bucket > 1 {
		data.Step = r.step * float64(bucket) / 2
	}
	t := chart.Traces{Step: data.Step, Longest: r.step * float64(longest)}
	t.Height, t.Count, t.Labels = exploratoryHeight, len(r.targets), axisLabels(r.unit)
	var all []float64
	for i, target := range r.targets {
		set := chart.TraceColumn{Rank: target.rank}
		for _, l := range target.lines {
			values := thinned(l.values, bucket)
			set.Runs, all = append(set.Runs, values), append(all, values...)
			data.Runs = append(data.Runs, seriesLine{i, l.block, numbers(values, scale)})
		}
		t.Sets = append(t.Sets, set)
		data.Targets, data.Styles = append(data.Targets, target.name), append(data.Styles, chart.Series(target.rank))
		s.Figure.Columns = append(s.Figure.Columns, figureColumn{Name: target.name, Key: chart.Key(target.rank)})
	}
	t.Scale = chart.Linear(all...)
	t.Caption = chart.Caption{ID: "t" + strconv.Itoa(number), Title: r.name + " within the runs of " + m.Case,
		Desc: strings.Join(data.Targets, ", ") + ": a line for each run, 0 to " + unit.Format(t.Longest, unit.Second) +
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
		var lines []recordedLine
		for _, run := range b.runs[m.Case][target] {
			for _, s := range run.Series {
				if run.state != chart.Counts || !(s.Step > 0) || len(s.Values) == 0 || marked(s) {
					continue
				}
				if r.name == "" {
					r.name, r.unit, r.step = s.Name, s.Unit, s.Step
				}
				if s.Name == r.name && s.Unit == r.unit && s.Step == r.step {
					lines = append(lines, recordedLine{run.Block, s.Values})
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
				lines[i] = lines[i*n/mostLines]
			}
			lines = lines[:mostLines]
		}
		r.targets = append(r.targets, recordedTarget{target, rank, lines})
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
