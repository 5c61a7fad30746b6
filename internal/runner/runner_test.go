package runner_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/family/familytest"
	"github.com/knotmeter/knotmeter/internal/family/network"
	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/load/netload"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/runner"
	"github.com/knotmeter/knotmeter/internal/store"
	"github.com/knotmeter/knotmeter/internal/targets"
	"github.com/knotmeter/knotmeter/internal/targets/targettest"
)

// The family of these tests, and its suites.
var (
	families     = family.List{network.Family()}
	whole, quick = families.Suites()[0], families.Suites()[1]
)

// A clock advances only by Sleep.
type clock struct {
	mu     sync.Mutex
	now    time.Time
	asleep time.Duration
}

func (c *clock) Asleep() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.asleep
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Sleep(_ context.Context, d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// A memory is a sink that keeps everything.
type memory struct {
	facts       map[string][]result.Fact
	sessions    []result.Session
	begun       []result.Switch
	switches    []result.Switch
	sites       []result.Site
	runs        []result.Run
	raw         [][]result.File
	notMeasured []result.NotMeasured
	fail        error
}

func (m *memory) WriteFacts(name string, facts []result.Fact) error {
	if m.facts == nil {
		m.facts = map[string][]result.Fact{}
	}
	m.facts[name] = facts
	return m.fail
}

func (m *memory) WriteSession(s result.Session) error {
	m.sessions = append(m.sessions, s)
	return m.fail
}

func (m *memory) BeginSwitch(s result.Switch) error {
	m.begun = append(m.begun, s)
	return m.fail
}

func (m *memory) WriteSwitch(s result.Switch) (int, error) {
	s.Number = len(m.switches) + 1
	m.switches = append(m.switches, s)
	return s.Number, m.fail
}

func (m *memory) WriteSite(s result.Site) error {
	m.sites = append(m.sites, s)
	return m.fail
}

func (m *memory) WriteNotMeasured(n result.NotMeasured) error {
	m.notMeasured = append(m.notMeasured, n)
	return m.fail
}

func (m *memory) Append(r result.Run, raw []result.File) error {
	if m.fail != nil {
		return m.fail
	}
	m.runs, m.raw = append(m.runs, r), append(m.raw, raw)
	return nil
}

// A bench is an experiment on twins with a model as its tool, all on one clock.
type bench struct {
	t      *testing.T
	clock  *clock
	model  *familytest.Model
	twins  map[string]*targettest.Twin
	sink   *memory
	events []runner.Event
	config runner.Config
}

// newBench resolves an experiment with a baseline "a" and the quick suite's cases that the patterns choose.
func newBench(t *testing.T, names string, blocks int, cases ...string) *bench {
	t.Helper()
	b := &bench{t: t, clock: &clock{now: time.Date(2026, 12, 1, 8, 0, 0, 0, time.UTC)},
		twins: map[string]*targettest.Twin{}, sink: &memory{}}
	b.model = &familytest.Model{Seed: 1, Noise: 0.03, Wait: func(ctx context.Context, d time.Duration) error {
		b.clock.Sleep(ctx, d)
		return ctx.Err()
	}}
	var targets []runner.Target
	for _, name := range strings.Split(names, "") {
		b.twins[name] = &targettest.Twin{Label: name, UnderlayName: "one", OpenFails: b.openTakes(300 * time.Millisecond)}
		targets = append(targets, runner.Target{Target: result.Target{Name: name, Spec: result.SpecOf("twin:" + name)},
			Places: b.twins[name]})
	}
	e, err := runner.Resolve(t.Context(), runner.Options{
		ID: "x", Families: families, Targets: targets, Suites: []family.Suite{quick},
		Cases: cases, Tool: b.model, Seed: 7, Design: fixed(blocks),
	})
	if err != nil {
		t.Fatal(err)
	}
	b.config = runner.Config{
		Families:   families,
		Experiment: e, Targets: targets, Tool: b.model, Sink: b.sink, Clock: b.clock, Limits: runner.Limits{Attempts: 3},
		Events: func(ev runner.Event) { b.events = append(b.events, ev) },
	}
	t.Cleanup(func() {
		for name, twin := range b.twins {
			if left := twin.Left(); len(left) > 0 {
				t.Errorf("%s has open places: %v", name, left)
			}
		}
	})
	return b
}

// openTakes returns a Twin.OpenFails that never fails and takes d for each site, on the clock of the bench.
func (b *bench) openTakes(d time.Duration) func(int, targets.Placement) error {
	last := 0
	return func(n int, _ targets.Placement) error {
		if n != last {
			b.clock.Sleep(b.t.Context(), d)
		}
		last = n
		return nil
	}
}

// fixed returns a design with one look, after the given number of blocks.
func fixed(blocks int) result.Design {
	d := runner.DefaultDesign()
	d.Blocks, d.Looks = blocks, nil
	return d
}

func (b *bench) run(ctx context.Context) runner.Summary {
	b.t.Helper()
	s, err := runner.Run(ctx, b.config)
	if err != nil {
		b.t.Fatal(err)
	}
	return s
}

// describe returns one line for each run: "1.1 tcp-rr b" for block 1, attempt 1, with "!" if it is invalid.
func describe(runs []result.Run) []string {
	var lines []string
	for _, r := range runs {
		line := fmt.Sprintf("%d.%d %s %s", r.Block, r.Attempt, strings.TrimPrefix(r.Case, "pod-pod/other/"), r.Target)
		if !r.Valid() {
			line += "!"
		}
		lines = append(lines, line)
	}
	return lines
}

// wantComplete checks that each case has an attempt of every block with a valid run of each of the names and no invalid
// one.
func wantComplete(t *testing.T, runs []result.Run, e result.Experiment, names string) {
	t.Helper()
	for _, c := range e.Cases {
		wanted := names
		if c.Role == result.Bound {
			wanted = e.Baseline
		}
		for block := 1; block <= e.Design.Blocks; block++ {
			complete := 0
			for attempt := 1; attempt <= 20; attempt++ {
				got := ""
				for _, r := range runs {
					if r.Case == c.Name && r.Block == block && r.Attempt == attempt {
						if !r.Valid() {
							got += "!"
						}
						got += r.Target
					}
				}
				if sorted(got) == wanted {
					complete++
				}
			}
			if complete != 1 {
				t.Errorf("block %d of %s is complete %d times, wanted once", block, c.Name, complete)
			}
		}
	}
}

func sorted(s string) string {
	letters := strings.Split(s, "")
	slices.Sort(letters)
	return strings.Join(letters, "")
}

func TestRunFollowsTheSchedule(t *testing.T) {
	b := newBench(t, "abc", 4)
	s := b.run(t.Context())
	var want []string
	for block := 1; block <= 4; block++ {
		for _, cb := range runner.Schedule(b.config.Experiment, block) {
			for slot, name := range cb.Targets {
				want = append(want, fmt.Sprintf("%d %d %s %s", block, slot+1, cb.Case.Name, name))
			}
		}
	}
	var got []string
	for i, r := range b.sink.runs {
		got = append(got, fmt.Sprintf("%d %d %s %s", r.Block, r.Slot, r.Case, r.Target))
		if r.ID != fmt.Sprintf("%04d", i+1) || r.Schema != result.RunSchema ||
			r.Attempt != 1 || r.Tool != "model" || !r.Valid() {
			t.Errorf("run %d is %+v", i+1, r)
		}
		if r.Setup < 0.19 || r.Setup > 0.21 || r.Window != 1 || r.Cleanup != 0 {
			t.Errorf("run %d: setup %g, window %g, cleanup %g", i+1, r.Setup, r.Window, r.Cleanup)
		}
		if len(r.Facts) == 0 || len(r.Values) == 0 || len(b.sink.raw[i]) == 0 {
			t.Errorf("run %d has %d facts, %d values, %d raw files", i+1, len(r.Facts), len(r.Values), len(b.sink.raw[i]))
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("order (-schedule +run):\n%s", diff)
	}
	if n := 4 * (6*3 + 3); s.Runs != n || len(got) != n ||
		s.Stopped != runner.StopComplete || len(s.Invalid) != 0 || s.GivenUp != 0 {
		t.Errorf("%d runs, wanted %d; summary %+v", len(got), n, s)
	}
	// 200 ms of warm-up, 1 s of window, 20 ms of pause for each run; 300 ms for each of the three sites of a block,
	// which are on the same clock one after another.
	if share, want := s.Share(), 21/(21*1.22+0.9); math.Abs(share-want) > 0.001 {
		t.Errorf("share of time measuring is %.4f, wanted %.4f", share, want)
	}
	for i, site := range b.sink.sites {
		if site.Schema != result.SiteSchema || site.Block != i/3+1 || site.Setup < 0.29 || site.Cleanup != 0 {
			t.Errorf("site %d is %+v", i+1, site)
		}
	}
	if len(b.sink.sites) != 4*3 {
		t.Errorf("%d sites, wanted one for each block and target", len(b.sink.sites))
	}
	if len(b.sink.facts) != 3 || b.model.Calls() != len(got) {
		t.Errorf("facts of %d targets, %d calls of the tool", len(b.sink.facts), b.model.Calls())
	}
}

// TestRotation checks that all runs of a block are on the same nodes, and successive blocks use the pairs of nodes in
// turn.
func TestRotation(t *testing.T) {
	b := newBench(t, "ab", 3, "pod-pod/other/tcp-rr")
	b.run(t.Context())
	for _, r := range b.sink.runs {
		want := []string{"node1", "node2", "node1"}[r.Block-1]
		if r.Facts[0].Name != "client.node" || r.Facts[0].Value != want {
			t.Errorf("block %d on %s: %v, wanted %s", r.Block, r.Target, r.Facts[0], want)
		}
	}
}

func TestEvents(t *testing.T) {
	b := newBench(t, "ab", 2, "pod-pod/other/tcp-rr")
	b.model.Fail = func(call int, _ host.Pair, _ family.Workload) (string, error) {
		if call == 2 {
			return "the generator was late", nil
		}
		return "", nil
	}
	b.run(t.Context())
	count := map[runner.Kind]int{}
	elapsed, done := 0.0, 0
	for i, e := range b.events {
		count[e.Kind]++
		if e.Elapsed < elapsed || e.Done < done || e.Blocks != 2 || e.Runs != 6 {
			t.Errorf("event %d: %+v", i, e)
		}
		elapsed, done = e.Elapsed, e.Done
		if e.Kind == runner.RunDone && (e.Value == nil || e.Value.Metric != "p50") {
			t.Errorf("event %d has value %v", i, e.Value)
		}
		if e.Kind == runner.RunInvalid && e.Reason != "the generator was late" {
			t.Errorf("event %d has reason %q", i, e.Reason)
		}
	}
	if b.events[0].Kind != runner.Planned || b.events[len(b.events)-1].Kind != runner.Finished || done != 6 {
		t.Errorf("events begin with %s, end with %s, %d done", b.events[0].Kind, b.events[len(b.events)-1].Kind, done)
	}
	if first := b.events[0].Remaining; first < 6*1.2 || first > 6*1.8 {
		t.Errorf("at first %g s are predicted for six runs", first)
	}
	if count[runner.BlockStarted] != 2 || count[runner.RunInvalid] != 1 ||
		count[runner.RunStarted] != count[runner.RunDone]+1 {
		t.Errorf("events: %v", count)
	}
}

// TestRunIsOnDiskBeforeTheNext checks that a run is on disk before the next begins.
func TestRunIsOnDiskBeforeTheNext(t *testing.T) {
	b := newBench(t, "ab", 2, "pod-pod/other/tcp-rr")
	dir := filepath.Join(t.TempDir(), "r")
	w, err := store.Create(dir, b.config.Experiment)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	b.config.Sink = w
	b.model.Fail = func(call int, _ host.Pair, _ family.Workload) (string, error) {
		got, err := store.Open(dir)
		if err != nil || len(got.Runs) != call-1 || len(got.Warnings) != 0 {
			t.Errorf("before run %d: %d runs, %v, %v", call, len(got.Runs), got.Warnings, err)
		}
		return "", nil
	}
	b.run(t.Context())
	if b.model.Calls() != 6 {
		t.Errorf("%d runs, wanted 6", b.model.Calls())
	}
}

func TestInvalidRunRepeatsTheBlock(t *testing.T) {
	for _, test := range []struct {
		name string
		fail func(call int) (string, error)
	}{
		{"gate", func(call int) (string, error) {
			if call == 2 {
				return "the CPU was throttled", nil
			}
			return "", nil
		}},
		{"error", func(call int) (string, error) {
			if call == 2 {
				return "", errors.New("connection reset")
			}
			return "", nil
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newBench(t, "abc", 2, "pod-pod/other/tcp-rr")
			b.config.Experiment.Cases = b.config.Experiment.Cases[:1] // without the bound
			b.model.Fail = func(call int, _ host.Pair, _ family.Workload) (string, error) { return test.fail(call) }
			s := b.run(t.Context())
			var want []string
			first := runner.Order(b.config.Experiment, b.config.Experiment.Cases[0], 1, 1)
			want = append(want, "1.1 tcp-rr "+first[0], "1.1 tcp-rr "+first[1]+"!")
			for _, name := range runner.Order(b.config.Experiment, b.config.Experiment.Cases[0], 1, 2) {
				want = append(want, "1.2 tcp-rr "+name)
			}
			for _, name := range runner.Order(b.config.Experiment, b.config.Experiment.Cases[0], 2, 1) {
				want = append(want, "2.1 tcp-rr "+name)
			}
			if diff := cmp.Diff(want, describe(b.sink.runs)); diff != "" {
				t.Errorf("runs (-want +got):\n%s", diff)
			}
			if s.Invalid[first[1]] != 1 || s.GivenUp != 0 || s.Runs != 7 {
				t.Errorf("summary %+v", s)
			}
			if len(b.sink.raw[1]) == 0 {
				t.Error("the failed run has no raw files")
			}
		})
	}
}

func TestGiveUp(t *testing.T) {
	broken := errors.New("no route to host")
	for _, test := range []struct {
		name  string
		fails func(label string, call int) bool
		want  result.NotMeasured
		// complete are the targets that still have all blocks; empty if the case is given up.
		complete string
		invalid  int
	}{
		{"one target", func(label string, _ int) bool { return label == "c" },
			result.NotMeasured{Target: "c", Case: "pod-pod/other/tcp-rr"}, "ab", 3},
		{"the baseline", func(label string, _ int) bool { return label == "a" },
			result.NotMeasured{Target: "*", Case: "pod-pod/other/tcp-rr"}, "", 3},
		{"everything", func(string, int) bool { return true },
			result.NotMeasured{Target: "*", Case: "pod-pod/other/tcp-rr"}, "", 3},
		{"one target, then another", func() func(string, int) bool {
			failed := 0
			return func(label string, _ int) bool {
				fails := failed < 2 && label == "b" || failed == 2 && label == "c"
				if fails {
					failed++
				}
				return fails
			}
		}(), result.NotMeasured{Target: "*", Case: "pod-pod/other/tcp-rr"}, "", 3},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newBench(t, "abc", 3, "pod-pod/other/tcp-rr", "pod-pod/other/tcp-crr")
			b.model.Fail = func(call int, p host.Pair, w family.Workload) (string, error) {
				if w.Traits().Kind == string(netload.TCPRR) && strings.Contains(p.Client.Name(), "/") &&
					test.fails(targettest.Label(p.Client), call) {
					return "", broken
				}
				return "", nil
			}
			s := b.run(t.Context())
			invalid := 0
			for _, n := range s.Invalid {
				invalid += n
			}
			if invalid != test.invalid || s.GivenUp != 1 || s.Stopped != runner.StopComplete {
				t.Errorf("%d invalid, %d given up, stopped %s", invalid, s.GivenUp, s.Stopped)
			}
			if len(b.sink.notMeasured) != 1 {
				t.Fatalf("not measured: %v", b.sink.notMeasured)
			}
			got := b.sink.notMeasured[0]
			if got.Target != test.want.Target || got.Case != test.want.Case ||
				!strings.Contains(got.Reason, "no route to host") || !strings.Contains(got.Reason, "3 failed attempts") {
				t.Errorf("not measured: %+v", got)
			}
			wantCompleteBut(t, b, test.want.Case, test.complete)
		})
	}
}

