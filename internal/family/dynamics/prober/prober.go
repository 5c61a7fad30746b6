// Package prober is the tool of the family dynamics: it has an agent run trials, and turns their results into a
// measurement.
package prober

import (
	"context"
	"fmt"

	"github.com/knotmeter/knotmeter/internal/agent"
	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/family/dynamics"
	"github.com/knotmeter/knotmeter/internal/family/dynamics/trial"
	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
)

// A Tool measures changes with probes. It is safe for concurrent use.
type Tool struct{}

// New returns the tool.
func New() *Tool { return &Tool{} }

// Name returns the tool's name in results.
func (*Tool) Name() string { return "prober" }

// Supports returns nil for workloads of dynamics; other errors wrap result.ErrNotSupported.
func (*Tool) Supports(w family.Workload) error {
	if _, is := w.(dynamics.Workload); !is {
		return result.NotSupported(fmt.Sprintf("the prober knows changes of a network, and not %q", w))
	}
	return nil
}

// Program returns "": the tool needs only the agent.
func (*Tool) Program(family.Workload) string { return "" }

// Metrics returns the metrics of all changes, whatever the workload.
func (*Tool) Metrics(family.Workload) []metric.Metric {
	list := metric.Of("", metric.ProgrammingAPI, metric.ProgrammingDatapath, metric.CanSend, metric.Leaked,
		metric.LeakWindow, metric.Trials, metric.Censored, metric.LatenessP99)
	for _, part := range []string{metric.NewProbes, metric.TCPProbes, metric.UDPProbes} {
		list = append(list, metric.Of(part, metric.Programming, metric.ProgrammingMax, metric.LossWindow, metric.Gap,
			metric.Lost, metric.LateAnswers, metric.Max)...)
	}
	return append(list, metric.Of(metric.TCPProbes, metric.Broken)...)
}

// Run has the agent run the trials of w once.
func (t *Tool) Run(ctx context.Context, p host.Pair, w family.Workload, _ family.Times) (result.Measurement, error) {
	if err := t.Supports(w); err != nil {
		return result.Measurement{}, err
	}
	change := w.(dynamics.Workload)
	if !p.Endpoint.InPod {
		return result.Measurement{}, result.NotSupported(
			"probes go from a pod, which no place outside of the cluster is; leave vantage=here out")
	}
	request := agent.Request{Verb: dynamics.Verb, Body: dynamics.Run{Endpoint: p.Endpoint, Workload: change}}
	got, raw, err := agent.DoOnClient[trial.Result](ctx, p.Client, request)
	if err != nil {
		return result.Measurement{Raw: raw}, err
	}
	m := merge(change, got, t.Metrics(change))
	m.Raw = raw
	return m, nil
}
