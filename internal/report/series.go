package report

import (
	"encoding/json"
	"html/template"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/knotmeter/knotmeter/internal/doc"
	"github.com/knotmeter/knotmeter/internal/report/chart"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// seriesData is the JSON that the page's script reads. Numbers are in the named unit.
type seriesData struct {
	Unit    string       `json:"unit"`
	Step    float64      `json:"step"` // seconds
	Targets []string     `json:"targets"`
	Styles  []int        `json:"styles"` // styles of the targets' lines, from 1
	Runs    []seriesLine `json:"runs"`
}

type seriesLine struct {
	Target int             `json:"t"` // index of the target
	Block  int             `json:"b"`
	Values json.RawMessage `json:"v"`
}

// The maximum numbers of lines of a target, and of values of a line, in the series of a case.
const (
	maxLines  = 10
	maxValues = 100
)

// A caseSeries holds the series of the runs of a case on all targets that have the same name, unit and step.
type caseSeries struct {
	name    string
	unit    unit.Unit
	step    float64
	targets []targetSeries
	sampled bool
}

type targetSeries struct {
	name  string
	index int // of the target, from 0
	lines []runSeries
}

type runSeries struct {
	block  int
	values []float64
}

// series draws a quantity over the time within the runs of a case, for scripts and for media without; none if it has
// none.
func (b *builder) series(m caseResult) []doc.Element {
	r := b.collectSeries(m)
	if len(r.targets) == 0 {
		return nil
	}
	longest, most, bucket := 0, 0.0, 1
	for _, target := range r.targets {
		for _, l := range target.lines {
			longest, most = max(longest, len(l.values)), max(most, slices.Max(l.values))
		}
	}
	name, scale := unitPrefix(most, r.unit)
	data := seriesData{Unit: name, Step: r.step}
	var notes []string
	if longest > maxValues {
		bucket = (2*longest + maxValues - 1) / maxValues
		data.Step = r.step * float64(bucket) / 2
		notes = append(notes, "Drawn with the least and the greatest of several steps.")
	}
	if r.sampled {
		notes = append(notes, "Some of the runs, evenly chosen.")
	}
	t := chart.Traces{Step: data.Step, Longest: r.step * float64(longest)}
	t.Height, t.Count, t.Labels = exploratoryHeight, len(r.targets), axisLabels(r.unit)
	var all []float64
	var names []doc.Label
	for i, target := range r.targets {
		set, style := chart.TraceColumn{Index: target.index}, chart.StyleNumber(target.index)
		for _, l := range target.lines {
			values := decimate(l.values, bucket)
			set.Runs, all = append(set.Runs, values), append(all, values...)
			data.Runs = append(data.Runs, seriesLine{i, l.block, jsonNumbers(values, scale)})
		}
		t.Sets, names = append(t.Sets, set), append(names, doc.Label{Name: target.name, Style: style})
		data.Targets, data.Styles = append(data.Targets, target.name), append(data.Styles, style)
	}
	t.Scale = chart.Linear(all...)
	text, err := json.Marshal(data) // it escapes <, > and &, and cannot fail: every number is finite
	if err != nil {
		return nil
	}
	f := b.names.figure(t, r.name+" within the runs of "+m.Case+": a line for each run, 0 to "+
		unit.Format(t.Longest, unit.Second)+" in each column", "series", m.Case, r.name)
	f.Title, f.Note, f.Caption = m.Case, r.name+", "+name, strings.Join(notes, " ")
	f.Columns, f.Data = names, template.JS(text)
	return []doc.Element{f}
}

// collectSeries returns the series of the runs of a case that have the name, unit and step of the first one found.
func (b *builder) collectSeries(m caseResult) caseSeries {
	var r caseSeries
	for i, target := range b.columns {
		var lines []runSeries
		for _, run := range b.runs[m.Case][target] {
			for _, s := range run.Series {
				if run.state != chart.Counts || !(s.Step > 0) || len(s.Values) == 0 || hasMarks(s) {
					continue
				}
				if r.name == "" {
					r.name, r.unit, r.step = s.Name, s.Unit, s.Step
				}
				if s.Name == r.name && s.Unit == r.unit && s.Step == r.step {
					lines = append(lines, runSeries{run.Block, s.Values})
					break
				}
			}
		}
		if len(lines) == 0 {
			continue
		}
		if n := len(lines); n > maxLines {
			r.sampled = true
			for i := range maxLines {
				lines[i] = lines[i*n/maxLines]
			}
			lines = lines[:maxLines]
		}
		r.targets = append(r.targets, targetSeries{target, i, lines})
	}
	return r
}

// decimate replaces each bucket of values by its smallest and its largest, in chronological order, so that no peak or
// gap is lost.
func decimate(values []float64, bucket int) []float64 {
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

// jsonNumbers returns values divided by scale, to four digits, as a JSON list; null for those that are not finite.
func jsonNumbers(values []float64, scale float64) json.RawMessage {
	list := make([]string, len(values))
	for i, v := range values {
		list[i] = "null"
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			list[i] = fourDigits(v / scale)
		}
	}
	return json.RawMessage("[" + strings.Join(list, ",") + "]")
}

// fourDigits formats v to four digits, without final zeros.
func fourDigits(v float64) string {
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(v, 'e', 3, 64), 64)
	if err != nil {
		return formatFloat(v)
	}
	return formatFloat(rounded)
}
