package page

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/knotmeter/knotmeter/internal/audit"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

var (
	blockHeading = regexp.MustCompile(`^={3,}\s*(.*?)\s*={3,}$`)
	keyLine      = regexp.MustCompile(`^\s*([A-Za-z][\w .%-]{0,40}?)\s*:\s+(.+)$`)
	pairWord     = regexp.MustCompile(`([A-Za-z][\w.%-]*)\s*[:=]\s*([+-]?\d[\d.]*(?:[eE][+-]?\d+)?)\s*([A-Za-zµμ/%]*)`)
	changeWord   = regexp.MustCompile(`^([+-]?\d[\d.]*)\s*%\s*(?:\(.*\))?$`)
	versus       = regexp.MustCompile(`(?i)^(.+?)\s+(?:vs\.?|versus)\s+(.+)$`)
)

// readKeys reads the current line as part of a block of keys: a heading between equals signs, then lines with a metric
// and its statistics ("mean: 1.6, variance: 0.002"), or its change in percent between two targets. It returns the
// number of lines read.
func (r *reader) readKeys() int {
	text := strings.TrimSpace(r.line(r.at))
	if found := blockHeading.FindStringSubmatch(text); found != nil {
		if r.blockLine == 0 && !r.inCode {
			r.caption = r.title()
		}
		r.section = sectionOf(r.headingsAbove(r.caption))
		r.blockLine, r.target, r.baseline = r.number(r.at), found[1], ""
		for _, word := range []string{"Results of ", "Results for ", "Results ", "Result "} {
			r.target = strings.TrimPrefix(r.target, word)
		}
		if pair := versus.FindStringSubmatch(r.target); pair != nil {
			r.target, r.baseline = pair[1], pair[2]
		}
		r.blockCounted = false
		return 1
	}
	if r.blockLine == 0 {
		return 0
	}
	found := keyLine.FindStringSubmatch(text)
	if found == nil {
		r.blockLine = 0
		return 0
	}
	if r.baseline != "" {
		return r.readChange(found[1], found[2])
	}
	return r.readStatistics(found[1], found[2])
}

// addKey adds a run of the block. The block counts as a table from its first run.
func (r *reader) addKey(run result.Run) {
	if !r.blockCounted {
		r.blockCounted = true
		r.doc.Tables++
	}
	r.add(run)
}

// blockFacts returns the facts of a figure in the block.
func (r *reader) blockFacts(label string) []result.Fact {
	block := fmt.Sprintf("the block in line %d", r.blockLine)
	return factsWithValues(audit.FactPlace, r.place(r.number(r.at)), audit.FactTable, block, audit.FactRow, label)
}

// blockCase returns the case of the blocks below a heading.
func (r *reader) blockCase() string {
	if name := slug(r.heading); r.heading != "" && name != "results" {
		return name
	}
	return "results"
}

// readChange reads a change such as "+1.17 % (A is faster)". It returns the number of lines read.
func (r *reader) readChange(label, text string) int {
	found := changeWord.FindStringSubmatch(text)
	if found == nil {
		return 0
	}
	number, err := strconv.ParseFloat(found[1], 64)
	if err != nil {
		r.warn(r.number(r.at), "%q is no change in percent", short(text))
		return 1
	}
	name := r.keyMetric(label) + audit.ChangeSuffix
	facts := append(r.blockFacts(label), result.Fact{Name: audit.FactAgainst, Value: r.baseline},
		digitFact(name, lastDigit(found[1])*0.01))
	r.addKey(result.Run{Case: r.blockCase(), Target: r.target, Facts: facts,
		Values: []result.Value{{Metric: name, Unit: unit.Ratio, Number: number / 100}}})
	return 1
}

// lastDigit returns the value of one unit in the last digit of a number.
func lastDigit(number string) float64 {
	_, decimals, _ := strings.Cut(number, ".")
	return math.Pow10(-len(decimals))
}

func (r *reader) keyMetric(label string) string {
	if m := metricOf(strings.ToLower(label)); m != "" {
		return m
	}
	return slug(label)
}

// readStatistics reads a line such as "mean: 1.632200, variance: 0.002057". It returns the number of lines read.
func (r *reader) readStatistics(label, text string) int {
	pairs := pairWord.FindAllStringSubmatch(text, -1)
	if len(pairs) < 2 {
		return 0
	}
	metric := r.keyMetric(label)
	facts := r.blockFacts(label)
	var values []result.Value
	for _, p := range pairs {
		number, err := strconv.ParseFloat(p[2], 64)
		in, known := unitOf(p[3])
		if !known {
			in, _ = unitOf(r.baseUnit)
		}
		in = cmp.Or(in, scaledUnit{unit.Count, 1})
		scale, u := in.scale, in.unit
		if err != nil || !finite(number*scale) {
			r.warn(r.number(r.at), "%q is no number", p[2])
			continue
		}
		switch name := strings.ToLower(p[1]); name {
		case "mean", "avg", "average", "median", "max", "min":
			if len(values) == 0 || values[0].Metric != metric {
				aggregate := map[string]string{"avg": "mean", "average": "mean"}[name]
				facts = append(facts, result.Fact{Name: audit.FactAggregate, Value: cmp.Or(aggregate, name)})
				values = append([]result.Value{value(metric, u, number*scale)}, values...)
				facts = append(facts, digitFact(metric, lastDigit(p[2])*scale))
			}
		case "variance", "var":
			if number >= 0 {
				values = append(values, result.Value{Metric: metric + audit.SpreadSuffix,
					Unit: u, Number: math.Sqrt(number) * scale})
			}
		case "sd", "std", "stddev", "stdev":
			values = append(values, result.Value{Metric: metric + audit.SpreadSuffix, Unit: u, Number: number * scale})
		case "n", "runs", "count":
			facts = append(facts, result.Fact{Name: audit.FactRuns, Value: strconv.FormatFloat(number, 'f', -1, 64)})
		}
	}
	if len(values) > 0 {
		r.addKey(result.Run{Case: r.blockCase(), Target: r.target, Facts: facts, Values: values})
	}
	return 1
}
