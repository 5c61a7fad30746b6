package runner_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/load/netload"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/runner"
	"github.com/knotmeter/knotmeter/internal/store"
	"github.com/knotmeter/knotmeter/internal/targets"
	"github.com/knotmeter/knotmeter/internal/targets/targettest"
)

// newParallel returns a bench whose targets are measured at the same time, by the time of a synctest bubble.
func newParallel(t *testing.T, names string, blocks int, cases ...string) *bench {
	t.Helper()
	b := newBench(t, names, blocks, cases...)
	b.config.Experiment.Design.Parallel = true
	b.config.Clock = nil
	for i, name := range strings.Split(names, "") {
		b.twins[name].OpenFails = nil
		b.twins[name].OpenTakes = time.Duration(i+1) * 100 * time.Millisecond
	}
	b.model.Wait = wait
	return b
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// TestTogether checks that the runs of a case in a block measure at the same time, however long their places take to
// open, that a bound runs alone, and that the recorded order is that of the schedule.
func TestTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newParallel(t, "abc", 3, rr)
		begins := map[time.Time]int{}
		var mu sync.Mutex
		b.model.Fail = func(int, host.Pair, family.Workload) (string, error) {
			mu.Lock()
			defer mu.Unlock()
			begins[time.Now()]++
			return "", nil
		}
		s := b.run(t.Context())
		wantComplete(t, b.sink.runs, b.config.Experiment, "abc")
		if s.Runs != 3*(3+1) {
			t.Errorf("%+v", s)
		}
		for _, n := range begins {
			if n != 3 && n != 1 {
				t.Errorf("%d runs began to measure at the same time, want the three of a block, or a bound", n)
			}
		}
		if len(begins) != 2*3 {
			t.Errorf("the runs began to measure at %d times, want %d", len(begins), 2*3)
		}
		var slots []string
		for _, r := range b.sink.runs {
			if !strings.HasPrefix(r.Case, "node-node") {
				slots = append(slots, fmt.Sprintf("%d %d %s", r.Block, r.Slot, r.Target))
			}
			if r.Window != 1 || r.Setup < 0.19 || r.Setup > 0.21 {
				t.Errorf("%s on %s: window %g, setup %g", r.Case, r.Target, r.Window, r.Setup)
			}
		}
		var want []string
		for block := 1; block <= 3; block++ {
			for i, name := range runner.Order(b.config.Experiment, caseOf(b, rr), block, 1) {
				want = append(want, fmt.Sprintf("%d %d %s", block, i+1, name))
			}
		}
		if !slices.Equal(slots, want) {
			t.Errorf("recorded %v, want %v", slots, want)
		}
		// Three windows at the same time count as one second of measuring.
		if math.Abs(s.Measuring-6) > 1e-9 || s.Share() > 1 {
			t.Errorf("%g s of measuring, a share of %g", s.Measuring, s.Share())
		}
	})
}

func caseOf(b *bench, name string) result.Case {
	for _, c := range b.config.Experiment.Cases {
		if c.Name == name {
			return c
		}
	}
	b.t.Fatalf("there is no case %s", name)
	return result.Case{}
}

// TestTogetherOneFails checks that a case is measured again on all targets if one run of a group fails: the others are
// valid but do not count.
func TestTogetherOneFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newParallel(t, "ab", 2, rr)
		var failed atomic.Bool
		b.model.Fail = func(_ int, p host.Pair, w family.Workload) (string, error) {
			if w.Traits().Kind != string(netload.TCPRR) || p.Client.Name() != "b!node1/client" || failed.Swap(true) {
				return "", nil
			}
			return "", errors.New("the connection was cut")
		}
		s := b.run(t.Context())
		wantComplete(t, b.sink.runs, b.config.Experiment, "ab")
		if got := blockOf(b.sink.runs, 1); got != "1.1 a, 1.1 b!, 1.2 a, 1.2 b" {
			t.Errorf("block 1: %s", got)
		}
		if s.Invalid["b"] != 1 || s.Runs != 2*(2+1)+1 {
			t.Errorf("%+v", s)
		}
	})
}

