package kube

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/knotmeter/knotmeter/internal/host/remote"
	"github.com/knotmeter/knotmeter/internal/preflight"
	"github.com/knotmeter/knotmeter/internal/target/kube/inspection"
	"github.com/knotmeter/knotmeter/internal/target/kube/manifest"
	"github.com/knotmeter/knotmeter/internal/target/kube/watching"
)

// health is what became of the site since it was opened that makes a run in it count for nothing.
func (s *site) health(ctx context.Context) []string {
	return slices.Concat(s.watch.Ailments(s.pods), s.nodes.Ailments(), s.throttled(ctx))
}

// throttled asks both places whether they ran out of a quota of CPU time, if they have one.
func (s *site) throttled(ctx context.Context) []string {
	var list []string
	for _, r := range s.plan.Roles() {
		before := map[manifest.Role]preflight.Report{manifest.Client: s.client, manifest.Server: s.server}[r]
		if !inspection.Limited(s.pods[s.plan.Name(r)]) {
			continue
		}
		after, err := s.report(ctx, r, preflight.Spec{Role: preflight.Witness, Patience: meetTime})
		if err != nil {
			continue // a place that does not answer has lost its run too
		}
		if n := after.Throttled - before.Throttled; n > 0 {
			list = append(list, fmt.Sprintf("the CPU of %s was throttled %d times by its limit of %s; give its pods more in config=, or another namespace=",
				s.plan.HostName(r), n, inspection.CPULimit(s.pods[s.plan.Name(r)])))
		}
	}
	return list
}

// newsTime is how long the reason of a lost connection may take to be known.
const newsTime = 2 * time.Second

// lost adds to the error of a lost connection what became of the pods, which may be known a moment later.
func (s *site) lost(ctx context.Context, err error) error {
	if !errors.Is(err, remote.ErrLost) || s.watch == nil || s.pods == nil || s.life.Err() != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, newsTime)
	defer cancel()
	for limited.Err() == nil {
		if why := s.watch.Ailments(s.pods); len(why) > 0 {
			return fmt.Errorf("%s: %w", strings.Join(why, "; "), err)
		}
		_ = watching.Pause(limited, newsTime/20)
	}
	return err
}
