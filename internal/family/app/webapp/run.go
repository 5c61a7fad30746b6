package webapp

import (
	"context"
	"fmt"

	"github.com/knotmeter/knotmeter/internal/load/httpload"
)

// Verb is the agent's verb; its body is a [Config], its result an [httpload.Result].
const Verb = "http"

// A Config describes a run with the requests of a description.
type Config struct {
	Description Description `json:"description"`
	CA          []byte      `json:"ca,omitempty"` // PEM, the content of Description.CA
	// Secrets holds the secret values, by the names of the request and the header field.
	Secrets map[string]map[string]string `json:"secrets,omitempty"`
	Seed    uint64                       `json:"seed"`
	Load    httpload.Load                `json:"load"`
}

// Redacted returns the configuration without its secrets, for the results directory.
func (c Config) Redacted() any {
	c.Secrets = nil
	return c
}

// Run sends the requests of the description. Errors are the generator's, or wrap [ErrDescription].
func Run(ctx context.Context, c Config) (httpload.Result, error) {
	load, err := c.loadConfig()
	if err != nil {
		return httpload.Result{}, err
	}
	return httpload.SearchAndRun(ctx, load)
}

// loadConfig returns the generator's configuration.
func (c Config) loadConfig() (httpload.Config, error) {
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
	load := c.Load.Config(server, source)
	load.Connections, load.Most = max(d.Connections, len(d.Addresses)), d.MaxConnections
	load.Reconnect, load.Timeout = d.Reconnect, timeout
	return load, err
}
