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

// Health is what became of the pods and their nodes since the block began, and of their CPU since it was asked last,
// that makes a run count for nothing.
func (g *Group) Health(ctx context.Context) []string {
	return slices.Concat(g.watch.Ailments(g.Pods), g.Nodes.Ailments(), g.throttling(ctx))
}

// throttling asks the places whether they ran out of a quota of CPU time since they were asked last, if they have one
// that the user did not give them.
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
		now, err := g.Report(ctx, r, preflight.Spec{Role: preflight.Witness, Patience: MeetTime})
		if err != nil {
			continue // a place that does not answer has lost its run too
		}
		if n := now.Throttled - before; n > 0 {
			list = append(list, fmt.Sprintf("the CPU of %s was throttled %d times by its limit of %s; give its pods more in "+
				"config=, or another namespace=", g.Plan.HostName(r), n, inspection.CPULimit(pod)))
		}
	}
	return list
}

// Failed says whether a command on the pods ended with an error, so that what it made may be left.
func (g *Group) Failed() bool { return g.failed.Load() }

// newsTime is how long the reason of a lost connection may take to be known.
const newsTime = 2 * time.Second

// lost adds to the error of a lost connection what became of the pods, which may be known a moment later.
func (g *Group) lost(ctx context.Context, err error) error {
	if !errors.Is(err, remote.ErrLost) || g.watch == nil || g.Pods == nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, newsTime)
	defer cancel()
	for limited.Err() == nil {
		if why := g.watch.Ailments(g.Pods); len(why) > 0 {
			return fmt.Errorf("%s: %w", strings.Join(why, "; "), err)
		}
		_ = cluster.Pause(limited, newsTime/20)
	}
	return err
}
