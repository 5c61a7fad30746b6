package program

import (
	"context"
	"time"

	"github.com/knotmeter/knotmeter/internal/agent"
	"github.com/knotmeter/knotmeter/internal/family/compute"
	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/load/computeload"
	"github.com/knotmeter/knotmeter/internal/result"
)

// numberOfCPUs returns how many CPUs a run of w uses on a host. The error wraps result.ErrNotSupported if the host has
// fewer: the programs would not notice, and share CPUs among their threads. Only the agent knows how many there are; it
// reports that with any run, so this is a run of a millisecond.
func numberOfCPUs(ctx context.Context, h host.Host, w compute.Workload) (int, error) {
	if w.CPUs == compute.OneCPU {
		return 1, nil
	}
	r, err := agent.Do[computeload.Report](ctx, h, agent.Request{Verb: computeload.Verb, Body: computeload.Config{
		Loop: string(compute.Syscall), CPUs: w.CPUs.Number(), Window: time.Millisecond}}, nil)
	if err == nil && r.Unsupported != "" {
		err = result.NotSupported(r.Unsupported)
	}
	return len(r.CPUs), err
}
