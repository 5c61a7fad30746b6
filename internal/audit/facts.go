package audit

import (
	"math"
	"strconv"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// Facts of runs and targets that rules use. Importers record them; quantities have a unit, as in "12.5 Gbit/s".
const (
	FactPlace        = "place"       // file:line of a published cell; with a dot and a metric: of that metric
	FactTable        = "table"       // table of the cell
	FactSection      = "section"     // headings above the table: figures of different sections are of different tests
	FactDigit        = "digit"       // with a dot and a metric: 1 in the cell's last digit, in the metric's unit
	FactRow          = "row"         // label of the cell's row, verbatim
	FactTool         = "tool"        // tool of the row, if the table has more than one
	FactRuns         = "runs"        // number of runs that the number aggregates
	FactAggregate    = "aggregate"   // aggregate over those runs, or over the samples: mean, median, max, min
	FactInterval     = "interval"    // confidence interval of the number, as the table states it
	FactSamples      = "samples"     // operations behind a percentile
	FactConcurrency  = "concurrency" // outstanding requests of a closed loop
	FactLoop         = "loop"        // open or closed
	FactDirection    = "direction"   // forward, reverse or both
	FactAgainst      = "against"     // target that a change is relative to, as the table states
	FactGap          = "gap"         // what of a table has no figure: GapCell or GapColumn
	FactLink         = "link-rate"   // rate of the slowest link of the path
	FactUnderlay     = "underlay-rate"
	FactLimitIOPS    = "limit-iops" // maximum that a storage class promises
	FactLimitBytes   = "limit-throughput"
	FactLimitSource  = "limit-source" // source of both
	FactLimitNote    = "limit-note"
	FactStatedByUser = "told"   // names of the facts that users gave
	FactListed       = "listed" // file:line that lists a configuration as tested
)

// Facts of limits that depend on the size of a virtual machine.
const (
	FactMachineLink       = "vm-link-rate"
	FactMachineLinkSource = "vm-link-source"
	FactMachineIOPS       = "vm-limit-iops" // of all its disks together, without a cache of the host
	FactMachineBytes      = "vm-limit-throughput"
	FactMachineSource     = "vm-limit-source"
	FactMachineNote       = "vm-limit-note"
)

// The values of FactGap. The fact row has the label of the cell or the column.
const (
	GapCell   = "cell"
	GapColumn = "column" // one with a name
)

// Values of FactAggregate that rules use.
const (
	AggregateMean   = "mean"
	AggregateMedian = "median"
	AggregateMax    = "max"
	AggregateMin    = "min"
)

// A metric's name with SpreadSuffix is its standard deviation over runs; with ChangeSuffix it is a claimed change.
const (
	SpreadSuffix = ".sd"
	ChangeSuffix = ".change"
)

// count returns a fact that is a positive integer; 0 if it is missing or invalid.
func count(facts []result.Fact, name string) int {
	n, err := strconv.Atoi(result.FactOf(facts, name))
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// quantity returns a fact in the wanted unit, from the first list that has it; 0 if it is missing or unlimited.
func quantity(name string, want unit.Unit, lists ...[]result.Fact) float64 {
	for _, facts := range lists {
		text := result.FactOf(facts, name)
		if text == "" {
			continue
		}
		if v, u, err := unit.Parse(text); err == nil && u == want && v > 0 && !math.IsInf(v, 0) {
			return v
		}
	}
	return 0
}

// published reports whether a run is from a text, and was not measured here.
func published(r *result.Run) bool { return r.Fact(FactPlace) != "" }

// PlaceOf returns the place of a metric of a run.
func PlaceOf(r *result.Run, metric string) string {
	if place := r.Fact(FactPlace + "." + metric); place != "" {
		return place
	}
	return r.Fact(FactPlace)
}

// outstanding returns the number of outstanding requests in the closed loop of a run; 0 for other runs, or if unknown.
func outstanding(r measuredRun) float64 {
	loop := r.Fact(FactLoop)
	if loop == "open" {
		return 0
	}
	for _, name := range []string{FactConcurrency, "workers"} {
		if n := count(r.Facts, name); n > 0 {
			return float64(n)
		}
	}
	if n := r.planned.Load.Outstanding; n > 0 || loop != "closed" {
		return float64(n)
	}
	return 1
}

// number returns a metric of a run, and whether it is finite.
func number(r *result.Run, metric string) (float64, bool) {
	v, ok := r.Value(metric)
	return v.Number, ok && !math.IsNaN(v.Number) && !math.IsInf(v.Number, 0)
}