// wantCompleteBut checks that every case is complete on all targets, except one, which is complete on the named ones;
// no names: it was given up.
func wantCompleteBut(t *testing.T, b *bench, caseName, names string) {
	t.Helper()
	for _, c := range b.config.Experiment.Cases {
		e := b.config.Experiment
		e.Cases = []result.Case{c}
		switch {
		case c.Name != caseName:
			wantComplete(t, b.sink.runs, e, "abc")
		case names != "":
			wantComplete(t, b.sink.runs, e, names)
		}
	}
}

// TestAttemptsByDefault checks that by default a case survives four failed attempts at a block, as on a busy machine.
func TestAttemptsByDefault(t *testing.T) {
	b := newBench(t, "ab", 1, "pod-pod/other/tcp-rr")
	b.config.Experiment.Cases = b.config.Experiment.Cases[:1]
	b.config.Limits = runner.Limits{}
	b.model.Fail = func(call int, _ host.Pair, _ family.Workload) (string, error) {
		if call <= 4 {
			return "the window was short", nil
		}
		return "", nil
	}
	if s := b.run(t.Context()); s.GivenUp != 0 || s.Runs != 2 || b.model.Calls() != 6 {
		t.Errorf("%d calls, %+v", b.model.Calls(), s)
	}
	b = newBench(t, "ab", 1, "pod-pod/other/tcp-rr")
	b.config.Limits = runner.Limits{}
	b.model.Fail = func(int, host.Pair, family.Workload) (string, error) { return "the window was short", nil }
	if s := b.run(t.Context()); s.GivenUp != 2 || b.model.Calls() != 10 { // the case and its bound
		t.Errorf("%d calls, %+v", b.model.Calls(), s)
	}
}

