package program

import (
	"context"
	"fmt"

	"github.com/knotmeter/knotmeter/internal/agent"
	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/family/compute"
	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/load/computeload"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
)

// A Tool is a family.Tool that carries out kinds of workloads by one program. It is safe for concurrent use.
type Tool struct {
	name    string
	offers  string
	methods map[compute.Kind]Method
}

// NewTool returns the tool of a program, whose command and tool have the same name. offers is the end of the reason why
// it does not support other kinds, such as "it measures ciphers". table has what the program can carry out, of which
// method makes the method.
func NewTool[T any](name, offers string, table map[compute.Kind]T, method func(T) Method) *Tool {
	t := &Tool{name, offers, map[compute.Kind]Method{}}
	for kind, one := range table {
		t.methods[kind] = method(one)
	}
	return t
}

// Name returns the name for --tool.
func (t *Tool) Name() string { return t.name }

// Method returns how the program carries out a kind of workload; ok is false if it does not.
func (t *Tool) Method(k compute.Kind) (m Method, ok bool) {
	m, ok = t.methods[k]
	return m, ok
}

// Program returns the name of the program.
func (t *Tool) Program(family.Workload) string { return t.name }

// Metrics returns the metrics of a run of w: only the one that verdicts are about.
func (*Tool) Metrics(w family.Workload) []metric.Metric { return metricsOf(w) }

// Supports returns nil for the kinds that the program carries out, else an error that wraps result.ErrNotSupported. The
// error of cpus=core is one too, since no program chooses CPUs.
func (t *Tool) Supports(w family.Workload) error {
	c, _ := w.(compute.Workload)
	if _, ok := t.Method(c.Kind); !ok {
		return result.NotSupported(fmt.Sprintf("%s has no %s: %s", t.name, w, t.offers))
	}
	return checkCPUs(t.name, c)
}

// Run carries out w once, on the client.
func (t *Tool) Run(
	ctx context.Context, p host.Pair, w family.Workload, times family.Times,
) (result.Measurement, error) {
	if err := t.Supports(w); err != nil {
		return result.Measurement{}, err
	}
	c := w.(compute.Workload)
	method := t.methods[c.Kind]
	r := &run{program: method.Program, host: p.Client, cpuLimit: p.CPULimit}
	r.readCPUs = func(ctx context.Context) (computeload.Reading, error) {
		return agent.Do[computeload.Reading](ctx, p.Client,
			agent.Request{Verb: computeload.ReadingVerb, Body: struct{}{}}, nil)
	}
	return r.carryOut(ctx, c, times, method)
}
