package page

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/knotmeter/knotmeter/internal/audit"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// vegetaLine matches a line of vegeta report -type=text: a name, the fields in brackets, and as many values.
var vegetaLine = regexp.MustCompile(
	`^(Requests|Duration|Latencies|Bytes In|Bytes Out|Success)\s+\[([\w, ]+)\]\s+(\S.*)$`)

// vegetaMetrics maps the fields of the lines that are read to metrics. Bytes depend on the request: a GET sends none.
var vegetaMetrics = map[string]map[string]string{
	"Requests": {"total": metric.Operations, "rate": metric.Offered, "throughput": metric.Rate},
	"Latencies": {"min": metric.Min, "mean": metric.Mean, "50": metric.P50, "90": metric.P90, "95": metric.P95,
		"99": metric.P99, "max": metric.Max},
	"Success": {"ratio": metric.Success},
}

// readVegeta reads a report of vegeta. It returns its number of lines; 0 if there is none.
func (r *reader) readVegeta() int {
	n := 0
	var values []result.Value
	for ; ; n++ {
		found := vegetaLine.FindStringSubmatch(strings.TrimSpace(r.line(r.at + n)))
		if found == nil || n == 0 && found[1] != "Requests" {
			break
		}
		fields, texts := strings.Split(found[2], ", "), strings.Split(found[3], ", ")
		if len(fields) != len(texts) {
			r.warn(r.number(r.at+n), "%s of vegeta has %d values for %d fields", found[1], len(texts), len(fields))
			continue
		}
		for i, field := range fields {
			name := vegetaMetrics[found[1]][field]
			if name == "" {
				continue
			}
			v, ok := vegetaValue(name, strings.TrimSpace(texts[i]))
			if !ok {
				r.addUnread(r.number(r.at+n), found[1]+" "+field, texts[i], noFigure)
				continue
			}
			values = append(values, v)
		}
	}
	if len(values) == 0 {
		return 0
	}
	r.doc.Tables++
	r.section = sectionOf(r.headingsAbove(r.caption))
	r.add(result.Run{
		Case: "http", Target: cmp.Or(r.heading, r.firstHeading, result.Unknown), Tool: "vegeta", Values: values,
		Facts: factsWithValues(audit.FactPlace, r.place(r.number(r.at)), audit.FactTable,
			fmt.Sprintf("the report of vegeta in line %d", r.number(r.at)), audit.FactRow, "Requests",
			audit.FactTool, "vegeta", audit.FactRuns, "1"),
	})
	return n
}

// vegetaValue parses a value: a duration as Go writes it, a percentage or a number.
func vegetaValue(name, text string) (result.Value, bool) {
	if known, _ := metric.Find(name); known.Unit == unit.Second {
		d, err := time.ParseDuration(text)
		return value(name, unit.Second, d.Seconds()), err == nil
	}
	scale, u := 1.0, unit.PerSecond
	switch name {
	case metric.Success:
		scale, u = 0.01, unit.Ratio
	case metric.Operations:
		u = unit.Count
	}
	number, err := strconv.ParseFloat(strings.TrimSuffix(text, "%"), 64)
	return value(name, u, number*scale), err == nil && finite(number)
}