func TestNotSupported(t *testing.T) {
	missing := result.NotSupported("iperf3 is not installed")
	for _, test := range []struct {
		name  string
		label string
		open  bool
		want  result.NotMeasured
	}{
		{"the tool on one target", "b", false, result.NotMeasured{Target: "b",
			Case: "pod-pod/other/tcp-rr", Reason: string(missing)}},
		{"the places of one target", "b", true, result.NotMeasured{Target: "b",
			Case: "pod-pod/other/tcp-rr", Reason: string(missing)}},
		{"the tool on the baseline", "a", false, result.NotMeasured{Target: "*",
			Case: "pod-pod/other/tcp-rr", Reason: "the baseline a cannot: " + string(missing)}},
		{"the places of the baseline", "a", true, result.NotMeasured{Target: "*",
			Case: "pod-pod/other/tcp-rr", Reason: "the baseline a cannot: " + string(missing)}},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newBench(t, "abc", 3, "pod-pod/other/tcp-rr")
			if test.open {
				b.twins[test.label].OpenFails = func(_ int, p targets.Placement) error {
					if p.Path == result.PodPodOther {
						return fmt.Errorf("build: %w", missing)
					}
					return nil
				}
				test.want.Reason = strings.Replace(test.want.Reason, string(missing), "build: "+string(missing), 1)
			} else {
				b.model.Fail = func(_ int, p host.Pair, _ family.Workload) (string, error) {
					if targettest.Label(p.Client) == test.label && strings.Contains(p.Client.Name(), "/") {
						return "", missing
					}
					return "", nil
				}
			}
			s := b.run(t.Context())
			if diff := cmp.Diff([]result.NotMeasured{test.want}, s.NotMeasured); diff != "" ||
				!cmp.Equal(b.sink.notMeasured, s.NotMeasured) {
				t.Errorf("not measured (-want +got):\n%s", diff)
			}
			if s.GivenUp != 0 || len(s.Invalid) != 0 || s.Stopped != runner.StopComplete {
				t.Errorf("summary %+v", s)
			}
			e := b.config.Experiment
			if len(e.NotMeasured) != 0 {
				t.Error("the caller's experiment was changed")
			}
			if test.label == "a" {
				// Without the baseline, nothing more of the case is measured.
				order := runner.Order(e, e.Cases[0], 1, 1)
				want := order[:slices.Index(order, "a")]
				if len(want) == len(order)-1 {
					t.Fatalf("the order %v does not test it", order)
				}
				for _, r := range b.sink.runs {
					if r.Case == e.Cases[0].Name && (r.Block != 1 || !slices.Contains(want, r.Target)) {
						t.Errorf("block %d was measured on %s", r.Block, r.Target)
					}
				}
				e.Cases = slices.DeleteFunc(slices.Clone(e.Cases), func(c result.Case) bool { return c.Role != result.Bound })
			}
			wantComplete(t, b.sink.runs, e, "ac")
		})
	}
}

