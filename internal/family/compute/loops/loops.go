// Package loops is the tool that measures with this program's own loops: it asks the agent for a run and makes a
// measurement of its report.
package loops

import (
	"context"
	"fmt"
	"time"

	"github.com/knotmeter/knotmeter/internal/agent"
	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/family/compute"
	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/load/computeload"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
)

// A Tool measures with the loops of this program. It is safe for concurrent use, though concurrent runs disturb each
// other.
type Tool struct{}

// New returns the tool.
func New() *Tool { return &Tool{} }

// Name returns the name for --tool.
func (*Tool) Name() string { return "loops" }

// Supports returns an error that wraps result.ErrNotSupported for kinds that another program defines, and for workloads
// of other families.
func (*Tool) Supports(w family.Workload) error {
	c, is := w.(compute.Workload)
	switch {
	case !is:
		return result.NotSupported(fmt.Sprintf("the loops know what a machine computes, and not %q", w))
	case c.Kind.ByOthers():
		return result.NotSupported(fmt.Sprintf("%s is defined by another program, which has to carry it out", c.Kind))
	}
	return nil
}

// Program returns "": the tool needs only the agent.
func (*Tool) Program(family.Workload) string { return "" }

// Metrics returns the metrics of the workload.
func (*Tool) Metrics(w family.Workload) []metric.Metric {
	c, _ := w.(compute.Workload)
	return metricsOf(c)
}

// Run carries out w once.
func (t *Tool) Run(
	ctx context.Context, p host.Pair, w family.Workload, times family.Times,
) (result.Measurement, error) {
	if err := t.Supports(w); err != nil {
		return result.Measurement{}, err
	}
	c := w.(compute.Workload)
	request := agent.Request{Verb: computeload.Verb, Body: config(c, times)}
	got, raw, err := agent.DoOnClient[computeload.Report](ctx, p.Client, request)
	if err == nil && got.Unsupported != "" {
		err = result.NotSupported(got.Unsupported)
	}
	if err != nil {
		return result.Measurement{Raw: raw}, err
	}
	m, err := merge(run{Workload: c, Window: times.Window, CPULimit: p.CPULimit, Report: got})
	m.Raw = raw
	return m, err
}

// leastAlone is the shortest time for which one CPU is measured alone.
const leastAlone = 100 * time.Millisecond

// config returns the agent's part of a run.
func config(w compute.Workload, times family.Times) computeload.Config {
	c := computeload.Config{
		Loop: string(w.Kind), CPUs: w.CPUs.Number(), Core: w.CPUs == compute.OneCore, Set: w.Set, Pages: string(w.Pages),
		Warmup: times.Warmup, Window: times.Window, Seed: times.Seed,
	}
	if w.CPUs != compute.OneCPU {
		c.Alone = max(time.Duration(compute.AloneShare*float64(times.Window)), leastAlone)
	}
	return c
}
