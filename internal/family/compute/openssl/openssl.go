// Package openssl runs openssl speed as a family.Tool: a workload is a command line (command.go), and the result is a
// line of what openssl speed prints with -mr (output.go).
//
// It measures the algorithms of this program's own loops, in messages of the same size, but as OpenSSL implements them:
// a difference between the two tools is one of implementations, not of machines.
package openssl

import (
	"context"
	"fmt"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/family/compute"
	"github.com/knotmeter/knotmeter/internal/family/compute/program"
	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
)

// name is the command on the host, and the name of the tool.
const name = "openssl"

// Tool is the openssl tool. It has no state.
type Tool struct{}

// New returns the openssl tool.
func New() Tool { return Tool{} }

// Name returns the name for --tool.
func (Tool) Name() string { return name }

// Program returns the name of openssl.
func (Tool) Program(family.Workload) string { return name }

// Metrics returns the metric that verdicts are about.
func (Tool) Metrics(w family.Workload) []metric.Metric { return program.Metrics(w) }

// Supports returns nil for the ciphers, hashes and signatures that openssl speed has too, else an error that wraps
// result.ErrNotSupported.
func (Tool) Supports(w family.Workload) error {
	c, _ := w.(compute.Workload)
	if _, has := algorithms[c.Kind]; !has {
		return result.NotSupported(fmt.Sprintf("openssl has no %s: it measures ciphers, hashes and signatures", w))
	}
	return program.Supports(name, c)
}

// Run carries out w once, on the client.
func (t Tool) Run(
	ctx context.Context, p host.Pair, w family.Workload, times family.Times,
) (result.Measurement, error) {
	if err := t.Supports(w); err != nil {
		return result.Measurement{}, err
	}
	c := w.(compute.Workload)
	return program.Run(ctx, p.Client, c, times, algorithms[c.Kind].method())
}