func TestBudget(t *testing.T) {
	b := newBench(t, "ab", 11, "pod-pod/other/*")
	b.config.Experiment.Design.Budget = 30
	s := b.run(t.Context())
	if s.Stopped != runner.StopBudget {
		t.Fatalf("stopped %s", s.Stopped)
	}
	const oneRun = 1.52
	if s.Total > 30+oneRun || s.Total <= 30-oneRun {
		t.Errorf("took %.2f s of a budget of 30 s", s.Total)
	}
	// Every block that was begun is complete.
	byBlock := map[string]int{}
	for _, r := range b.sink.runs {
		byBlock[fmt.Sprintf("%s/%d", r.Case, r.Block)]++
	}
	for name, n := range byBlock {
		if want := 2; n != want && !strings.HasPrefix(name, "node-node") {
			t.Errorf("%s has %d runs, wanted %d", name, n, want)
		}
	}
	for _, e := range b.events {
		if e.Elapsed+e.Remaining > 30+oneRun {
			t.Errorf("at %g s, %g s are said to remain of a budget of 30 s", e.Elapsed, e.Remaining)
		}
	}
}

func TestBudgetTooSmallForAnything(t *testing.T) {
	b := newBench(t, "ab", 11)
	b.config.Experiment.Design.Budget = 0.001
	// One run more than the budget is allowed, so a bound may be measured, but no block of two.
	s := b.run(t.Context())
	for _, r := range b.sink.runs {
		if !strings.HasPrefix(r.Case, "node-node/") {
			t.Errorf("%s was measured", r.Case)
		}
	}
	if s.Stopped != runner.StopBudget {
		t.Errorf("stopped %s", s.Stopped)
	}
}

