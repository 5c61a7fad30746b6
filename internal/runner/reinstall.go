package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/knotmeter/knotmeter/internal/result"
)

// install switches to a target for a visit in a block. A switch may do nothing if its target is in place already. Where
// the visit before, of an earlier block, was of the same target, both blocks would then share an installation, and be
// no replicates: so the switch of another target runs in between, without a measurement.
func (s *session) install(ctx context.Context, name string, block int) error {
	if other := s.displacedBy(name, block); other != "" {
		err := s.switchTo(ctx, other, block)
		if failure, is := errors.AsType[visitError](err); is {
			// Its text alone: that the other target is not supported says nothing about this one.
			return visitError{errors.New("to install it anew, " + other + " was put in place first: " + failure.Error())}
		}
		if err != nil {
			return fmt.Errorf("put %s in place before %s: %w", other, name, err)
		}
	}
	err := s.switchTo(ctx, name, block)
	if err == nil && hasSwitch(s.e, name) {
		s.installed = result.Switch{Target: name, Block: block}
	}
	return err
}

// displacedBy returns the target to switch to before a visit; empty unless a visit of an earlier block left the visited
// target in place, and if there is no other target with a switch.
func (s *session) displacedBy(name string, block int) string {
	if s.installed.Target != name || s.installed.Block == block {
		return ""
	}
	for _, t := range s.e.Targets {
		gone := slices.ContainsFunc(s.e.NotMeasured, func(n result.NotMeasured) bool { return n.Covers(t.Name, "*") })
		if t.Name != name && t.Switch != nil && !gone {
			return t.Name
		}
	}
	return ""
}

// lastInstalled returns the last visit whose switch succeeded, among the switches of earlier sessions.
func lastInstalled(e result.Experiment, switches []result.Switch) (last result.Switch) {
	for _, x := range switches {
		if x.Failed == "" && hasSwitch(e, x.Target) {
			last = result.Switch{Target: x.Target, Block: x.Block}
		}
	}
	return last
}

func hasSwitch(e result.Experiment, name string) bool {
	return slices.ContainsFunc(e.Targets, func(t result.Target) bool { return t.Name == name && t.Switch != nil })
}
