package runner_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/golden"
	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/runner"
	"github.com/knotmeter/knotmeter/internal/stats"
	"github.com/knotmeter/knotmeter/internal/targets"
	"github.com/knotmeter/knotmeter/internal/targets/targettest"
)

// A testbed is a bench whose targets are measured in turn: the file "place" holds the name of the one in place.
type testbed struct {
	*bench
	dir string
}

// newTestbed returns a testbed whose switches write the target's name to the file, and that has a restore command.
func newTestbed(t *testing.T, names string, blocks int, cases ...string) *testbed {
	t.Helper()
	b := &testbed{newBench(t, names, blocks, cases...), t.TempDir()}
	e := &b.config.Experiment
	for i, x := range e.Targets {
		e.Targets[i].Underlay = ""
		e.Targets[i].Switch = b.command(fmt.Sprintf(`echo %s > place; echo "$KNOTMETER_TARGET" >> log`, x.Name))
	}
	e.Restore = b.command("echo default > place; echo restored >> log; echo put back")
	b.model.Fail = func(_ int, p host.Pair, _ family.Workload) (string, error) {
		if name := targettest.Label(p.Client); name != b.place() {
			t.Errorf("%s is measured while %s is in place", name, b.place())
		}
		return "", nil
	}
	return b
}

func (b *testbed) command(text string) *result.Command {
	return &result.Command{Text: text, Directory: b.dir, Limit: 600}
}

func (b *testbed) target(name string) *result.Target {
	list := b.config.Experiment.Targets
	return &list[slices.IndexFunc(list, func(t result.Target) bool { return t.Name == name })]
}

func (b *testbed) place() string { return strings.TrimSpace(b.read("place")) }

// log returns the commands that ran, in order.
func (b *testbed) log() []string { return strings.Fields(b.read("log")) }

func (b *testbed) read(name string) string {
	text, err := os.ReadFile(filepath.Join(b.dir, name))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		b.t.Error(err)
	}
	return string(text)
}

// wantVisits checks that each case has one valid run that counts on each target in each block, and that the run belongs
// to a visit of this target in this block that did not fail.
func (b *testbed) wantVisits(names string) {
	b.t.Helper()
	e, counts := b.config.Experiment, result.LastAttempts(b.sink.runs)
	for block := 1; block <= e.Design.Blocks; block++ {
		for _, c := range e.Cases {
			for _, name := range strings.Split(names, "") {
				n := 0
				for i := range b.sink.runs {
					r := &b.sink.runs[i]
					if r.Block != block || r.Case != c.Name || r.Target != name {
						continue
					}
					if of := b.sink.switches[r.Visit-1]; of.Target != name || of.Block != block || of.Failed != "" {
						b.t.Errorf("run %s is of visit %+v", r.ID, of)
					}
					if r.Valid() && counts(r) {
						n++
					}
				}
				if n != 1 {
					b.t.Errorf("block %d has %d runs of %s on %s that count", block, n, c.Name, name)
				}
			}
		}
	}
}

// TestVisitsGolden checks that the order of visits does not change, because resumed experiments draw it again, and that
// each block visits each target once, at every position equally often.
func TestVisitsGolden(t *testing.T) {
	e := scheduled(7, "abc", "pod-pod/other/tcp-stream", "pod-pod/other/tcp-rr")
	e.Targets[0].Switch = &result.Command{}
	e.NotMeasured = []result.NotMeasured{{Target: "c", Case: "pod-pod/other/tcp-rr"}}
	var b strings.Builder
	for block := 1; block <= 4; block++ {
		fmt.Fprintf(&b, "block %d visits %v\n", block, runner.Visits(e, block))
		for _, cb := range runner.Schedule(e, block) {
			fmt.Fprintf(&b, "  %-24s %v, again %v\n", cb.Case.Name, cb.Targets, runner.Order(e, cb.Case, block, 2))
		}
	}
	golden.Check(t, "testdata/visits.golden", b.String())
	position := map[string]int{}
	const blocks = 4000
	for block := 1; block <= blocks; block++ {
		for at, name := range runner.Visits(e, block) {
			position[fmt.Sprintf("%s at %d", name, at)]++
		}
	}
	wantEven(t, "visits", position, 9, blocks, 1.0/3)
}

