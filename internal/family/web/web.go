// Package web is the tool that measures servers over HTTP, API servers and applications, with this program's own
// generator: it starts one agent on the client, sends it the endpoint and the workload, and turns its result into a
// measurement.
package web

import (
	"context"
	"fmt"
	"os"

	"github.com/knotmeter/knotmeter/internal/agent"
	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/load/httpload"
	"github.com/knotmeter/knotmeter/internal/load/netload"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/userfile"
)

// A Tool measures servers over HTTP. It is safe for concurrent use, though concurrent runs disturb each other.
type Tool struct{ from family.Environment }

// New returns the tool. It reads the secrets of descriptions from the environment and files of this machine.
func New() *Tool {
	return &Tool{family.Environment{Getenv: os.Getenv, ReadFile: func(name string) ([]byte, error) {
		return userfile.Read(name, userfile.Limit)
	}}}
}

// Name returns the tool's name in results.
func (t *Tool) Name() string { return "web" }

// A workload is a workload that an agent can run over HTTP.
type workload interface {
	family.Workload
	HTTPTraits() family.HTTPTraits
	// AgentRequest returns the verb and body of the request to an agent, for an endpoint.
	AgentRequest(e host.Endpoint, t family.Times, from family.Environment) (verb string, body any, err error)
}

// A plannedRun is a workload with its HTTP traits and the times of a run.
type plannedRun struct {
	workload
	family.HTTPTraits
	family.Times
}

// planRun returns a run of w, or an error that wraps result.ErrNotSupported.
func planRun(w family.Workload, t family.Times) (plannedRun, error) {
	own, is := w.(workload)
	if !is {
		return plannedRun{}, result.NotSupported(fmt.Sprintf("the generator of requests over HTTP has no workload %q", w))
	}
	return plannedRun{own, own.HTTPTraits(), t}, nil
}

// Supports returns nil for workloads over HTTP; other errors wrap result.ErrNotSupported.
func (t *Tool) Supports(w family.Workload) error {
	_, err := planRun(w, family.Times{})
	return err
}

// Program returns "": the tool needs only the agent.
func (t *Tool) Program(family.Workload) string { return "" }

// Run runs w once, on an agent on the client.
func (t *Tool) Run(
	ctx context.Context, p host.Pair, w family.Workload, times family.Times,
) (result.Measurement, error) {
	planned, err := planRun(w, times)
	if err != nil {
		return result.Measurement{}, err
	}
	request, err := t.agentRequest(p, planned)
	if err != nil {
		return result.Measurement{}, err
	}
	got, raw, err := agent.DoOnClient[httpload.Result](ctx, p.Client, request)
	if err != nil {
		return result.Measurement{Raw: raw}, err
	}
	m, err := merge(planned, got)
	m.Raw = raw
	return m, err
}

// agentRequest returns the request to the agent. It is an error if the run is too short for a median.
func (t *Tool) agentRequest(p host.Pair, r plannedRun) (agent.Request, error) {
	if r.Rate > 0 {
		if err := netload.CheckMedian(r.Rate, r.Warmup, r.Window); err != nil {
			return agent.Request{}, err
		}
	}
	verb, body, err := r.AgentRequest(p.Endpoint, r.Times, t.from)
	return agent.Request{Verb: verb, Body: body}, err
}