// TestCancelAndResume checks that the experiment stops in order when it is cancelled in any run, and that the resumed
// experiment ends complete.
func TestCancelAndResume(t *testing.T) {
	whole := newBench(t, "ab", 3, "pod-pod/other/tcp-rr")
	whole.run(t.Context())
	for moment := 1; moment <= len(whole.sink.runs); moment++ {
		b := newBench(t, "ab", 3, "pod-pod/other/tcp-rr")
		dir := filepath.Join(t.TempDir(), "r")
		w, err := store.Create(dir, b.config.Experiment)
		if err != nil {
			t.Fatal(err)
		}
		b.config.Sink = w
		ctx, cancel := context.WithCancel(t.Context())
		b.model.Wait = func(ctx context.Context, d time.Duration) error {
			if b.model.Calls() == moment {
				cancel()
			}
			b.clock.Sleep(ctx, d)
			return ctx.Err()
		}
		s := b.run(ctx)
		w.Close()
		if s.Stopped != runner.StopInterrupted || s.Runs != moment-1 {
			t.Errorf("cancelled in run %d: stopped %s after %d runs", moment, s.Stopped, s.Runs)
		}
		tear(t, dir)
		got := resume(t, dir)
		wantComplete(t, got, b.config.Experiment, "ab")
		if len(got) > len(whole.sink.runs)+1 {
			t.Errorf("cancelled in run %d: %d runs in the end, without it %d", moment, len(got), len(whole.sink.runs))
		}
	}
}