// An installation is a target that is put in place in a block, to be measured or only to displace another.
type installation struct {
	target   string
	block    int
	measured bool
}

// installations returns the visits of all blocks, and before each that follows one of the same target another target.
func installations(e result.Experiment) (all []installation) {
	before := ""
	for block := 1; block <= e.Design.Blocks; block++ {
		for _, name := range runner.Visits(e, block) {
			if name == before {
				i := slices.IndexFunc(e.Targets, func(t result.Target) bool { return t.Name != name })
				all = append(all, installation{e.Targets[i].Name, block, false})
			}
			all, before = append(all, installation{name, block, true}), name
		}
	}
	return all
}

// installed returns the names of the targets that are put in place.
func installed(e result.Experiment) (names []string) {
	for _, x := range installations(e) {
		names = append(names, x.target)
	}
	return names
}

// TestNoTwoBlocksShareAnInstallation runs experiments whose switches do nothing if their target is in place, as people
// write them, and whose installations differ by chance while the targets are equal. Every switch has
// to install, also the first after a resumption.
func TestNoTwoBlocksShareAnInstallation(t *testing.T) {
	b := newTestbed(t, "ab", 10)
	for _, name := range []string{"a", "b"} {
		b.target(name).Switch = b.command(fmt.Sprintf(
			`test "$(cat place)" = %s || { echo %[1]s > place; echo new >> installations; }; echo %[1]s >> log`, name))
	}
	interrupted := false
	ctx, cancel := context.WithCancel(t.Context())
	b.config.Events = func(e runner.Event) {
		if e.Kind == runner.BlockStarted && e.Block == 6 && !interrupted {
			interrupted = true
			cancel()
		}
	}
	b.config.Experiment.Restore = nil // the testbed stays as the interrupted session left it
	b.run(ctx)
	b.config.Earlier, b.config.EarlierSites = b.sink.runs, b.sink.sites
	b.config.EarlierSwitches, b.config.EarlierFacts = b.sink.switches, b.sink.facts
	b.run(t.Context())
	b.wantVisits("ab")
	want := installed(b.config.Experiment)
	if got := b.log(); !interrupted || len(want) < 22 || !slices.Equal(got, want) {
		t.Errorf("commands ran for %v, wanted %v", got, want)
	}
	if n := len(strings.Fields(b.read("installations"))); n != len(want) {
		t.Errorf("%d installations for %d switches", n, len(want))
	}
}

// TestErrorOfConfigurationsInTurn simulates the error probability of experiments between equal configurations whose
// installations differ by chance, with the order of their visits: as they are put in place, and as they would be if a
// switch to the target that is in place did nothing.
func TestErrorOfConfigurationsInTurn(t *testing.T) {
	for _, names := range []string{"ab", "abc"} {
		random := rand.New(rand.NewPCG(24, uint64(len(names))))
		wrong, shared, of := 0, 0, 4000
		for seed := range of {
			e := scheduled(uint64(seed), names, "pod-pod/other/tcp-rr")
			for i := range e.Targets {
				e.Targets[i].Switch = &result.Command{}
			}
			e.Design.Blocks = 11
			if differs(e, random, false) {
				wrong++
			}
			if differs(e, random, true) {
				shared++
			}
		}
		t.Logf("%s: wrong in %.1f %%, in %.1f %% if blocks shared installations", names,
			100*float64(wrong)/float64(of), 100*float64(shared)/float64(of))
		if limit := float64(of) * (0.05 + 3*math.Sqrt(0.05*0.95/float64(of))); float64(wrong) > limit {
			t.Errorf("%s: wrong in %d of %d", names, wrong, of)
		}
		if names == "ab" && float64(shared) < 0.08*float64(of) {
			t.Errorf("shared installations do no harm: wrong in %d of %d", shared, of)
		}
	}
}

// differs simulates an experiment and reports whether the second target is found to be different from the first. With
// skip, no target is put in place in between.
func differs(e result.Experiment, random *rand.Rand, skip bool) bool {
	values, inPlace, effect := map[installation]float64{}, "", 0.0
	for _, x := range installations(e) {
		if skip && !x.measured {
			continue
		}
		if x.target != inPlace {
			inPlace, effect = x.target, random.NormFloat64()
		}
		values[x] = effect + 0.05*random.NormFloat64()
	}
	var d []float64
	for block := 1; block <= e.Design.Blocks; block++ {
		d = append(d, values[installation{"b", block, true}]-values[installation{"a", block, true}])
	}
	return stats.Paired(d, 0.05, stats.OneLook{}).Excludes(0)
}

