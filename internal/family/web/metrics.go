package web

import (
	"slices"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/metric"
)

// The metrics of every workload, of workloads with an official objective, and of parts of the requests.
var (
	latencies    = []string{metric.P50, metric.P90, metric.P99, metric.P999, metric.Min, metric.Max, metric.Mean}
	connecting   = []string{metric.Connect + metric.Mean, metric.TLS + metric.Mean}
	phases       = []string{metric.Service, metric.FirstByte, metric.Connect, metric.TLS}
	objective    = []string{metric.SLOLimit, metric.SLOSamples, metric.SLOAbove}
	phaseMetrics = []string{metric.P50, metric.P99}
	kindMetrics  = []string{metric.P50, metric.P99, metric.Rate, metric.Failed}
	counts       = []string{
		metric.Rate, metric.Failed, metric.Offered, metric.ThroughputIn, metric.CPUAgents, metric.LatenessP99,
	}
)

// Metrics returns the metrics of the workload and of each kind of request in its mix.
func (t *Tool) Metrics(w family.Workload) []metric.Metric {
	a, _ := planRun(w, family.Times{})
	list := metric.Of("", slices.Concat(counts, latencies, connecting, a.Values)...)
	for _, phase := range slices.Concat(phases, a.Parts) {
		list = append(list, metric.Of(phase, phaseMetrics...)...)
	}
	if a.MostClients > 0 {
		list = append(list, metric.Of("", metric.Clients)...)
	}
	if a.Objective != nil {
		list = append(list, metric.Of("", objective...)...)
	}
	for _, kind := range a.Kinds {
		list = append(list, metric.Of(kind+"-", kindMetrics...)...)
	}
	return list
}
