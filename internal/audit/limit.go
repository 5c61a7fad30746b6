package audit

import (
	"slices"
	"strings"

	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// A Resource is something with a maximum that a provider, the lab or a user states.
type Resource string

// The resources.
const (
	LinkRate         Resource = "link"
	VolumeIOPS       Resource = "volume IOPS"
	VolumeBandwidth  Resource = "volume bandwidth"
	MachineIOPS      Resource = "VM disk IOPS" // of all disks of a VM together
	MachineBandwidth Resource = "VM disk bandwidth"
)

// Resources returns all resources, in the order in which they are shown.
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

// StatedByUser returns the names of the facts that a user stated of a target.
func StatedByUser(facts []result.Fact) []string {
	return strings.Split(result.FactOf(facts, FactStatedByUser), ", ")
}

// A Limit is the maximum of a resource.
type Limit struct {
	Resource Resource
	Most     float64 // of a link: in one direction
	Unit     unit.Unit
	Source   string // source of the figure; "" if unknown
	Note     string // restrictions of the figure; "" if none
	fact     string
}

// A statement names the fact that states a limit, and the facts with its source and restrictions.
type statement struct{ fact, source, note string }

// resources lists the resources with the facts that state their limits, the most reliable first.
var resources = []struct {
	name       Resource
	unit       unit.Unit
	statements []statement
	metrics    []string // metrics that it limits
}{
	{LinkRate, unit.BitPerSecond, []statement{
		{fact: FactLink}, {fact: FactUnderlay}, {fact: FactMachineLink, source: FactMachineLinkSource},
	}, linkMetrics},
	{VolumeIOPS, unit.PerSecond, []statement{{FactLimitIOPS, FactLimitSource, FactLimitNote}}, iopsMetrics},
	{VolumeBandwidth, unit.BitPerSecond, []statement{{FactLimitBytes, FactLimitSource, FactLimitNote}}, bandwidthMetrics},
	{MachineIOPS, unit.PerSecond, []statement{{FactMachineIOPS, FactMachineSource, FactMachineNote}}, iopsMetrics},
	{MachineBandwidth, unit.BitPerSecond, []statement{{FactMachineBytes, FactMachineSource, FactMachineNote}},
		bandwidthMetrics},
}

// Metrics that links and disks limit.
var (
	linkMetrics = []string{metric.Throughput, metric.ThroughputTX, metric.ThroughputRX, metric.ThroughputSent,
		metric.LoadThroughput}
	iopsMetrics      = []string{metric.IOPS, metric.Rate}
	bandwidthMetrics = []string{metric.Throughput, "bandwidth"}
)

// Sources of limits without a source fact.
const (
	sourceUser = "told by --fact"
	sourceLab  = "set by the lab"
)

// An AppliedLimit is a metric of a run with the limit that applies to it.
type AppliedLimit struct {
	Limit
	Metric   string
	Value    float64
	BothWays bool // the metric counts both directions of a link, and may be twice the limit
}

// Bound returns the maximum of the metric.
func (h AppliedLimit) Bound() float64 {
	if h.BothWays {
		return 2 * h.Most
	}
	return h.Most
}

// exceedsOther reports whether another limit of the same metric is smaller.
func (h AppliedLimit) exceedsOther(other AppliedLimit) bool {
	return other.Metric == h.Metric && other.Most < h.Most
}

// AppliedLimits returns the metrics of a run that limits apply to. Facts of the run take precedence over those of its
// target. Limits of links apply to traffic that leaves a node, limits of disks to volumes; if a case does not tell
// which it is, as in published tables, both apply.
func AppliedLimits(of result.Case, r *result.Run, facts []result.Fact) []AppliedLimit {
	var applied []AppliedLimit
	for _, resource := range resources {
		onLink := resource.name == LinkRate
		if onLink && (of.Load.Volume || result.Path(of.Path).Same()) || !onLink && !of.Load.Volume && of.Path != "" {
			continue
		}
		var l Limit
		for _, s := range resource.statements {
			if l = s.read(resource.unit, r.Facts, facts); l.Most > 0 {
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
				applied = append(applied, AppliedLimit{l, name, v, twice})
			}
		}
	}
	return applied
}

// read returns the limit of the first list of facts with the statement; its Most is 0 if none has it.
func (s statement) read(want unit.Unit, lists ...[]result.Fact) Limit {
	for _, facts := range lists {
		most := quantity(s.fact, want, facts)
		if most == 0 {
			continue
		}
		l := Limit{Most: most, Unit: want, fact: s.fact}
		switch {
		case slices.Contains(StatedByUser(facts), s.fact):
			l.Source = sourceUser
		case s.fact == FactUnderlay:
			l.Source = sourceLab
		case s.source != "":
			l.Source, l.Note = result.FactOf(facts, s.source), result.FactOf(facts, s.note)
		}
		return l
	}
	return Limit{}
}