func TestVisits(t *testing.T) {
	b := newTestbed(t, "abc", 4)
	for name, twin := range b.twins {
		twin.Environment = []result.Fact{{Name: "name", Value: name}}
	}
	s := b.run(t.Context())
	if s.Stopped != runner.StopComplete || s.NotRestored != "" || len(s.Invalid) != 0 || len(s.Warnings) != 0 {
		t.Errorf("%+v", s)
	}
	b.wantVisits("abc")
	want, of := installed(b.config.Experiment), installations(b.config.Experiment)
	if got := b.log(); !slices.Equal(got, append(want, "restored")) || b.place() != "default" {
		t.Errorf("commands ran for %v, wanted %v; %s is in place", got, want, b.place())
	}
	for i, r := range b.sink.switches {
		switch {
		case i == len(want):
			if r.Target != "" || r.Block != 0 || r.Output != "put back" {
				t.Errorf("restored: %+v", r)
			}
		case r.Target != want[i] || r.Block != of[i].block || r.Failed != "" || result.FactOf(r.Facts, "name") != r.Target:
			t.Errorf("switch %d: %+v", i+1, r)
		}
	}
	for name, twin := range b.twins {
		if twin.Opens() != 4 || result.FactOf(b.sink.facts[name], "name") != name {
			t.Errorf("%s has %d sites, facts %v", name, twin.Opens(), b.sink.facts[name])
		}
	}
	if len(b.sink.sessions) != 1 || len(b.sink.sessions[0].Facts) != 0 {
		t.Errorf("before the first switch: %+v", b.sink.sessions)
	}
	slots := map[string]int{}
	for _, r := range b.sink.runs {
		slots[fmt.Sprint(r.Block, r.Target)] = r.Slot
		if order := runner.Visits(b.config.Experiment, r.Block); order[r.Slot-1] != r.Target && r.Case[:9] != "node-node" {
			t.Errorf("run %s of block %d is in slot %d", r.ID, r.Block, r.Slot)
		}
	}
	started := 0
	for _, e := range b.events {
		if e.Kind == runner.SwitchStarted {
			if started++; e.Visit != started || e.Visits != 12 {
				t.Errorf("event %d: %+v", started, e)
			}
		}
	}
	if started != 12 || b.events[0].Visits != 12 {
		t.Errorf("%d switches, planned %d", started, b.events[0].Visits)
	}
}

// TestFailedRunInAVisit checks that a failed run is repeated in the same visit, without visiting the other targets
// again.
func TestFailedRunInAVisit(t *testing.T) {
	for _, broken := range []error{nil, errors.New("connection reset")} {
		b := newTestbed(t, "ab", 2, "pod-pod/other/tcp-rr")
		check := b.model.Fail
		b.model.Fail = func(call int, p host.Pair, w family.Workload) (string, error) {
			if _, err := check(call, p, w); call == 4 && err == nil {
				return "the CPU was throttled", broken
			}
			return "", nil
		}
		b.run(t.Context())
		b.wantVisits("ab")
		if n := len(b.log()); n != len(installed(b.config.Experiment))+1 {
			t.Errorf("%v: %d commands: %v", broken, n, b.log())
		}
		for _, r := range b.sink.runs {
			if r.Attempt > 1 && r.Visit != b.sink.runs[3].Visit {
				t.Errorf("%v: measured again: %+v", broken, r)
			}
		}
	}
}

