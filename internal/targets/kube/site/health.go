package site

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/knotmeter/knotmeter/internal/host/remote"
	"github.com/knotmeter/knotmeter/internal/preflight"
	"github.com/knotmeter/knotmeter/internal/targets/kube/cluster"
	"github.com/knotmeter/knotmeter/internal/targets/kube/inspection"
)

// Health returns what invalidates a run: what happened to the pods and nodes since the block began, or to the CPUs of
// the pods since the last call.
func (g *Group) Health(ctx context.Context) []string {
	return slices.Concat(g.watch.Problems(g.Pods), g.Nodes.Problems(), g.throttling(ctx))
}

// throttling returns how often a CPU limit throttled the pods since the last report. A limit that the user gave is part
// of the measurement and does not count.
func (g *Group) throttling(ctx context.Context) []string {
	if g.Plan.Settings.Pods.CPULimit() != "" {
		return nil
	}
	var list []string
	for i, r := range g.Plan.Roles() {
		pod, before := g.Pods[g.Plan.Name(r)], g.throttled[i]
		if !inspection.Limited(pod) {
			continue
		}
		now, err := g.Report(ctx, r, preflight.Spec{Role: preflight.Witness, Timeout: PreflightTimeout})
		if err != nil {
			continue // a pod that does not answer fails its run anyway
		}
		if n := now.Throttled - before; n > 0 {
			list = append(list, fmt.Sprintf("the CPU of %s was throttled %d times by its limit of %s; give its pods more in "+
				"config=, or another namespace=", g.Plan.HostName(r), n, inspection.CPULimit(pod)))
		}
	}
	return list
}

// Failed reports whether a command on the pods failed, so that its objects may be left.
func (g *Group) Failed() bool { return g.failed.Load() }

// podNewsTime limits the wait for the event of a pod that explains a lost connection.
const podNewsTime = 2 * time.Second

// explainLost adds to the error of a lost connection what happened to the pods. It waits for that up to podNewsTime.
func (g *Group) explainLost(ctx context.Context, err error) error {
	if !errors.Is(err, remote.ErrLost) || g.watch == nil || g.Pods == nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, podNewsTime)
	defer cancel()
	for limited.Err() == nil {
		if why := g.watch.Problems(g.Pods); len(why) > 0 {
			return fmt.Errorf("%s: %w", strings.Join(why, "; "), err)
		}
		_ = cluster.Pause(limited, podNewsTime/20)
	}
	return err
}
