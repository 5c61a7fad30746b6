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
	"github.com/knotmeter/knotmeter/internal/target/kube/inspection"
	"github.com/knotmeter/knotmeter/internal/target/kube/manifest"
	"github.com/knotmeter/knotmeter/internal/target/kube/watching"
)

// Health is what became of the site since it was opened that makes a run in it count for nothing.
func (s *Site) Health(ctx context.Context) []string {
	return slices.Concat(s.watch.Ailments(s.Pods), s.Nodes.Ailments(), s.throttled(ctx))
}

// throttled asks both places whether they ran out of a quota of CPU time, if they have one.
func (s *Site) throttled(ctx context.Context) []string {
	var list []string
	for _, r := range s.Plan.Roles() {
		before := map[manifest.Role]preflight.Report{manifest.Client: s.Client, manifest.Server: s.Server}[r]
		if !inspection.Limited(s.Pods[s.Plan.Name(r)]) {
			continue
		}
		after, err := s.Report(ctx, r, preflight.Spec{Role: preflight.Witness, Patience: MeetTime})
		if err != nil {
			continue // a place that does not answer has lost its run too
		}
		if n := after.Throttled - before.Throttled; n > 0 {
			list = append(list, fmt.Sprintf("the CPU of %s was throttled %d times by its limit of %s; give its pods more in "+
				"config=, or another namespace=",
				s.Plan.HostName(r), n, inspection.CPULimit(s.Pods[s.Plan.Name(r)])))
		}
	}
	return list
}

// newsTime is how long the reason of a lost connection may take to be known.
const newsTime = 2 * time.Second

// lost adds to the error of a lost connection what became of the pods, which may be known a moment later.
func (s *Site) lost(ctx context.Context, err error) error {
	if !errors.Is(err, remote.ErrLost) || s.watch == nil || s.Pods == nil || s.life.Err() != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, newsTime)
	defer cancel()
	for limited.Err() == nil {
		if why := s.watch.Ailments(s.Pods); len(why) > 0 {
			return fmt.Errorf("%s: %w", strings.Join(why, "; "), err)
		}
		_ = watching.Pause(limited, newsTime/20)
	}
	return err
}