// TestFailedVisit checks that a failed visit is repeated after the others, that its output is kept, and that the rest
// of the experiment is not affected.
func TestFailedVisit(t *testing.T) {
	b := newTestbed(t, "ab", 2, "pod-pod/other/tcp-rr")
	b.target("b").Switch = b.command(`echo b > place; echo b >> log
		test -e broken || { touch broken; echo not today; echo really >&2; exit 3; }`)
	s := b.run(t.Context())
	b.wantVisits("ab")
	if s.Stopped != runner.StopComplete || s.GivenUp != 0 || len(b.log()) != 2*2+1+1 {
		t.Errorf("%+v, %v", s, b.log())
	}
	failed := slices.IndexFunc(b.sink.switches, func(r result.Switch) bool { return r.Failed != "" })
	if r := b.sink.switches[failed]; r.Target != "b" || !strings.HasPrefix(r.Output, "not today\nreally") ||
		!strings.Contains(r.Failed, "exit status 3; it printed at last: not today | really") {
		t.Errorf("%+v", r)
	}
	if !slices.ContainsFunc(b.events, func(e runner.Event) bool {
		return e.Kind == runner.SwitchFailed && e.Target == "b" && strings.Contains(e.Reason, "not today")
	}) {
		t.Errorf("no event has the output: %+v", b.events)
	}
}

// TestVisitsThatAllFail checks that a target whose visits all fail is given up; if it is the baseline, the experiment
// ends and can be resumed.
func TestVisitsThatAllFail(t *testing.T) {
	for _, name := range []string{"a", "b"} {
		b := newTestbed(t, "abc", 2, "pod-pod/other/tcp-rr")
		b.target(name).Switch = b.command("echo " + name + " >> log; exit 1")
		s := b.run(t.Context())
		tries := 0
		for _, ran := range b.log() {
			if ran == name {
				tries++
			}
		}
		if tries != 3 || b.place() != "default" {
			t.Errorf("%s was tried %d times; %s is in place", name, tries, b.place())
		}
		if name == b.config.Experiment.Baseline {
			if s.Stopped != runner.StopUnavailable || !strings.Contains(s.Unavailable, "a, 3 failed visits in block 1: ") ||
				len(b.sink.notMeasured) != 0 {
				t.Errorf("%+v, %+v", s, b.sink.notMeasured)
			}
			continue
		}
		if s.Stopped != runner.StopComplete || s.GivenUp != 1 || len(b.sink.notMeasured) != 1 ||
			b.sink.notMeasured[0].Target != name || b.sink.notMeasured[0].Case != "*" ||
			!strings.Contains(b.sink.notMeasured[0].Reason, "given up after 3 failed visits in block 1") {
			t.Errorf("%+v, %+v", s, b.sink.notMeasured)
		}
		b.wantVisits("ac")
	}
}

// TestSwitchThatHangs checks that a switch that hangs is killed with its children.
func TestSwitchThatHangs(t *testing.T) {
	var child int
	for limit := 0.5; child == 0; limit *= 4 { // on a busy machine the command may take longer to start
		b := newTestbed(t, "ab", 1, "pod-pod/other/tcp-rr")
		hangs := b.command(`sleep 100000 & echo waiting; echo $! > child; wait`)
		hangs.Limit = limit
		b.target("b").Switch = hangs
		b.config.Limits.FailedVisits = 1
		s := b.run(t.Context())
		if s.GivenUp != 1 || !strings.Contains(b.sink.notMeasured[0].Reason, "s and was killed") || b.place() != "default" {
			t.Fatalf("%+v, %+v", s, b.sink.notMeasured)
		}
		if child, _ = strconv.Atoi(strings.TrimSpace(b.read("child"))); child != 0 &&
			!strings.HasSuffix(b.sink.notMeasured[0].Reason, "; it printed at last: waiting") {
			t.Errorf("%+v", b.sink.notMeasured)
		}
	}
	for deadline := time.Now().Add(2 * time.Minute); running(child); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the child %d of the switch runs on", child)
		}
	}
}

// running reports whether a process exists and is not a zombie.
func running(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return syscall.Kill(pid, 0) == nil && !errors.Is(err, os.ErrNotExist)
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(after, "Z")
}

// TestSwitchThatLeavesADaemon checks that a switch succeeds even if a process that it leaves running holds its output
// open.
func TestSwitchThatLeavesADaemon(t *testing.T) {
	b := newTestbed(t, "a", 1, "pod-pod/other/tcp-rr")
	b.target("a").Switch = b.command(`echo a > place; sleep 100000 & exit 0`)
	s := b.run(t.Context())
	if b.wantVisits("a"); s.Stopped != runner.StopComplete || len(b.sink.switches) != 2 {
		t.Errorf("%+v, %+v", s, b.sink.switches)
	}
}

