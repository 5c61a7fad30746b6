// Package tool is how a workload is carried out: a Tool builds a command line, runs it on the hosts
// of a pair and turns what came out into a measurement. Tools see hosts, never targets, so that a
// tool in a pod and in a namespace is the same code.
//
// The conformance suite that every tool passes is in tooltest.
package tool

import (
	"context"

	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/workload"
)

// A Tool turns a workload into a measurement.
type Tool interface {
	// Name is what --tool takes.
	Name() string
	// Supports is pure: nil, or an error that Is result.ErrNotSupported and says why.
	Supports(w workload.Spec) error
	// Metrics is pure: those that a run of w may have a value of, each once. A run may lack some of them.
	Metrics(w workload.Spec) []metric.Metric
	// Program is what a run of w starts on the hosts that they may lack; empty: this program's agent alone.
	Program(w workload.Spec) string
	// Run does w, a resolved spec, once. It leaves nothing running on either host, also after an
	// error or when ctx ends. An error means that there is no measurement; a measurement that must
	// not count has Invalid set. Raw holds the exact commands and outputs, also with an error where
	// there are any. Errors that Is result.ErrNotSupported are about this pair (tool not installed). It may be
	// called for several pairs at the same time.
	Run(ctx context.Context, p host.Pair, w workload.Spec) (result.Measurement, error)
}
