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
	"github.com/knotmeter/knotmeter/internal/appfile"
	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/kubeapi"
	httpload "github.com/knotmeter/knotmeter/internal/load/http"
	netload "github.com/knotmeter/knotmeter/internal/load/net"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/userfile"
	"github.com/knotmeter/knotmeter/internal/vault"
	"github.com/knotmeter/knotmeter/internal/webapp"
	"github.com/knotmeter/knotmeter/internal/workload"
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
func (t *Tool) Supports(w workload.Spec) error {
	if !w.Kind.Web() {
		return result.NotSupported(fmt.Sprintf("the generator of requests over HTTP has no workload %q", w.Kind))
	}
	return nil
}

// Program is none: the agent is this program.
func (t *Tool) Program(workload.Spec) string { return "" }

// Run does w once.
func (t *Tool) Run(ctx context.Context, p host.Pair, w workload.Spec) (result.Measurement, error) {
	if err := t.Supports(w); err != nil {
		return result.Measurement{}, err
	}
	if why := p.Endpoint.Lacks[lack(w)]; why != "" {
		return result.Measurement{}, result.NotSupported(why)
	}
	w, err := w.Resolved()
	if err != nil {
		return result.Measurement{}, err
	}
	request, err := t.plan(p, w)
	if err != nil {
		return result.Measurement{}, err
	}
	var said agent.Transcript
	asked, err := agent.Do[httpload.Result](ctx, p.Client, request, said.Hear)
	raw := evidence(p, request, &said)
	if err != nil {
		return result.Measurement{Raw: raw}, err
	}
	m, err := merge(w, asked)
	m.Raw = raw
	return m, err
}

// lack is by what name an endpoint tells that it can not be asked for a workload.
func lack(w workload.Spec) string {
	if w.Kind == workload.API && w.Call.Resource == "namespace" {
		return "namespaces"
	}
	return ""
}

// plan is the request to the agent. What it draws is drawn from the workload's name, so that every target is asked the same.
func (t *Tool) plan(p host.Pair, w workload.Spec) (agent.Request, error) {
	if err := netload.CheckMedian(w); err != nil {
		return agent.Request{}, err
	}
	switch w.Kind {
	case workload.Vault:
		if p.Endpoint.URL == "" {
			return agent.Request{}, result.NotSupported("the target knows of no Vault")
		}
		return agent.Request{Verb: vault.Verb, Body: vault.Config{Endpoint: p.Endpoint, Workload: w, Seed: seed(w)}}, nil
	case workload.API:
		return agent.Request{Verb: kubeapi.Verb, Body: kubeapi.Config{Endpoint: p.Endpoint, Workload: w}}, nil
	}
	c := webapp.Config{Workload: w, Seed: seed(w)}
	if err := t.describe(&c, w.App.Text); err != nil {
		return agent.Request{}, fmt.Errorf("%s: %w", w, err)
	}
	return agent.Request{Verb: webapp.Verb, Body: c}, nil
}

func seed(w workload.Spec) uint64 {
	sum := sha256.Sum256([]byte(w.String()))
	return binary.LittleEndian.Uint64(sum[:])
}

// describe reads a description with what it names on this machine.
func (t *Tool) describe(c *webapp.Config, text string) (err error) {
	if c.Description, err = appfile.Parse(text); err != nil {
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