// TestVisitsAreInterruptedAndResumed checks that an interruption during a run or a switch restores the testbed; the
// resumed experiment makes the remaining visits, each after its switch.
func TestVisitsAreInterruptedAndResumed(t *testing.T) {
	for _, at := range []runner.Kind{runner.SwitchStarted, runner.SwitchDone, runner.RunStarted, runner.RunDone} {
		for nth := 1; nth <= 4; nth++ {
			b := newTestbed(t, "ab", 2, "pod-pod/other/*")
			ctx, cancel := context.WithCancel(t.Context())
			seen, limit := 0, nth
			b.config.Events = func(e runner.Event) {
				b.events = append(b.events, e)
				if e.Kind == at {
					if seen++; seen == limit {
						cancel()
					}
				}
			}
			s := b.run(ctx)
			if s.Stopped != runner.StopInterrupted || s.NotRestored != "" || b.place() != "default" {
				t.Fatalf("%s %d: %+v, %s is in place", at, nth, s, b.place())
			}
			before := len(b.sink.runs)
			limit = 0 // no further interruption
			b.config.Earlier, b.config.EarlierSites = b.sink.runs, b.sink.sites
			b.config.EarlierSwitches, b.config.EarlierFacts = b.sink.switches, b.sink.facts
			s = b.run(t.Context())
			if s.Stopped != runner.StopComplete || s.Runs != len(b.sink.runs)-before || b.place() != "default" {
				t.Errorf("%s %d, resumed: %+v, %s is in place", at, nth, s, b.place())
			}
			b.wantVisits("ab")
			cancel()
		}
	}
}

// TestSwitchIsRecordedFirst checks that no command runs before its beginning is recorded.
func TestSwitchIsRecordedFirst(t *testing.T) {
	b := newTestbed(t, "ab", 1, "pod-pod/other/tcp-rr")
	b.config.Events = func(e runner.Event) {
		if e.Kind == runner.SwitchStarted {
			b.sink.fail = errors.New("the disk is full")
		}
	}
	_, err := runner.Run(t.Context(), b.config)
	if !errors.Is(err, b.sink.fail) || len(b.sink.begun) != 1 || b.sink.begun[0].Target == "" || len(b.log()) > 0 {
		t.Errorf("%v, %+v, commands ran: %v", err, b.sink.begun, b.log())
	}
}

// TestRestoredAfterAKill checks that the resumed experiment restores the testbed if the program was killed before it
// did so, even if nothing is left to measure.
func TestRestoredAfterAKill(t *testing.T) {
	b := newTestbed(t, "ab", 1, "pod-pod/other/tcp-rr")
	b.run(t.Context())
	b.config.Earlier, b.config.EarlierFacts = b.sink.runs, b.sink.facts
	for name, test := range map[string]struct {
		earlier []result.Switch
		want    int
	}{
		"restored": {b.sink.switches, 0},
		"killed":   {b.sink.switches[:2], 1},
		"failed":   {append(slices.Clone(b.sink.switches[:2]), result.Switch{Failed: "no"}), 1},
	} {
		if err := os.Remove(filepath.Join(b.dir, "log")); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		b.config.EarlierSwitches = test.earlier
		if b.run(t.Context()); len(b.log()) != test.want {
			t.Errorf("%s: %v", name, b.log())
		}
	}
}

// TestRestoredWithoutRecord checks that the testbed is restored even if that cannot be recorded, as on a full disk.
func TestRestoredWithoutRecord(t *testing.T) {
	b := newTestbed(t, "ab", 1, "pod-pod/other/tcp-rr")
	full := errors.New("no space left")
	b.config.Events = func(e runner.Event) {
		if e.Kind == runner.RestoreStarted {
			b.sink.fail = full
		}
	}
	if _, err := runner.Run(t.Context(), b.config); !errors.Is(err, full) || b.place() != "default" {
		t.Errorf("%s is in place, %v", b.place(), err)
	}
}

