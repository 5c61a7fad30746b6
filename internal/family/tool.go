package family

import (
	"context"

	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
)

// A Tool turns a workload into a measurement. It sees hosts, never targets, so that in a pod and in a namespace it is
// the same code. The conformance suite that every tool passes is in familytest.
type Tool interface {
	// Name is what --tool takes.
	Name() string
	// Supports is pure: nil, or an error that Is result.ErrNotSupported and says why.
	Supports(w Workload) error
	// Metrics is pure: those that a run of w may have a value of, each once. A run may lack some of them.
	Metrics(w Workload) []metric.Metric
	// Program is what a run of w starts on the hosts that they may lack; empty: this program's agent alone.
	Program(w Workload) string
	// Run does w once. It leaves nothing running on either host, also after an error or when ctx ends. An error means that
	// there is no measurement; a measurement that must not count has Invalid set. Raw holds the exact commands and
	// outputs, also with an error where there are any. Errors that Is result.ErrNotSupported are about this pair (tool
	// not installed). It may be called for several pairs at the same time.
	Run(ctx context.Context, p host.Pair, w Workload, t Times) (result.Measurement, error)
}

// A Selftester is a tool that compares itself with truths on the machine that it runs on.
type Selftester interface {
	// Selftest makes all checks on targets that open opens, such as lab:host?rate=1Gbit/s, and reports each as it is made.
	// Its error is about what kept it from making them; a check that fails is counted in failed.
	Selftest(ctx context.Context, open func(spec string) (targets.Target, error), report func(Check)) (
		failed int, err error)
}

// A Check is one thing that was tried.
type Check struct {
	Group string // ceiling, overhead, accuracy
	Name  string
	Saw   string // with units
	// Truth is what it should have been, with its tolerance; empty where there is none.
	Truth string
	// Passed is meaningful where there is a truth. Reason says why a check could not be made, or failed.
	Passed bool
	Reason string
}