// tear appends an incomplete line to the runs, as a crash can leave it.
func tear(t *testing.T, dir string) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(dir, store.RunsFile), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(`{"schema":"knotmeter/run/v2","run":"00`); err != nil {
		t.Fatal(err)
	}
}

// resume completes the experiment in dir with fresh twins, and returns all runs.
func resume(t *testing.T, dir string) []result.Run {
	t.Helper()
	w, had, err := store.Resume(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	b := newBench(t, "ab", 3, "pod-pod/other/tcp-rr")
	b.config.Experiment, b.config.Sink = had.Experiment, w
	b.config.Earlier, b.config.EarlierSites, b.config.EarlierFacts = had.Runs, had.Sites, had.Facts
	if s := b.run(t.Context()); s.Stopped != runner.StopComplete || s.Runs != b.model.Calls() {
		t.Errorf("resumed: %+v", s)
	}
	got, err := store.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return got.Runs
}

// TestResumeComplete checks that a complete experiment has nothing left to do.
func TestResumeComplete(t *testing.T) {
	b := newBench(t, "ab", 3)
	b.run(t.Context())
	again := newBench(t, "ab", 3)
	again.config.Earlier, again.config.EarlierFacts = b.sink.runs, b.sink.facts
	s := again.run(t.Context())
	if s.Runs != 0 || again.model.Calls() != 0 || s.Stopped != runner.StopComplete ||
		len(s.Warnings) != 0 || len(again.sink.facts) != 0 {
		t.Errorf("%+v", s)
	}
	more := newBench(t, "ab", 5)
	more.config.Earlier = b.sink.runs
	more.run(t.Context())
	wantComplete(t, append(slices.Clone(b.sink.runs), more.sink.runs...), more.config.Experiment, "ab")
	if more.sink.runs[0].Block != 4 || more.sink.runs[0].ID != fmt.Sprintf("%04d", len(b.sink.runs)+1) {
		t.Errorf("first run of the blocks added is %+v", more.sink.runs[0])
	}
}

// TestResumeAfterFailedRun checks that an attempt whose last run failed is not complete, though every target has a run
// in it.
func TestResumeAfterFailedRun(t *testing.T) {
	b := newBench(t, "ab", 1, "pod-pod/other/tcp-rr")
	b.config.Experiment.Cases = b.config.Experiment.Cases[:1]
	b.run(t.Context())
	b.sink.runs[1].Invalid = []result.Warning{{Code: result.GeneratorLate, Text: "late"}}
	again := newBench(t, "ab", 1, "pod-pod/other/tcp-rr")
	again.config.Experiment, again.config.Earlier = b.config.Experiment, b.sink.runs
	if s := again.run(t.Context()); s.Runs != 2 || again.sink.runs[0].Attempt != 2 {
		t.Errorf("%+v", s)
	}
}

// TestResumeCountsFailures checks that failed attempts of an earlier session count, except those on a target that was
// given up since.
func TestResumeCountsFailures(t *testing.T) {
	b := newBench(t, "ab", 1, "pod-pod/other/tcp-rr")
	failed := result.Run{Schema: result.RunSchema, Case: "pod-pod/other/tcp-rr",
		Target: "b", Block: 1, Slot: 1, Tool: "model",
		Invalid: []result.Warning{{Code: result.GeneratorLate, Text: "late"}}}
	for i := range 2 {
		failed.ID, failed.Attempt = fmt.Sprintf("%04d", i+1), i+1
		b.config.Earlier = append(b.config.Earlier, failed)
	}
	b.model.Fail = func(_ int, p host.Pair, _ family.Workload) (string, error) {
		if targettest.Label(p.Client) == "b" {
			return "late again", nil
		}
		return "", nil
	}
	s := b.run(t.Context())
	if s.GivenUp != 1 || s.Invalid["b"] != 1 {
		t.Errorf("%+v", s)
	}
	// As if the crash had come right after giving up.
	again := newBench(t, "abc", 2, "pod-pod/other/tcp-rr")
	failed.ID, failed.Attempt = "0003", 3
	again.config.Earlier = append(b.config.Earlier, failed)
	again.config.Experiment.NotMeasured = s.NotMeasured
	if s := again.run(t.Context()); s.GivenUp != 0 || again.twins["b"].Opens() != 0 || len(s.NotMeasured) != 1 {
		t.Errorf("after giving up: %+v", s)
	}
	wantComplete(t, again.sink.runs, again.config.Experiment, "ac")
}

// TestUnavailable checks that a target that is unavailable for a while only delays the experiment, and that one that
// stays unavailable ends it, without giving up a case.
func TestUnavailable(t *testing.T) {
	unavailable := fmt.Errorf("%w: gone", targets.ErrUnavailable)
	b := newBench(t, "ab", 2, "pod-pod/other/tcp-rr")
	failing := 0
	b.twins["b"].OpenFails = func(n int, _ targets.Placement) error {
		if n == 2 || n == 3 {
			failing++
			return unavailable
		}
		return nil
	}
	if s := b.run(t.Context()); s.Stopped != runner.StopComplete ||
		failing != 2 || len(s.Invalid) != 0 || len(s.NotMeasured) != 0 {
		t.Errorf("away for a while: %+v", s)
	}
	wantComplete(t, b.sink.runs, b.config.Experiment, "ab")

	b = newBench(t, "ab", 2, "pod-pod/other/tcp-rr")
	b.twins["b"].OpenFails = func(n int, _ targets.Placement) error {
		if n > 1 {
			return unavailable
		}
		return nil
	}
	s := b.run(t.Context())
	if s.Stopped != runner.StopUnavailable || !strings.Contains(s.Unavailable, "b: ") ||
		len(s.Invalid) != 0 || s.GivenUp != 0 || b.twins["b"].Opens() != 4 {
		t.Errorf("away for good: %+v after %d", s, b.twins["b"].Opens())
	}
	again := newBench(t, "ab", 2, "pod-pod/other/tcp-rr")
	again.config.Earlier, again.config.Experiment.NotMeasured = b.sink.runs, s.NotMeasured
	if s := again.run(t.Context()); s.Stopped != runner.StopComplete || len(s.NotMeasured) != 0 {
		t.Errorf("resumed: %+v", s)
	}
}

func TestFacts(t *testing.T) {
	b := newBench(t, "ab", 1, "pod-pod/other/tcp-rr")
	b.twins["b"].Environment = []result.Fact{{Name: "kernel", Value: "6.19"}}
	b.config.EarlierFacts = map[string][]result.Fact{"b": {{Name: "kernel", Value: "6.18"}, {Name: "gone", Value: "x"}}}
	b.config.Version = "v2"
	s := b.run(t.Context())
	if len(b.sink.sessions) != 1 || !cmp.Equal(b.sink.sessions[0], s.Session) {
		t.Fatalf("sessions written: %+v", b.sink.sessions)
	}
	if now := s.Session; now.Version != "v2" || now.Start.IsZero() ||
		result.FactOf(now.Facts["b"], "kernel") != "6.19" || len(now.Facts["a"]) == 0 {
		t.Errorf("session %+v", now)
	}
	if _, again := b.sink.facts["b"]; again || len(b.sink.facts) != 1 {
		t.Errorf("facts written: %v", b.sink.facts)
	}
}

// factless is a target whose Facts returns an error.
type factless struct {
	*targettest.Twin
	err error
}

func (f factless) Facts(context.Context) ([]result.Fact, error) { return nil, f.err }

// silent is a target whose Facts never returns before its deadline.
type silent struct{ *targettest.Twin }

func (silent) Facts(ctx context.Context) ([]result.Fact, error) {
	<-ctx.Done()
	return nil, fmt.Errorf("%w (pod p: Pending)", context.Cause(ctx))
}

// TestFactsDeadline checks that the error includes the target's own if the facts take too long.
func TestFactsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "a", 1, "pod-pod/other/tcp-rr")
		b.config.Targets[0].Places = silent{b.twins["a"]}
		s, err := runner.Run(t.Context(), b.config)
		want := "facts of target a: finding them took longer than 3m0s: context deadline exceeded (pod p: Pending)"
		if err == nil || err.Error() != want || s.Stopped != runner.StopFailed {
			t.Errorf("%+v, %v", s, err)
		}
	})
}

