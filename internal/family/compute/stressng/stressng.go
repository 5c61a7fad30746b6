// Package stressng runs the matrix and vm stressors of stress-ng as a family.Tool: a workload is a command line
// (command.go), and the result is a line of the table that stress-ng prints (output.go).
//
// Its operations are "bogo ops", without a unit: they compare with figures of the same version and method, and with
// nothing else.
package stressng

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
const name = "stress-ng"

// Tool is the stress-ng tool. It has no state.
type Tool struct{}

// New returns the stress-ng tool.
func New() Tool { return Tool{} }

// Name returns the name for --tool.
func (Tool) Name() string { return name }

// Program returns the name of stress-ng.
func (Tool) Program(family.Workload) string { return name }

// Metrics returns the metric that verdicts are about.
func (Tool) Metrics(w family.Workload) []metric.Metric { return program.Metrics(w) }

// Supports returns nil for stress-ng-matrix and stress-ng-vm, else an error that wraps result.ErrNotSupported.
func (Tool) Supports(w family.Workload) error {
	c, _ := w.(compute.Workload)
	if _, has := stressors[c.Kind]; !has {
		return result.NotSupported(fmt.Sprintf("stress-ng has no %s: it has stress-ng-matrix and stress-ng-vm", w))
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
	return program.Run(ctx, p.Client, c, times, stressors[c.Kind].method())
}
