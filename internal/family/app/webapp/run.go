package webapp

import (
	"context"
	"fmt"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/load/httpload"
)

// Verb is the agent's, with a [Config] as its body and an [httpload.Result] as its result.
const Verb = "http"

// A Config is a run of a description.
type Config struct {
	Description Description `json:"description"`
	CA          []byte      `json:"ca,omitempty"` // PEM, what Description.CA names
	// Secrets are values, by the request's name and the header field's.
	Secrets map[string]map[string]string `json:"secrets,omitempty"`
	Seed    uint64                       `json:"seed"`
	Pace    family.Pace                  `json:"pace"`
	Times   family.Times                 `json:"times"`
}

// Open is the configuration without its secrets, to be kept.
func (c Config) Open() any {
	c.Secrets = nil
	return c
}

// Run asks what the description says. Errors are web's, and ErrDescription.
func Run(ctx context.Context, c Config) (httpload.Result, error) {
	w, err := c.web()
	if err != nil {
		return httpload.Result{}, err
	}
	return httpload.Do(ctx, w)
}

func (c Config) web() (httpload.Config, error) {
	d := c.Description
	if err := d.Validate(); err != nil {
		return httpload.Config{}, err
	}
	source, err := d.Source(c.Seed, c.Secrets)
	if err != nil {
		return httpload.Config{}, fmt.Errorf("%w: %w", ErrDescription, err)
	}
	server, err := httpload.NewServer(d.url(), d.Addresses, httpload.Trust{CA: c.CA}, d.HTTP == 2)
	if err != nil {
		return httpload.Config{}, err
	}
	timeout, err := d.timeout()
	return httpload.Config{
		Server: server, Source: source, Rate: c.Pace.Rate, Clients: c.Pace.Clients,
		Knee: c.Pace.Knee, MostClients: c.Pace.MostClients,
		Connections: max(d.Connections, len(d.Addresses)), Most: d.MaxConnections, Reconnect: d.Reconnect,
		Seed: c.Times.Seed, Warmup: c.Times.Warmup, Window: c.Times.Window, Timeout: timeout, Distress: httpload.Distress,
	}, err
}
