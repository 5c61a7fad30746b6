package fio

import (
	"slices"
	"strings"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/family/storage"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// Metrics of all operations of a job, or of one kind of them.
var (
	percentiles = []string{metric.P50, metric.P90, metric.P95, metric.P99, metric.P999, metric.P9999}
	latencies   = slices.Concat(percentiles, []string{metric.Mean, metric.Min, metric.Max, metric.Operations})
	sums        = []string{metric.Throughput, metric.Rate, metric.Failed}
)

var (
	allParts = []string{metric.Reads, metric.Writes, metric.Trims}
	mixed    = []string{metric.Reads, metric.Writes}
)

// Metrics returns the metrics of the job; the operations of a user-defined job are not known in advance, so it has all.
func (*Tool) Metrics(w family.Workload) []metric.Metric {
	o, _ := w.(storage.Job)
	switch {
	case o.Name != "":
		return metricsOf(allParts, true)
	case o.Mixed():
		return withoutLatencies(metricsOf(mixed, o.Fdatasync), o)
	}
	return withoutLatencies(metricsOf(nil, o.Fdatasync), o)
}

// withoutLatencies removes the metrics that a job without latencies lacks.
func withoutLatencies(list []metric.Metric, o storage.Job) []metric.Metric {
	return slices.DeleteFunc(list, func(m metric.Metric) bool {
		return o.Untimed && (m.Unit == unit.Second || strings.HasSuffix(m.Name, metric.Operations))
	})
}

// metricsOf returns the metrics of a whole job, of its parts, and of its syncs.
func metricsOf(parts []string, syncs bool) []metric.Metric {
	list := metric.Of("", slices.Concat(sums, latencies)...)
	list = append(list, metric.Of("", metric.CPUAgents, metric.LayoutThroughput)...)
	for _, part := range parts {
		list = append(list, metric.Of(part, slices.Concat(sums, latencies)...)...)
	}
	if syncs {
		list = append(list, metric.Of(metric.Sync, latencies...)...)
	}
	return list
}
