// Package web is the tool that measures whatever is asked over HTTP, API servers and applications, with
// this program's own generator: it starts one agent on the client, gives it the endpoint and what to ask,
// and turns its result into a measurement.
package web

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"

	"github.com/knotmeter/knotmeter/internal/agent"
	"github.com/knotmeter/knotmeter/internal/appfile"
	"github.com/knotmeter/knotmeter/internal/host"
	netload "github.com/knotmeter/knotmeter/internal/load/net"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/tool/agents"
	"github.com/knotmeter/knotmeter/internal/userfile"
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
	spec, err := t.plan(p, w)
	if err != nil {
		return result.Measurement{}, err
	}
	out := agents.NewOutput()
	err = agents.Run(ctx, p.Client, spec, out)
	raw := evidence(p, spec, out)
	if err != nil {
		return result.Measurement{Raw: raw}, err
	}
	asked := out.Result().Asked
	if asked == nil {
		return result.Measurement{Raw: raw}, fmt.Errorf("the agent on %s answered something else than it was asked", p.Client.Name())
	}
	m, err := merge(spec.Workload, *asked)
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

// plan is the agent's specification. What it draws is drawn from the workload's name, so that every target
// is asked the same.
func (t *Tool) plan(p host.Pair, w workload.Spec) (agent.Spec, error) {
	w, err := w.Resolved()
	if err != nil {
		return agent.Spec{}, err
	}
	if err := netload.CheckMedian(w); err != nil {
		return agent.Spec{}, err
	}
	ask := &agent.Ask{Endpoint: p.Endpoint, Seed: seed(w)}
	if w.Kind == workload.Vault && p.Endpoint.URL == "" {
		return agent.Spec{}, result.NotSupported("the target knows of no Vault")
	}
	if w.Kind == workload.HTTP {
		if err := t.describe(ask, w.App.Text); err != nil {
			return agent.Spec{}, fmt.Errorf("%s: %w", w, err)
		}
	}
	return agent.Spec{Version: agent.SpecVersion, Workload: w, Ask: ask}, nil
}

func seed(w workload.Spec) uint64 {
	sum := sha256.Sum256([]byte(w.String()))
	return binary.LittleEndian.Uint64(sum[:])
}

// describe reads a description with what it names on this machine.
func (t *Tool) describe(ask *agent.Ask, text string) error {
	d, err := appfile.Parse(text)
	if err != nil {
		return err
	}
	ask.App = &d
	if d.CA != "" {
		if ask.CA, err = t.readFile(d.CA); err != nil {
			return fmt.Errorf("%w: ca: %w", webapp.ErrDescription, err)
		}
	}
	ask.Secrets, err = d.ReadSecrets(t.getenv, t.readFile)
	return err
}

// evidence is the specification without its secrets, and what the agent said.
func evidence(p host.Pair, spec agent.Spec, out *agents.Output) []result.File {
	text, err := json.MarshalIndent(spec.Without(), "", "  ")
	if err != nil {
		text = []byte(err.Error())
	}
	return []result.File{
		{Name: "commands.txt", Data: fmt.Appendf(nil, "%s: %s < client.spec.json\n", p.Client.Name(), host.Agent)},
		{Name: "client.spec.json", Data: append(text, '\n')},
		{Name: "client.events.ndjson", Data: out.Bytes()},
	}
}
