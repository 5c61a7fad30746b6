// Package web is the tool that measures whatever is asked over HTTP, API servers and applications, with
// this program's own generator: it starts one agent on the client, gives it the endpoint and what to ask,
// and turns its result into a measurement.
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

// A Tool asks. It is safe for concurrent use, though concurrent runs disturb each other.
type Tool struct{ from family.Environment }

// New returns the tool. Secrets of descriptions come from the environment and files of this machine.
func New() *Tool {
	return &Tool{family.Environment{Getenv: os.Getenv, ReadFile: func(name string) ([]byte, error) {
		return userfile.Read(name, userfile.Limit)
	}}}
}

// Name is what results say.
func (t *Tool) Name() string { return "web" }

// A workload is what the tool carries out: whatever an agent can ask over HTTP.
type workload interface {
	family.Workload
	Asked() family.Asked
	// Ask is what an agent is asked to do at an endpoint: the verb, and what comes with it.
	Ask(e host.Endpoint, t family.Times, from family.Environment) (verb string, body any, err error)
}

// asking is a workload as it is asked in a run.
type asking struct {
	workload
	family.Asked
	family.Times
}

func take(w family.Workload, t family.Times) (asking, error) {
	of, is := w.(workload)
	if !is {
		return asking{}, result.NotSupported(fmt.Sprintf("the generator of requests over HTTP has no workload %q", w))
	}
	return asking{of, of.Asked(), t}, nil
}

// Supports says that what is asked over HTTP is supported, and nothing else.
func (t *Tool) Supports(w family.Workload) error {
	_, err := take(w, family.Times{})
	return err
}

// Program is none: the agent is this program.
func (t *Tool) Program(family.Workload) string { return "" }

// Run does w once.
func (t *Tool) Run(
	ctx context.Context, p host.Pair, w family.Workload, times family.Times,
) (result.Measurement, error) {
	a, err := take(w, times)
	if err != nil {
		return result.Measurement{}, err
	}
	request, err := t.plan(p, a)
	if err != nil {
		return result.Measurement{}, err
	}
	var said agent.Transcript
	answers, err := agent.Do[httpload.Result](ctx, p.Client, request, said.Hear)
	raw := evidence(p, request, &said)
	if err != nil {
		return result.Measurement{Raw: raw}, err
	}
	m, err := merge(a, answers)
	m.Raw = raw
	return m, err
}

// plan is the request to the agent.
func (t *Tool) plan(p host.Pair, a asking) (agent.Request, error) {
	if a.Rate > 0 {
		if err := netload.CheckMedian(a.Rate, a.Warmup, a.Window); err != nil {
			return agent.Request{}, err
		}
	}
	verb, body, err := a.Ask(p.Endpoint, a.Times, t.from)
	return agent.Request{Verb: verb, Body: body}, err
}

// evidence is the request without its secrets, and what the agent said.
func evidence(p host.Pair, request agent.Request, said *agent.Transcript) []result.File {
	return []result.File{
		{Name: "commands.txt", Data: fmt.Appendf(nil, "%s: %s < client.request.json\n", p.Client.Name(), host.Agent)},
		{Name: "client.request.json", Data: request.Record()},
		{Name: "client.events.ndjson", Data: said.Bytes()},
	}
}
