package family

import (
	"context"

	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
)

// A Tool turns a workload into a measurement. It knows hosts but not targets, so that the same code runs in a pod and
// in a network namespace. Tools are compared with ==. The conformance suite that every tool passes is in familytest.
type Tool interface {
	// Name returns the name for --tool.
	Name() string
	// Supports returns nil, or an error that wraps result.ErrNotSupported and contains the reason. It is pure.
	Supports(w Workload) error
	// Metrics returns the metrics that a run of w may have, each once; a run may lack some of them. It is pure.
	Metrics(w Workload) []metric.Metric
	// Program returns the program that a run of w needs on the hosts, which may lack it; empty: only the agent.
	Program(w Workload) string
	// Run runs w once. It leaves nothing running on either host, also after an error or when ctx ends. An error means
	// that there is no measurement; an invalid measurement has Invalid set. Raw holds the exact commands and outputs,
	// as far as there are any, also with an error. An error that wraps result.ErrNotSupported means that this pair
	// cannot run w, for example because the tool is not installed. Run may be called for several pairs at the same
	// time.
	Run(ctx context.Context, p host.Pair, w Workload, t Times) (result.Measurement, error)
}

// A Selftester is a tool that checks its results against known values on this machine.
type Selftester interface {
	// Selftest runs all checks, and calls report for each when it is done. open opens a target by its specification,
	// such as lab:host?rate=1Gbit/s. Selftest returns how many checks failed, or an error if the checks could not be
	// run.
	Selftest(ctx context.Context, open func(spec string) (targets.Target, error), report func(Check)) (
		failed int, err error)
}

// A Check is the outcome of one check of a self-test.
type Check struct {
	Group    string // ceiling, overhead, accuracy
	Name     string
	Measured string // measured value with units
	// Expected is the true value with its tolerance; empty if there is none.
	Expected string
	// Passed is meaningful only if there is a Truth. Reason is why the check failed or could not be run.
	Passed bool
	Reason string
}
