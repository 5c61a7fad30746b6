package compare

import (
	"maps"
	"slices"

	"github.com/knotmeter/knotmeter/internal/audit"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/stats"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// A Limit is the maximum of a resource that a provider, the lab or a user states for a target, with the median of the
// case that comes nearest to it. It is not a verdict.
type Limit struct {
	Target   string         `json:"target"`
	Resource audit.Resource `json:"resource"`
	Unit     unit.Unit      `json:"unit"`             // of limit and median
	Limit    Number         `json:"limit"`            // of a link: in one direction
	Source   string         `json:"source,omitempty"` // empty if unknown
	Note     string         `json:"note,omitempty"`   // restrictions of the limit
	// Binding marks the smaller one of the limits of a volume and its virtual machine, if both are known.
	Binding bool   `json:"binding"`
	Case    string `json:"case"`
	Metric  string `json:"metric"`
	// BothWays reports whether the metric counts both directions of a link.
	BothWays bool   `json:"both_ways,omitempty"`
	Median   Number `json:"median"`
	Share    Number `json:"share"` // of the limit, or of twice the limit for both directions; 1 is all of it
}

// limits returns the limits of measured resources that facts of targets and runs state, by target in the order of the
// plan.
func (t *runTable) limits(facts map[string][]result.Fact) []Limit {
	var list []Limit
	for _, x := range t.e.Targets {
		nearest := map[audit.Resource]Limit{}
		for _, rc := range t.e.Cases {
			for _, l := range t.limitsOf(rc, x.Name, facts[x.Name]) {
				if had, seen := nearest[l.Resource]; !seen || l.Share > had.Share {
					nearest[l.Resource] = l
				}
			}
		}
		for _, pair := range [][2]audit.Resource{
			{audit.VolumeIOPS, audit.MachineIOPS}, {audit.VolumeBandwidth, audit.MachineBandwidth},
		} {
			a, hasA := nearest[pair[0]]
			b, hasB := nearest[pair[1]]
			if hasA && hasB {
				a.Binding, b.Binding = a.Limit <= b.Limit, b.Limit < a.Limit
				nearest[pair[0]], nearest[pair[1]] = a, b
			}
		}
		for _, resource := range audit.Resources() {
			if l, known := nearest[resource]; known {
				list = append(list, l)
			}
		}
	}
	return list
}

// limitsOf returns the limits that apply to the metrics of a case on a target.
func (t *runTable) limitsOf(rc result.Case, target string, facts []result.Fact) []Limit {
	type key struct {
		resource audit.Resource
		metric   string
	}
	var list []Limit
	at, values := map[key]int{}, map[key][]float64{}
	runs := t.valid(rc.Name, target)
	for _, block := range slices.Sorted(maps.Keys(runs)) {
		for _, h := range audit.AppliedLimits(rc, runs[block], facts) {
			if v, _ := runs[block].Value(h.Metric); v.Better != metric.Higher || v.Unit != h.Unit {
				continue // an offered load, such as the rate of a sender, does not use the resource
			}
			k := key{h.Resource, h.Metric}
			if _, seen := at[k]; !seen {
				at[k] = len(list)
				list = append(list, Limit{Target: target, Resource: h.Resource, Unit: h.Unit, Limit: Number(h.Most),
					Source: h.Source, Note: h.Note, Case: rc.Name, Metric: h.Metric, BothWays: h.BothWays})
			}
			values[k] = append(values[k], h.Value)
		}
	}
	for k, i := range at {
		l := &list[i]
		l.Median = Number(stats.Median(values[k]))
		l.Share = l.Median / l.Limit
		if l.BothWays {
			l.Share /= 2
		}
	}
	return list
}
