package runner_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/runner"
	"github.com/knotmeter/knotmeter/internal/targets"
)

// withoutBounds removes the bounds, which are measured on the baseline alone.
func (b *bench) withoutBounds() {
	e := &b.config.Experiment
	e.Cases = slices.DeleteFunc(e.Cases, func(c result.Case) bool { return c.Role == result.Bound })
}

// TestOneSiteForEachBlock checks that all runs of a block on a target share one site, whatever their paths are.
func TestOneSiteForEachBlock(t *testing.T) {
	b := newBench(t, "ab", 3)
	b.run(t.Context())
	seen := map[string]int{} // the site, by target and block
	for _, r := range b.sink.runs {
		at := fmt.Sprintf("%s %d", r.Target, r.Block)
		if seen[at] == 0 {
			seen[at] = r.Site
		}
		if r.Site != seen[at] || r.Site == 0 {
			t.Errorf("%s of block %d on %s is in site %d, others in %d", r.Case, r.Block, r.Target, r.Site, seen[at])
		}
	}
	for name, twin := range b.twins {
		if twin.Opens() != 3 {
			t.Errorf("%d sites on %s for three blocks", twin.Opens(), name)
		}
	}
	numbers := map[int]bool{}
	for _, s := range b.sink.sites {
		numbers[s.Number] = true
		if seen[fmt.Sprintf("%s %d", s.Target, s.Block)] != s.Number {
			t.Errorf("no run is in site %+v", s)
		}
	}
	if len(numbers) != 6 {
		t.Errorf("sites are numbered %v", numbers)
	}
}

// TestSitesOfFailedRuns checks that an invalid run is repeated in the same site, one that ended with an error in fresh
// sites; complete cases are not repeated.
func TestSitesOfFailedRuns(t *testing.T) {
	for _, test := range []struct {
		name  string
		gate  string
		err   error
		opens int
	}{
		{"gate", "the CPU was throttled", nil, 1},
		{"error", "", errors.New("connection reset"), 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newBench(t, "ab", 1)
			b.withoutBounds()
			const at = 4
			b.model.Fail = func(call int, _ host.Pair, _ family.Workload) (string, error) {
				if call == at {
					return test.gate, test.err
				}
				return "", nil
			}
			s := b.run(t.Context())
			wantComplete(t, b.sink.runs, b.config.Experiment, "ab")
			bad := b.sink.runs[at-1]
			if bad.Valid() || s.Runs != b.model.Calls()-1 {
				t.Errorf("%+v after %d calls; %+v", s, b.model.Calls(), bad)
			}
			for name, twin := range b.twins {
				if twin.Opens() != test.opens {
					t.Errorf("%d sites on %s, want %d", twin.Opens(), name, test.opens)
				}
			}
			for _, r := range b.sink.runs {
				if r.Attempt > 1 && (r.Case != bad.Case || r.Site == bad.Site && test.err != nil) {
					t.Errorf("measured again: %+v", r)
				}
			}
		})
	}
}

// TestPlaceThatCannotBeMade checks that a place that cannot be made delays its own cases alone, which are measured in a
// fresh site.
func TestPlaceThatCannotBeMade(t *testing.T) {
	b := newBench(t, "ab", 1)
	b.twins["b"].OpenFails = func(n int, p targets.Placement) error {
		if n == 1 && p.Path == result.PodSvcOther {
			return errors.New("no endpoint")
		}
		return nil
	}
	s := b.run(t.Context())
	wantComplete(t, b.sink.runs, b.config.Experiment, "ab")
	if s.Invalid["b"] != 3 || b.twins["a"].Opens() != 2 || b.twins["b"].Opens() != 2 {
		t.Errorf("%+v, %d and %d sites", s, b.twins["a"].Opens(), b.twins["b"].Opens())
	}
	first := b.sink.sites[0].Number
	for _, r := range b.sink.runs {
		service := strings.HasPrefix(r.Case, string(result.PodSvcOther))
		if r.Valid() && service == (r.Site <= first+1) {
			t.Errorf("%s on %s is in site %d", r.Case, r.Target, r.Site)
		}
		if !r.Valid() && r.Invalid[0].Text != "no endpoint" {
			t.Errorf("%+v", r.Invalid)
		}
	}
}

// TestSitesOpenTogether checks that sites are opened on all targets at the same time.
func TestSitesOpenTogether(t *testing.T) {
	b := newBench(t, "abc", 1, "pod-pod/other/tcp-rr")
	arrived := make(chan string, 3)
	all := make(chan struct{})
	for name, twin := range b.twins {
		twin.OpenFails = func(int, targets.Placement) error {
			select {
			case arrived <- name:
			default: // a further place
			}
			if len(arrived) == 3 {
				select {
				case <-all:
				default:
					close(all)
				}
			}
			select {
			case <-all:
				return nil
			case <-t.Context().Done():
				return t.Context().Err()
			}
		}
	}
	b.withoutBounds()
	if s := b.run(t.Context()); s.Runs != 3 {
		t.Errorf("%+v", s)
	}
}

// TestSitesOfManyTargets checks that sites of many targets are opened a few at a time.
func TestSitesOfManyTargets(t *testing.T) {
	b := newBench(t, "abcdefg", 1, "pod-pod/other/tcp-rr")
	var now atomic.Int32
	var over atomic.Bool
	for _, twin := range b.twins {
		twin.OpenFails = func(int, targets.Placement) error {
			if now.Add(1) > 4 {
				over.Store(true)
			}
			time.Sleep(5 * time.Millisecond)
			now.Add(-1)
			return nil
		}
	}
	b.withoutBounds()
	if s := b.run(t.Context()); s.Runs != 7 || over.Load() {
		t.Errorf("%+v, more than 4 at a time: %v", s, over.Load())
	}
}

// TestSitesOfAnAbsentTarget checks that a target that is unavailable for a moment delays the experiment; no case or
// attempt fails.
func TestSitesOfAnAbsentTarget(t *testing.T) {
	b := newBench(t, "ab", 2, "pod-pod/other/tcp-rr")
	b.twins["b"].OpenFails = func(n int, _ targets.Placement) error {
		if n == 2 {
			return fmt.Errorf("%w: no answer", targets.ErrUnavailable)
		}
		return nil
	}
	s := b.run(t.Context())
	failed := slices.IndexFunc(b.events, func(e runner.Event) bool { return e.Kind == runner.SiteFailed })
	if s.Runs != 6 || len(s.Invalid) != 0 || failed < 0 || b.events[failed].Target != "b" {
		t.Errorf("%+v, event %d", s, failed)
	}
	for _, r := range b.sink.runs {
		if r.Attempt != 1 {
			t.Errorf("%+v", r)
		}
	}
}
