package web

import (
	"slices"

	"github.com/knotmeter/knotmeter/internal/appfile"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/workload"
)

// What is reported of every workload, of those with an official objective, and of a part of the requests.
var (
	latencies  = []string{metric.P50, metric.P90, metric.P99, metric.P999, metric.Min, metric.Max, metric.Mean}
	connecting = []string{metric.Connect + metric.Mean, metric.TLS + metric.Mean}
	phases     = []string{metric.Service, metric.FirstByte, metric.Connect, metric.TLS}
	objective  = []string{metric.SLOLimit, metric.SLOSamples, metric.SLOAbove}
	ofPhase    = []string{metric.P50, metric.P99}
	ofKind     = []string{metric.P50, metric.P99, metric.Rate, metric.Failed}
	counts     = []string{
		metric.Rate, metric.Failed, metric.Offered, metric.ThroughputIn, metric.CPUAgents, metric.LatenessP99,
	}
)

// Metrics are those of the workload, with those of each kind of request in a mix.
func (t *Tool) Metrics(w workload.Spec) []metric.Metric {
	list := metric.Of("", slices.Concat(counts, latencies, connecting)...)
	for _, phase := range slices.Concat(phases, delays(w.Call)) {
		list = append(list, metric.Of(phase, ofPhase...)...)
	}
	if _, has := w.Call.Objective(); has {
		list = append(list, metric.Of("", objective...)...)
	}
	for _, kind := range kindsOf(w) {
		list = append(list, metric.Of(kind+"-", ofKind...)...)
	}
	return list
}

// delays are what a call has a distribution of besides its latency.
func delays(c workload.Call) []string {
	switch c.Verb {
	case "watch", "pod-deletion":
		return []string{metric.Request}
	case "pod-startup":
		return []string{metric.Request, metric.Created, metric.Scheduled, metric.Started}
	}
	return nil
}

// kindsOf are the kinds of request of a mix; none of a workload with a single one.
func kindsOf(w workload.Spec) []string {
	switch {
	case w.Kind == workload.Vault && !slices.Contains(workload.VaultOperations(), w.App.Name):
		return workload.VaultOperations()
	case w.Kind != workload.HTTP:
		return nil
	}
	d, err := appfile.Parse(w.App.Text)
	if err != nil || len(d.Requests) < 2 {
		return nil
	}
	var names []string
	for _, r := range d.Requests {
		names = append(names, r.Name)
	}
	return names
}
