package table

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

// keys reads a block: a heading between signs of equality, then lines of a metric with what it is over
// the runs ("mean: 1.6, variance: 0.002"), or with a change in percent between two targets.
func (r *reader) keys() int {
	text := strings.TrimSpace(r.line(r.at))
	if found := blockHeading.FindStringSubmatch(text); found != nil {
		r.blockAt, r.target, r.against = r.at+1, found[1], ""
		for _, word := range []string{"Results of ", "Results for ", "Results ", "Result "} {
			r.target = strings.TrimPrefix(r.target, word)
		}
		if pair := versus.FindStringSubmatch(r.target); pair != nil {
			r.target, r.against = pair[1], pair[2]
		}
		r.counted = false
		return 1
	}
	if r.blockAt == 0 {
		return 0
	}
	found := keyLine.FindStringSubmatch(text)
	if found == nil {
		r.blockAt = 0
		return 0
	}
	if r.against != "" {
		return r.change(found[1], found[2])
	}
	return r.summary(found[1], found[2])
}

// addKey adds a figure of the block, which is a table from its first figure on.
func (r *reader) addKey(run result.Run) {
	if !r.counted {
		r.counted = true
		r.doc.Tables++
	}
	r.add(run)
}

// blockFacts are those of a figure in the block.
func (r *reader) blockFacts(label string) []result.Fact {
	return known(audit.FactPlace, r.place(r.at+1), audit.FactTable, fmt.Sprintf("the block in line %d", r.blockAt),
		audit.FactRow, label)
}

// blockCase names what the blocks of a section measure.
func (r *reader) blockCase() string {
	if name := slug(r.heading); r.heading != "" && name != "results" {
		return name
	}
	return "results"
}

// change reads "+1.17 % (A is faster)".
func (r *reader) change(label, text string) int {
	found := changeWord.FindStringSubmatch(text)
	if found == nil {
		return 0
	}
	number, err := strconv.ParseFloat(found[1], 64)
	if err != nil {
		r.warn(r.at+1, "%q is no change in percent", short(text))
		return 1
	}
	facts := append(r.blockFacts(label), result.Fact{Name: audit.FactAgainst, Value: r.against})
	r.addKey(result.Run{Case: r.blockCase(), Target: r.target, Facts: facts,
		Values: []result.Value{{Metric: r.keyMetric(label) + audit.ChangeSuffix, Unit: unit.Ratio, Number: number / 100}}})
	return 1
}

func (r *reader) keyMetric(label string) string {
	if m := metricOf(strings.ToLower(label)); m != "" {
		return m
	}
	return slug(label)
}

// summary reads "mean: 1.632200, variance: 0.002057".
func (r *reader) summary(label, text string) int {
	pairs := pairWord.FindAllStringSubmatch(text, -1)
	if len(pairs) < 2 {
		return 0
	}
	metric := r.keyMetric(label)
	facts := r.blockFacts(label)
	var values []result.Value
	for _, p := range pairs {
		number, err := strconv.ParseFloat(p[2], 64)
		scale, u := r.blockUnit(p[3])
		if err != nil || !finite(number*scale) {
			r.warn(r.at+1, "%q is no number", p[2])
			continue
		}
		switch name := strings.ToLower(p[1]); name {
		case "mean", "avg", "average", "median", "max", "min":
			if len(values) == 0 || values[0].Metric != metric {
				aggregate := map[string]string{"avg": "mean", "average": "mean"}[name]
				facts = append(facts, result.Fact{Name: audit.FactAggregate, Value: cmp.Or(aggregate, name)})
				values = append([]result.Value{value(metric, u, number*scale)}, values...)
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

// blockUnit is the unit beside a number, or the one that the text says all its numbers have.
func (r *reader) blockUnit(beside string) (float64, unit.Unit) {
	for _, name := range []string{beside, r.baseUnit} {
		if scale, u, ok := unitOf(name); ok {
			return scale, u
		}
	}
	return 1, unit.Count
}