// blockOf lists the runs of a block of the case rr, sorted.
func blockOf(runs []result.Run, block int) string {
	var list []string
	for _, r := range runs {
		if r.Case == rr && r.Block == block {
			line := fmt.Sprintf("%d.%d %s", r.Block, r.Attempt, r.Target)
			if !r.Valid() {
				line += "!"
			}
			list = append(list, line)
		}
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

// TestTogetherOneHasNoPlaces checks that the other targets are not measured if the site of one cannot be opened, and
// that their sites are closed.
func TestTogetherOneHasNoPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newParallel(t, "abc", 2, rr)
		opens := 0
		b.twins["b"].OpenFails = func(int, targets.Placement) error {
			if opens++; opens == 1 {
				return errors.New("no room")
			}
			return nil
		}
		b.run(t.Context())
		wantComplete(t, b.sink.runs, b.config.Experiment, "abc")
		if got := blockOf(b.sink.runs, 1); got != "1.1 b!, 1.2 a, 1.2 b, 1.2 c" {
			t.Errorf("block 1: %s", got)
		}
		if n := b.model.Calls(); n != 2*(3+1) {
			t.Errorf("the tool was called %d times, want %d", n, 2*(3+1))
		}
	})
}

// TestTogetherNotSupported checks that a case that a target does not support is left out for that target, or for all if
// it is the baseline.
func TestTogetherNotSupported(t *testing.T) {
	for name, want := range map[string]string{"b": "1.1 a, 1.1 c", "a": ""} {
		synctest.Test(t, func(t *testing.T) {
			b := newParallel(t, "abc", 2, rr)
			b.twins[name].OpenFails = func(_ int, p targets.Placement) error {
				if p.Path == result.NodeNode {
					return nil
				}
				return result.NotSupported("no such path here")
			}
			b.run(t.Context())
			if got := blockOf(b.sink.runs, 1); got != want {
				t.Errorf("%s cannot: block 1 is %q, want %q", name, got, want)
			}
			left := map[string]string{"a": "*", "b": "b"}[name]
			if n := b.sink.notMeasured; len(n) != 1 || n[0].Target != left || n[0].Case != rr {
				t.Errorf("%s cannot: not measured %+v", name, n)
			}
		})
	}
}

// TestTogetherUnavailable checks that a target that stays unavailable ends the experiment, although the others are
// available.
func TestTogetherUnavailable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newParallel(t, "ab", 2, rr)
		opens := 0
		b.twins["b"].OpenFails = func(int, targets.Placement) error {
			if opens++; opens > 1 {
				return fmt.Errorf("gone: %w", targets.ErrUnavailable)
			}
			return nil
		}
		s := b.run(t.Context())
		if s.Stopped != runner.StopUnavailable || !strings.HasPrefix(s.Unavailable, "b: gone") ||
			len(s.Invalid) != 0 || opens != 1+3 {
			t.Errorf("%+v, after %d times", s, opens)
		}
		if got := blockOf(b.sink.runs, 1); got != "1.1 a, 1.1 b" {
			t.Errorf("block 1: %s", got)
		}
	})
}

