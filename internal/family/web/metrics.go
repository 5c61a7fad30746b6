package web

import (
	"slices"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/family/api"
	"github.com/knotmeter/knotmeter/internal/family/app"
	"github.com/knotmeter/knotmeter/internal/family/app/vault"
	"github.com/knotmeter/knotmeter/internal/metric"
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
func (t *Tool) Metrics(w family.Workload) []metric.Metric {
	a, _ := take(w, family.Times{})
	list := metric.Of("", slices.Concat(counts, latencies, connecting)...)
	for _, phase := range slices.Concat(phases, delays(a.call)) {
		list = append(list, metric.Of(phase, ofPhase...)...)
	}
	if _, has := a.call.Objective(); has {
		list = append(list, metric.Of("", objective...)...)
	}
	for _, kind := range kindsOf(a.app) {
		list = append(list, metric.Of(kind+"-", ofKind...)...)
	}
	return list
}

// delays are what a call has a distribution of besides its latency.
func delays(c api.Call) []string {
	switch c.Verb {
	case "watch", "pod-deletion":
		return []string{metric.Request}
	case "pod-startup":
		return []string{metric.Request, metric.Created, metric.Scheduled, metric.Started}
	}
	return nil
}

// kindsOf are the kinds of request of a mix; none of a workload with a single one.
func kindsOf(w app.Workload) []string {
	switch {
	case w.Of == app.Vault && !slices.Contains(vault.Operations, w.Name):
		return vault.Operations
	case w.Of != app.HTTP:
		return nil
	}
	d, err := w.Description()
	if err != nil || len(d.Requests) < 2 {
		return nil
	}
	var names []string
	for _, r := range d.Requests {
		names = append(names, r.Name)
	}
	return names
}
