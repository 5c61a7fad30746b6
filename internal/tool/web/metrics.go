package web

import (
	"slices"

	"github.com/knotmeter/knotmeter/internal/appfile"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/tool"
	"github.com/knotmeter/knotmeter/internal/unit"
	"github.com/knotmeter/knotmeter/internal/workload"
)

// Metrics are those of the workload, with those of each kind of request in a mix.
func (t *Tool) Metrics(w workload.Spec) []tool.Metric {
	list := slices.Concat(counts(), times("", "p50", "p90", "p99", "p99.9", "min", "max", "mean"))
	for _, part := range []string{"service", "first-byte", "connect", "tls"} {
		list = append(list, times(part+"-", "p50", "p99")...)
	}
	list = append(list, times("", "connect-mean", "tls-mean")...)
	if _, has := w.Call.Objective(); has {
		list = append(list, objective()...)
	}
	for _, seen := range delays(w.Call) {
		list = append(list, times(seen+"-", "p50", "p99")...)
	}
	for _, kind := range kindsOf(w) {
		list = append(list, times(kind+"-", "p50", "p99")...)
		for _, m := range counts()[:2] {
			m.Name = kind + "-" + m.Name
			list = append(list, m)
		}
	}
	return list
}

// counts are metrics of every workload that are no times; the first two are of each kind of request too.
func counts() []tool.Metric {
	return []tool.Metric{
		{Name: "rate", Unit: unit.PerSecond, Better: result.Higher},
		{Name: "failed", Unit: unit.Ratio, Better: result.Lower},
		{Name: "offered", Unit: unit.PerSecond},
		{Name: "throughput", Unit: unit.BitPerSecond},
		{Name: "cpu-agents", Unit: unit.Ratio},
		{Name: "lateness-p99", Unit: unit.Second},
	}
}

// objective are those of a call that has an official limit.
func objective() []tool.Metric {
	return []tool.Metric{{Name: "slo-limit", Unit: unit.Second}, {Name: "slo-samples", Unit: unit.Count}, {Name: "slo-above", Unit: unit.Count}}
}

// times are metrics in which less is better.
func times(prefix string, names ...string) []tool.Metric {
	var list []tool.Metric
	for _, name := range names {
		list = append(list, tool.Metric{Name: prefix + name, Unit: unit.Second, Better: result.Lower})
	}
	return list
}

// delays are what a call has a distribution of besides its latency.
func delays(c workload.Call) []string {
	switch c.Verb {
	case "watch", "pod-deletion":
		return []string{"request"}
	case "pod-startup":
		return []string{"request", "created", "scheduled", "started"}
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
