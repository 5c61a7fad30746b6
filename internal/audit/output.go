package audit

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// TableOutput is the [FactTable] of a tool's output in a code block.
const TableOutput = "the output of the tools"

// copyTolerance is the relative difference allowed between a cell and the output that it was copied from, in addition
// to the last digit.
const copyTolerance = 0.01

// outputRules compare tables with the output that they summarise.
var outputRules = []Rule{
	{Name: "table-and-output", Severity: Warning, checkAll: outputMismatches,
		About: "A cell of a table has the number that the output of a tool on the same page has, for the same target, " +
			"within its last digit or 1 %.",
		Why: "One of the two is not of the test that it claims to be of: the table was not made from this output."},
}

// printedAs maps a less exact metric of a cell to the metrics of an output that it may stand for.
var printedAs = map[string][]string{
	metric.Throughput: {metric.Throughput, metric.ThroughputSent, metric.ThroughputTX, metric.ThroughputRX},
	metric.Latency:    {metric.Mean, metric.P50},
}

// A nearestPrinted is the printed number that is nearest to a cell's.
type nearestPrinted struct {
	apart  float64
	number float64
	place  string
}

// outputMismatches checks each cell that has its output on the same page.
func outputMismatches(recs *records) (found []Finding, checked int) {
	printed := map[string][]*result.Run{} // by target
	for _, r := range recs.cells[TableOutput] {
		printed[r.Target] = append(printed[r.Target], r)
	}
	if len(printed) == 0 {
		return nil, 0
	}
	for _, r := range recs.runs {
		extreme := slices.Contains([]string{AggregateMax, AggregateMin}, r.Fact(FactAggregate))
		if !published(r) || extreme || r.Fact(FactTable) == TableOutput {
			continue
		}
		for _, v := range r.Values {
			near, known := recs.nearest(r, v, printed[r.Target])
			if !known {
				continue
			}
			checked++
			if near.apart <= math.Max(digitOf(r, v.Metric)*(1+1e-9), copyTolerance*math.Abs(near.number)) {
				continue
			}
			says := sourceName(r)
			if r.Fact(FactPlace+"."+v.Metric) != "" {
				says = "The table" // in another row
			}
			found = append(found, Finding{Case: r.Case, Target: r.Target, Metric: v.Metric, Place: PlaceOf(r, v.Metric),
				Saw: fmt.Sprintf("%s says %s %s, the output in line %s %s.", says, v.Metric,
					unit.Format(v.Number, v.Unit), near.place[strings.LastIndex(near.place, ":")+1:],
					unit.Format(near.number, v.Unit))})
		}
	}
	return found, checked
}

// nearest returns the printed number of the same test that is nearest to a cell's; the cell may lie between several
// numbers that it summarises.
func (recs *records) nearest(
	cell *result.Run, v result.Value, printed []*result.Run,
) (near nearestPrinted, known bool) {
	names := printedAs[v.Metric]
	if names == nil {
		names = []string{v.Metric}
	}
	type span struct{ low, high float64 }
	spans := map[[2]string]span{}
	for _, r := range printed {
		tool := cell.Fact(FactTool)
		if !recs.sameTest(cell.Case, r.Case) || tool != "" && tool != r.Fact(FactTool) {
			continue
		}
		for _, name := range names {
			n, ok := number(r, name)
			if p, _ := r.Value(name); !ok || p.Unit != v.Unit {
				continue
			}
			key := [2]string{r.Case, name}
			s, seen := spans[key]
			if !seen {
				s = span{n, n}
			}
			s = span{math.Min(s.low, n), math.Max(s.high, n)}
			spans[key] = s
			apart := math.Abs(v.Number - n)
			if s.low <= v.Number && v.Number <= s.high {
				apart = 0
			}
			if !known || apart < near.apart {
				near, known = nearestPrinted{apart: apart, number: n, place: r.Fact(FactPlace)}, true
			}
		}
	}
	return near, known
}

// sameTest reports whether a cell of one case can summarise the output of another: the same kind of traffic, with the
// parameters that the cell names.
func (recs *records) sameTest(cell, printed string) bool {
	kind := func(name string) (kind, params string) {
		name, params, _ = strings.Cut(strings.TrimPrefix(name, string(recs.planned[name].Path)+"/"), ":")
		if strings.HasPrefix(name, "udp-stream") {
			name = "udp-stream" // only the output shows whether it was paced
		}
		return name, params
	}
	a, params := kind(cell)
	b, printedParams := kind(printed)
	bothWays := recs.planned[cell].Load.BothWays == recs.planned[printed].Load.BothWays
	return a == b && bothWays && (params == "" || params == printedParams)
}
