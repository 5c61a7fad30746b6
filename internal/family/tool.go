package family

import (
	"context"

	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
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