func TestFactsFail(t *testing.T) {
	broken := errors.New("no such cluster")
	for _, test := range []struct {
		name, target string
		err          error
		fatal        bool
	}{
		{"error", "b", broken, true},
		{"baseline not supported", "a", result.NotSupported("no namespaces"), true},
		{"other not supported", "b", result.NotSupported("no namespaces"), false},
	} {
		b := newBench(t, "ab", 1, "pod-pod/other/tcp-rr")
		for i, tg := range b.config.Targets {
			if tg.Name == test.target {
				b.config.Targets[i].Places = factless{b.twins[tg.Name], test.err}
			}
		}
		s, err := runner.Run(t.Context(), b.config)
		if test.fatal {
			if !errors.Is(err, test.err) || !strings.Contains(err.Error(), "target "+test.target) {
				t.Errorf("%s: %v", test.name, err)
			}
			continue
		}
		want := result.NotMeasured{Target: "b", Case: "*", Reason: "no namespaces"}
		if err != nil || !cmp.Equal(s.NotMeasured, []result.NotMeasured{want}) || b.twins["b"].Opens() != 0 || s.Runs != 2 {
			t.Errorf("%s: %+v, %v", test.name, s, err)
		}
	}
}

func TestDeadlines(t *testing.T) {
	hang := func(ctx context.Context, _ time.Duration) error { <-ctx.Done(); return ctx.Err() }
	for _, test := range []struct {
		name  string
		spoil func(*bench)
		want  string
	}{
		{"the tool hangs", func(b *bench) { b.model.Wait, b.config.Limits.Grace = hang, 10*time.Millisecond },
			"model took longer than"},
		{"opening hangs", func(b *bench) {
			b.twins["a"].OpenTakes, b.config.Limits.Open = time.Hour, 10*time.Millisecond
		}, "making a site took longer than"},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newBench(t, "a", 1, "pod-pod/other/tcp-rr")
			b.config.Experiment.Design.Duration, b.config.Experiment.Design.Warmup = 0.001, 0.001
			test.spoil(b)
			s := b.run(t.Context())
			if s.Runs != 0 || s.Invalid["a"] != 6 || s.GivenUp != 2 { // the case and its bound, three times each
				t.Errorf("%+v", s)
			}
			for _, r := range b.sink.runs {
				if !strings.HasPrefix(r.Invalid[0].Text, test.want) {
					t.Errorf("run %s: %v", r.ID, r.Invalid)
				}
			}
		})
	}
}

