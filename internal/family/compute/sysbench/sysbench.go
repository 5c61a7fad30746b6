// Package sysbench runs the cpu and memory tests of sysbench as a family.Tool: a workload is a command line
// (command.go), and the result is in the report that sysbench prints (output.go).
//
// Events of sysbench cpu are its own searches for primes: they compare with figures of the same version and settings,
// and with nothing else. Its latencies have two decimals of a millisecond, which is coarser than the differences that
// matter; they are in the evidence alone.
package sysbench

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
const name = "sysbench"

// Tool is the sysbench tool. It has no state.
type Tool struct{}

// New returns the sysbench tool.
func New() Tool { return Tool{} }

// Name returns the name for --tool.
func (Tool) Name() string { return name }

// Program returns the name of sysbench.
func (Tool) Program(family.Workload) string { return name }

// Metrics returns the metric that verdicts are about.
func (Tool) Metrics(w family.Workload) []metric.Metric { return program.Metrics(w) }

// Supports returns nil for sysbench-cpu and sysbench-memory, else an error that wraps result.ErrNotSupported.
func (Tool) Supports(w family.Workload) error {
	c, _ := w.(compute.Workload)
	if _, has := tests[c.Kind]; !has {
		return result.NotSupported(fmt.Sprintf("sysbench has no %s: it has sysbench-cpu and sysbench-memory", w))
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
	return program.Run(ctx, p.Client, c, times, tests[c.Kind].method())
}
