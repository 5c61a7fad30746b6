package audit

import (
	"math"
	"strconv"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// The facts of runs and targets that rules understand. Whoever reads foreign results records them;
// values of quantities have a unit, as in "12.5 Gbit/s".
const (
	FactPlace       = "place"       // file:line of a cell of a table, which is published; with a dot and a metric: its
	FactTable       = "table"       // which table the cell is of
	FactDigit       = "digit"       // with a dot and a metric: what one of a cell's last digit is, in the metric's unit
	FactRow         = "row"         // the label of its row, as it stands
	FactTool        = "tool"        // what measured it, where the table has more than one
	FactRuns        = "runs"        // how many runs the number is an aggregate of
	FactAggregate   = "aggregate"   // what it is over those runs, or over the samples: mean, median, max, min
	FactSamples     = "samples"     // operations behind a percentile
	FactConcurrency = "concurrency" // requests outstanding at any time in a closed loop
	FactLoop        = "loop"        // open or closed
	FactDirection   = "direction"   // forward, reverse or both
	FactAgainst     = "against"     // the target that a change is relative to, as the table says
	FactSaid        = "said"        // what a sentence of the text does; one of the Said constants
	FactQuote       = "quote"       // the sentence
	FactLink        = "link-rate"   // of the slowest link of the path
	FactUnderlay    = "underlay-rate"
	FactLimitIOPS   = "limit-iops" // that a storage class promises at most
	FactLimitBytes  = "limit-throughput"
	FactLimitSource = "limit-source" // of both
	FactLimitNote   = "limit-note"
	FactTold        = "told"   // the names of facts that users gave
	FactListed      = "listed" // file:line where a configuration is listed as tested
)

// The facts of limits that the size of a virtual machine has.
const (
	FactMachineLink       = "vm-link-rate"
	FactMachineLinkSource = "vm-link-source"
	FactMachineIOPS       = "vm-limit-iops" // of all its disks together, without a cache of the host
	FactMachineBytes      = "vm-limit-throughput"
	FactMachineSource     = "vm-limit-source"
	FactMachineNote       = "vm-limit-note"
)

// The values of FactSaid.
const (
	SaidFigure    = "figure"    // a number in a sentence
	SaidClaim     = "claim"     // a comparison in words without a number
	SaidShare     = "share"     // a comparison in percent, without the figures that it is of
	SaidAnnounced = "announced" // figures that should follow, and do not
	SaidEmpty     = "empty"     // a cell without a figure in a table that has them
	SaidColumn    = "column"    // a column with a name and without any figure
	SaidBeyond    = "beyond"    // results beyond a stated limit
)

// The values of FactAggregate that rules know.
const (
	AggregateMean   = "mean"
	AggregateMedian = "median"
	AggregateMax    = "max"
	AggregateMin    = "min"
)

// The spread of a metric over runs is the metric's name with SpreadSuffix, a change of it that a table claims the name
// with ChangeSuffix.
const (
	SpreadSuffix = ".sd"
	ChangeSuffix = ".change"
)

// count reads a fact that is a whole number above 0; 0 means that there is none.
func count(facts []result.Fact, name string) int {
	n, err := strconv.Atoi(result.FactOf(facts, name))
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// quantity reads a fact that has a unit, from the first list that has it; 0 means that there is none, or
// an unlimited one.
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

// published says whether a run is a cell of a table or a sentence, and not a run of ours.
func published(r *result.Run) bool { return r.Fact(FactPlace) != "" }

// placeOf is where a metric of a run stands.
func placeOf(r *result.Run, metric string) string {
	if place := r.Fact(FactPlace + "." + metric); place != "" {
		return place
	}
	return r.Fact(FactPlace)
}

// outstanding is how many requests were under way at any time in the closed loop of a run; 0 means
// that it is none, or not known.
func outstanding(r measured) float64 {
	loop := r.Fact(FactLoop)
	if loop == "open" {
		return 0
	}
	for _, name := range []string{FactConcurrency, "workers"} {
		if n := count(r.Facts, name); n > 0 {
			return float64(n)
		}
	}
	if n := r.of.Load.Outstanding; n > 0 || loop != "closed" {
		return float64(n)
	}
	return 1
}

// number returns a metric of a run, and whether it has a finite one.
func number(r *result.Run, metric string) (float64, bool) {
	v, ok := r.Value(metric)
	return v.Number, ok && !math.IsNaN(v.Number) && !math.IsInf(v.Number, 0)
}