// TestNotRestored checks that a failed restoration is reported, and so is a missing restore command.
func TestNotRestored(t *testing.T) {
	b := newTestbed(t, "ab", 1, "pod-pod/other/tcp-rr")
	b.config.Experiment.Restore = b.command("echo no way back; exit 1")
	if s := b.run(t.Context()); !strings.Contains(s.NotRestored, "no way back") || s.Stopped != runner.StopComplete {
		t.Errorf("%+v", s)
	}
	if last := b.sink.switches[len(b.sink.switches)-1]; last.Target != "" || last.Failed == "" {
		t.Errorf("%+v", last)
	}
	b = newTestbed(t, "ab", 1, "pod-pod/other/tcp-rr")
	b.config.Experiment.Restore = nil
	s := b.run(t.Context())
	if order := runner.Visits(b.config.Experiment, 1); len(s.Warnings) != 1 ||
		!strings.HasPrefix(s.Warnings[0], "the testbed stays as the switch of "+order[1]+" left it") {
		t.Errorf("%+v", s)
	}
}

// A settling target reports a number of times that it is not ready yet, and finds new facts each time it is ready.
type settling struct {
	*targettest.Twin
	unready, settled int
}

func (s *settling) Environment() []string { return []string{"PLACE=" + s.Label} }

func (s *settling) Settle(context.Context) error {
	if s.settled++; s.settled <= s.unready {
		time.Sleep(time.Millisecond)
		return errors.New("node1 is not Ready")
	}
	s.Twin.Environment = []result.Fact{{Name: "settled", Value: strconv.Itoa(s.settled)}}
	return nil
}

var _ targets.Switched = (*settling)(nil)

// TestReadiness checks that a target is measured once it is ready, and its facts are collected in each visit. If it
// does not become ready, the visit fails.
func TestReadiness(t *testing.T) {
	b := newTestbed(t, "ab", 2, "pod-pod/other/tcp-rr")
	slow := &settling{Twin: b.twins["b"], unready: 3}
	b.config.Targets[1].Places = slow
	b.target("b").Switch = b.command("echo $PLACE > place")
	b.run(t.Context())
	b.wantVisits("ab")
	var got []string // of two visits, and of what displaces the other target between the blocks
	for _, r := range b.sink.switches {
		if r.Target == "b" {
			got = append(got, result.FactOf(r.Facts, "settled"))
		}
	}
	if diff := cmp.Diff([]string{"4", "5", "6"}, got); diff != "" || result.FactOf(b.sink.facts["b"], "settled") != "4" {
		t.Errorf("%s; recorded %v", diff, b.sink.facts["b"])
	}
	b = newTestbed(t, "ab", 1, "pod-pod/other/tcp-rr")
	b.config.Targets[1].Places = &settling{Twin: b.twins["b"], unready: 1 << 30}
	b.config.Limits.Ready, b.config.Limits.FailedVisits = 2*time.Second, 1
	if s := b.run(t.Context()); s.GivenUp != 1 || !strings.Contains(b.sink.notMeasured[0].Reason, "node1 is not Ready") {
		t.Errorf("%+v, %+v", s, b.sink.notMeasured)
	}
}

// TestBudgetOfVisits checks that the budget applies to visits too, and the testbed is restored at the end.
func TestBudgetOfVisits(t *testing.T) {
	b := newTestbed(t, "ab", 100, "pod-pod/other/tcp-rr")
	b.config.Experiment.Design.Budget = 20
	if s := b.run(t.Context()); s.Stopped != runner.StopBudget || b.place() != "default" || s.Total > 25 || s.Runs < 4 {
		t.Errorf("%+v", s)
	}
}

// TestBeginInTurn checks that Begin tells targets that they are measured in turn, and warns of a target without a
// switch.
func TestBeginInTurn(t *testing.T) {
	b := newTestbed(t, "ab", 1, "pod-pod/other/tcp-rr")
	b.target("b").Switch = nil
	warnings, err := runner.Begin(t.Context(), b.config, false)
	if err != nil || len(warnings) != 1 || warnings[0].Code != result.NoSwitch ||
		!strings.HasPrefix(warnings[0].Text, "b has no switch") {
		t.Errorf("%+v, %v", warnings, err)
	}
	for name, twin := range b.twins {
		if plans := twin.Begun(); len(plans) != 1 || !plans[0].InTurn {
			t.Errorf("%s: %+v", name, plans)
		}
	}
}