func TestCloseFails(t *testing.T) {
	b := newBench(t, "a", 1, "pod-pod/other/tcp-rr")
	b.twins["a"].CloseFails = errors.New("device busy")
	s := b.run(t.Context())
	if len(s.Warnings) != 1 || !strings.Contains(s.Warnings[0], "device busy") || s.Runs != 2 {
		t.Errorf("%+v", s)
	}
	if sites := b.sink.sites; len(sites) != 1 || len(sites[0].Warnings) != 1 ||
		sites[0].Warnings[0].Code != result.SiteNotRemoved {
		t.Errorf("%+v", sites)
	}
}

func TestSinkFails(t *testing.T) {
	full := errors.New("no space left on device")
	b := newBench(t, "ab", 2, "pod-pod/other/tcp-rr")
	b.sink.fail = full
	if _, err := runner.Run(t.Context(), b.config); !errors.Is(err, full) {
		t.Errorf("facts: %v", err)
	}
	b = newBench(t, "ab", 2, "pod-pod/other/tcp-rr")
	b.twins["b"].OpenFails = func(int, targets.Placement) error { b.sink.fail = full; return nil }
	if _, err := runner.Run(t.Context(), b.config); !errors.Is(err, full) {
		t.Errorf("runs: %v", err)
	}
}

// TestDecide checks that after each block, only the cases that Decide returns continue.
func TestDecide(t *testing.T) {
	b := newBench(t, "ab", 11, "pod-pod/other/tcp-rr", "pod-pod/other/tcp-crr")
	var asked []int
	b.config.Decide = func(e result.Experiment, done int, runs []result.Run) []string {
		asked = append(asked, done)
		for _, r := range runs {
			if len(r.Histograms) != 0 || len(r.Values) == 0 {
				t.Errorf("run %s has %d histograms, %d values", r.ID, len(r.Histograms), len(r.Values))
			}
		}
		switch {
		case done < 2:
			return []string{"pod-pod/other/tcp-rr", "pod-pod/other/tcp-crr"}
		case done < 4:
			return []string{"pod-pod/other/tcp-crr"}
		}
		return nil
	}
	b.run(t.Context())
	count := map[string]int{}
	for _, r := range b.sink.runs {
		count[r.Case]++
	}
	if want := map[string]int{"pod-pod/other/tcp-rr": 4, "pod-pod/other/tcp-crr": 8}; !cmp.Equal(count, want) ||
		!slices.Equal(asked, []int{0, 1, 2, 3, 4}) {
		t.Errorf("runs %v, asked %v", count, asked)
	}
	// The experiment must end even if Decide continues cases that cannot be measured.
	b = newBench(t, "ab", 11, "pod-pod/other/tcp-rr")
	b.config.Experiment.NotMeasured = []result.NotMeasured{{Target: "*", Case: "*", Reason: "none"}}
	b.config.Decide = func(result.Experiment, int, []result.Run) []string { return []string{"pod-pod/other/tcp-rr", "x"} }
	if s := b.run(t.Context()); s.Runs != 0 {
		t.Errorf("%+v", s)
	}
}

func TestConfigErrors(t *testing.T) {
	for _, test := range []struct {
		spoil func(*runner.Config)
		want  string
	}{
		{func(c *runner.Config) { c.Targets = c.Targets[:1] }, "target b of the experiment is not given"},
		{func(c *runner.Config) { c.Experiment.Cases = []result.Case{{Name: "x"}} }, "no such case"},
		{func(c *runner.Config) { c.Tool = nil }, "needs a tool"},
		{func(c *runner.Config) { c.Sink = nil }, "a sink"},
		{func(c *runner.Config) { c.Experiment.Tool = "iperf3" }, "measured with iperf3: the tool is model, not iperf3"},
	} {
		b := newBench(t, "ab", 1, "pod-pod/other/tcp-rr")
		test.spoil(&b.config)
		if _, err := runner.Run(t.Context(), b.config); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("error %v, wanted %q", err, test.want)
		}
	}
}
