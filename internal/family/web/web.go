// Package web is the tool that measures whatever is asked over HTTP, API servers and applications, with
// this program's own generator: it starts one agent on the client, gives it the endpoint and what to ask,
// and turns its result into a measurement.
package web

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"os"

	"github.com/knotmeter/knotmeter/internal/agent"
	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/family/api"
	"github.com/knotmeter/knotmeter/internal/family/api/kubeapi"
	"github.com/knotmeter/knotmeter/internal/family/app"
	"github.com/knotmeter/knotmeter/internal/family/app/vault"
	"github.com/knotmeter/knotmeter/internal/family/app/webapp"
	"github.com/knotmeter/knotmeter/internal/host"
	httpload "github.com/knotmeter/knotmeter/internal/load/http"
	netload "github.com/knotmeter/knotmeter/internal/load/net"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/userfile"
)

// A Tool asks. It is safe for concurrent use, though concurrent runs disturb each other.
type Tool struct {
	getenv   func(string) string
	readFile func(string) ([]byte, error)
}

// New returns the tool. Secrets of descriptions come from the environment and files of this machine.
func New() *Tool { return &Tool{getenv: os.Getenv, readFile: readFile} }

func readFile(name string) ([]byte, error) { return userfile.Read(name, userfile.Limit) }

// Name is what results say.
func (t *Tool) Name() string { return "web" }

// Supports says that what is asked over HTTP is supported, and nothing else.
func (t *Tool) Supports(w family.Workload) error {
	_, err := take(w, family.Times{})
	return err
}

// asked is what is asked, of an API server or of an application.
type asked struct {
	family.Workload
	family.Pace
	family.Times
	call api.Call     // zero: not an API server
	app  app.Workload // zero: not an application
}

func take(w family.Workload, t family.Times) (asked, error) {
	switch of := w.(type) {
	case api.Workload:
		return asked{Workload: w, Pace: of.Pace, Times: t, call: of.Call}, nil
	case app.Workload:
		return asked{Workload: w, Pace: of.Pace, Times: t, app: of}, nil
	}
	return asked{}, result.NotSupported(fmt.Sprintf("the generator of requests over HTTP has no workload %q", w))
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
	if why := p.Endpoint.Lacks[lack(a.call)]; why != "" {
		return result.Measurement{}, result.NotSupported(why)
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

// lack is by what name an endpoint tells that it can not be asked for a call.
func lack(c api.Call) string {
	if c.Resource == "namespace" {
		return "namespaces"
	}
	return ""
}

// plan is the request to the agent. What it draws is drawn from the workload's name, so that every target is asked the
// same.
func (t *Tool) plan(p host.Pair, a asked) (agent.Request, error) {
	if a.Rate > 0 {
		if err := netload.CheckMedian(a.Rate, a.Warmup, a.Window); err != nil {
			return agent.Request{}, err
		}
	}
	switch a.app.Of {
	case app.HTTP:
		c := webapp.Config{Seed: seed(a.Workload), Pace: a.Pace, Times: a.Times}
		if err := t.describe(&c, a.app); err != nil {
			return agent.Request{}, fmt.Errorf("%s: %w", a, err)
		}
		return agent.Request{Verb: webapp.Verb, Body: c}, nil
	case app.Vault:
		if p.Endpoint.URL == "" {
			return agent.Request{}, result.NotSupported("the target knows of no Vault")
		}
		return agent.Request{Verb: vault.Verb, Body: vault.Config{
			Endpoint: p.Endpoint, Ask: a.app.Name, Seed: seed(a.Workload), Pace: a.Pace, Times: a.Times,
		}}, nil
	}
	w := api.Workload{Call: a.call, Pace: a.Pace}
	return agent.Request{Verb: kubeapi.Verb, Body: kubeapi.Config{Endpoint: p.Endpoint, Workload: w, Times: a.Times}}, nil
}

func seed(w family.Workload) uint64 {
	sum := sha256.Sum256([]byte(w.Traits().Kind))
	return binary.LittleEndian.Uint64(sum[:])
}

// describe reads a description with what it names on this machine.
func (t *Tool) describe(c *webapp.Config, w app.Workload) (err error) {
	if c.Description, err = w.Description(); err != nil {
		return err
	}
	if ca := c.Description.CA; ca != "" {
		if c.CA, err = t.readFile(ca); err != nil {
			return fmt.Errorf("%w: ca: %w", webapp.ErrDescription, err)
		}
	}
	c.Secrets, err = c.Description.ReadSecrets(t.getenv, t.readFile)
	return err
}

// evidence is the request without its secrets, and what the agent said.
func evidence(p host.Pair, request agent.Request, said *agent.Transcript) []result.File {
	return []result.File{
		{Name: "commands.txt", Data: fmt.Appendf(nil, "%s: %s < client.request.json\n", p.Client.Name(), host.Agent)},
		{Name: "client.request.json", Data: request.Record()},
		{Name: "client.events.ndjson", Data: said.Bytes()},
	}
}
