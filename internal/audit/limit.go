package audit

import (
	"slices"
	"strings"

	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// A Resource is something of which a provider, the lab or a user states the most that there is.
type Resource string

// The resources.
const (
	LinkRate         Resource = "link"
	VolumeIOPS       Resource = "volume IOPS"
	VolumeBandwidth  Resource = "volume bandwidth"
	MachineIOPS      Resource = "VM disk IOPS" // of all disks of a VM together
	MachineBandwidth Resource = "VM disk bandwidth"
)

// Resources are all of them, in the order in which they are shown.
func Resources() []Resource {
	var list []Resource
	for _, r := range resources {
		list = append(list, r.name)
	}
	return list
}

// StatedUnit returns the unit in which a fact of this name states a limit that only providers and users know. Ok is
// false for other facts, and for the rate that the lab itself sets.
func StatedUnit(fact string) (u unit.Unit, ok bool) {
	for _, r := range resources {
		for _, s := range r.statements {
			if s.fact == fact && fact != FactUnderlay {
				return r.unit, true
			}
		}
	}
	return "", false
}

// A Limit is the most of a resource.
type Limit struct {
	Resource Resource
	Most     float64 // of a link in one direction
	Unit     unit.Unit
	Source   string // where the figure is from; "" if nothing says so
	Note     string // what it leaves out; "" if nothing
	fact     string
}

// A statement is the name of a fact that has a limit, and of those with its source and what it leaves out.
type statement struct{ fact, source, note string }

// resources are what limits are known of, with the facts that state them, the best first.
var resources = []struct {
	name       Resource
	unit       unit.Unit
	statements []statement
	metrics    []string // that it bounds
}{
	{LinkRate, unit.BitPerSecond, []statement{
		{fact: FactLink}, {fact: FactUnderlay}, {fact: FactMachineLink, source: FactMachineLinkSource},
	}, carried},
	{VolumeIOPS, unit.PerSecond, []statement{{FactLimitIOPS, FactLimitSource, FactLimitNote}}, operations},
	{VolumeBandwidth, unit.BitPerSecond, []statement{{FactLimitBytes, FactLimitSource, FactLimitNote}}, moved},
	{MachineIOPS, unit.PerSecond, []statement{{FactMachineIOPS, FactMachineSource, FactMachineNote}}, operations},
	{MachineBandwidth, unit.BitPerSecond, []statement{{FactMachineBytes, FactMachineSource, FactMachineNote}}, moved},
}

// The metrics that a link, and those that a disk limits.
var (
	carried = []string{metric.Throughput, metric.ThroughputTX, metric.ThroughputRX, metric.ThroughputSent,
		metric.LoadThroughput}
	operations = []string{metric.IOPS, metric.Rate}
	moved      = []string{metric.Throughput, "bandwidth"}
)

// Sources of limits that no fact names.
const (
	sourceTold = "told by --fact"
	sourceLab  = "set by the lab"
)

// A Held is a metric of a run with the limit that holds for it.
type Held struct {
	Limit
	Metric   string
	Value    float64
	BothWays bool // it counts both directions of a link, and may be twice the limit
}

// Bound is the most that the metric can be.
func (h Held) Bound() float64 {
	if h.BothWays {
		return 2 * h.Most
	}
	return h.Most
}

// looserThan reports whether another limit of the same metric is smaller.
func (h Held) looserThan(other Held) bool { return other.Metric == h.Metric && other.Most < h.Most }

// Hold returns the metrics of a run that limits hold for. What facts of the run state counts before those of its
// target. Those of links hold for what leaves a node, those of disks for what is on a volume; where a case does not
// tell, as in published tables, both do.
func Hold(of result.Case, r *result.Run, facts []result.Fact) []Held {
	var held []Held
	for _, resource := range resources {
		onLink := resource.name == LinkRate
		if onLink && (of.Load.Volume || targets.Path(of.Path).Same()) || !onLink && !of.Load.Volume && of.Path != "" {
			continue
		}
		var l Limit
		for _, s := range resource.statements {
			if l = s.limit(resource.unit, r.Facts, facts); l.Most > 0 {
				break
			}
		}
		if l.Most == 0 {
			continue
		}
		l.Resource = resource.name
		both := of.Load.BothWays || r.Fact(FactDirection) == "both"
		for _, name := range resource.metrics {
			if v, ok := number(r, name); ok {
				twice := onLink && (name == metric.LoadThroughput || both && name == metric.Throughput)
				held = append(held, Held{l, name, v, twice})
			}
		}
	}
	return held
}

// limit is what the first list of facts with the statement says; its Most is 0 if none has it.
func (s statement) limit(want unit.Unit, lists ...[]result.Fact) Limit {
	for _, facts := range lists {
		most := quantity(s.fact, want, facts)
		if most == 0 {
			continue
		}
		l := Limit{Most: most, Unit: want, fact: s.fact}
		told := strings.Split(result.FactOf(facts, FactTold), ", ")
		switch {
		case slices.Contains(told, s.fact):
			l.Source = sourceTold
		case s.fact == FactUnderlay:
			l.Source = sourceLab
		case s.source != "":
			l.Source, l.Note = result.FactOf(facts, s.source), result.FactOf(facts, s.note)
		}
		return l
	}
	return Limit{}
}