// TestTogetherCancelAndResume checks that whenever the experiment is interrupted, sites are closed, finished runs are
// kept, and the resumed experiment ends complete.
func TestTogetherCancelAndResume(t *testing.T) {
	for moment := 50 * time.Millisecond; moment < 10*time.Second; moment += 690 * time.Millisecond {
		synctest.Test(t, func(t *testing.T) {
			b := newParallel(t, "ab", 3, rr)
			// One target takes longer, so that some interruptions come when only the other one has ended.
			b.model.Wait = nil
			b.config.Tool = slower{b.config.Tool}
			dir := filepath.Join(t.TempDir(), "r")
			w, err := store.Create(dir, b.config.Experiment)
			if err != nil {
				t.Fatal(err)
			}
			b.config.Sink = w
			ctx, cancel := context.WithTimeout(t.Context(), moment)
			defer cancel()
			s := b.run(ctx)
			w.Close()
			again, had, err := store.Resume(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer again.Close()
			if len(had.Runs) != s.Runs {
				t.Errorf("after %v: %d runs of %d are on disk", moment, len(had.Runs), s.Runs)
			}
			c := newParallel(t, "ab", 3, rr)
			c.config.Experiment, c.config.Sink = had.Experiment, again
			c.config.Earlier, c.config.EarlierSites, c.config.EarlierFacts = had.Runs, had.Sites, had.Facts
			if s := c.run(t.Context()); s.Stopped != runner.StopComplete {
				t.Errorf("after %v: resumed %+v", moment, s)
			}
			got, err := store.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			if !got.Experiment.Design.Parallel {
				t.Error("the design was not recorded")
			}
			wantComplete(t, got.Runs, got.Experiment, "ab")
		})
	}
}

// slower is a tool that takes half a second longer on b.
type slower struct{ family.Tool }

func (s slower) Run(ctx context.Context, p host.Pair, w family.Workload, t family.Times) (result.Measurement, error) {
	took := t.Total()
	if targettest.Label(p.Client) == "b" {
		took += 500 * time.Millisecond
	}
	if err := wait(ctx, took); err != nil {
		return result.Measurement{}, err
	}
	return s.Tool.Run(ctx, p, w, t)
}

// TestTogetherBudget checks that a block takes as long as its longest run, and no block begins after the budget is used
// up.
func TestTogetherBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newParallel(t, "abc", 100, rr)
		b.config.Experiment.Design.Budget = 20
		s := b.run(t.Context())
		if s.Stopped != runner.StopBudget || s.Total < 20-1.6 || s.Total > 20+1.6 {
			t.Errorf("%+v", s)
		}
		// A block is 20 ms of pause, 300 ms of the slowest places, 1.2 s of the tool; and the bound's, 200 ms less.
		if n := len(b.sink.runs); n < 4*6 || n > 4*7+3 {
			t.Errorf("%d runs in 20 s", n)
		}
		last := b.events[len(b.events)-2]
		if last.Remaining > 1.6 {
			t.Errorf("%g s remain at the end of the budget", last.Remaining)
		}
	})
}

// TestTogetherRefused checks that targets that share a resource are refused, by Resolve and by Run.
func TestTogetherRefused(t *testing.T) {
	twin := func(name string, uses ...string) runner.Target {
		return runner.Target{Target: result.Target{Name: name, Spec: result.SpecOf("twin:" + name)},
			Places: &targettest.Twin{Label: name, SharedResources: uses}}
	}
	mute := runner.Target{Target: result.Target{Name: "mute", Spec: result.SpecOf("mute")},
		Places: struct{ targets.Target }{&targettest.Twin{Label: "mute"}}}
	tests := []struct {
		targets []runner.Target
		want    string
	}{
		{[]runner.Target{twin("a", "the machine 1"), twin("b", "the machine 2", "the machine 1")},
			"--parallel: a and b both use the machine 1"},
		{[]runner.Target{twin("a")}, "--parallel: there is one target"},
		{[]runner.Target{twin("a"), mute}, "mute does not say what it shares"},
		{[]runner.Target{twin("a", "x", "x"), twin("b", "y")}, ""},
	}
	for _, c := range tests {
		b := newBench(t, "ab", 1, rr)
		design := fixed(1)
		design.Parallel = true
		_, err := runner.Resolve(t.Context(), runner.Options{ID: "x", Families: families, Targets: c.targets,
			Suites: []family.Suite{quick}, Cases: []string{rr}, Tool: b.model, Design: design})
		if (err == nil) != (c.want == "") || err != nil &&
			(!strings.Contains(err.Error(), c.want) || !errors.Is(err, runner.ErrOption)) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
	b := newBench(t, "ab", 1, rr)
	b.config.Experiment.Design.Parallel = true
	b.twins["a"].SharedResources, b.twins["b"].SharedResources = []string{"one disk"}, []string{"one disk"}
	if _, err := runner.Run(t.Context(), b.config); err == nil ||
		!strings.Contains(err.Error(), "both use one disk") || len(b.sink.runs) != 0 {
		t.Errorf("%v after %d runs", err, len(b.sink.runs))
	}
}
