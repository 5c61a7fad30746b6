package fio

import (
	"slices"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/tool"
	"github.com/knotmeter/knotmeter/internal/unit"
	"github.com/knotmeter/knotmeter/internal/workload"
)

// sums are the metrics of a part of the operations, under its prefix.
func sums() []tool.Metric {
	return []tool.Metric{
		{Name: "throughput", Unit: unit.BitPerSecond, Better: result.Higher},
		{Name: "rate", Unit: unit.PerSecond, Better: result.Higher},
		{Name: "failed", Unit: unit.Ratio, Better: result.Lower},
	}
}

// latencies are those of its latency.
func latencies() []tool.Metric {
	var list []tool.Metric
	for _, q := range quantiles() {
		list = append(list, tool.Metric{Name: q.metric, Unit: unit.Second, Better: result.Lower})
	}
	for _, name := range []string{"mean", "min", "max"} {
		list = append(list, tool.Metric{Name: name, Unit: unit.Second, Better: result.Lower})
	}
	return append(list, tool.Metric{Name: "operations", Unit: unit.Count})
}

// others are those of the whole job.
func others() []tool.Metric {
	return []tool.Metric{{Name: "cpu-agents", Unit: unit.Ratio}, {Name: "layout-throughput", Unit: unit.BitPerSecond}}
}

// valueOf is one of a metric of a part.
func valueOf(prefix, name string, number float64) result.Value {
	all := slices.Concat(sums(), latencies(), others())
	m := all[slices.IndexFunc(all, func(m tool.Metric) bool { return m.Name == name })]
	m.Name = prefix + name
	return m.Value(number)
}

// Metrics are those of the job; what a job of the user's own does is not known before.
func (*Tool) Metrics(w workload.Spec) []tool.Metric {
	own := w.IO.Name != ""
	list := slices.Concat(sums(), latencies(), others())
	add := func(prefix string, metrics []tool.Metric) {
		for _, m := range metrics {
			m.Name = prefix + m.Name
			list = append(list, m)
		}
	}
	for _, prefix := range []string{ofReads, ofWrites, ofTrims} {
		if own || w.IO.Mixed() && prefix != ofTrims {
			add(prefix, slices.Concat(sums(), latencies()))
		}
	}
	if own || w.IO.Fdatasync {
		add(ofSyncs, latencies())
	}
	return list
}
