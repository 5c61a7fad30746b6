//go:build linux

package faults

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/knotmeter/knotmeter/test/e2e"
)

// injectRange is the longest time from the start of an experiment to the fault: about the duration without a fault.
const injectRange = 25 * time.Second

// A score counts the outcomes of the experiments under one kind of fault.
type score struct {
	struck, missed int           // faults during the experiment, and after its end
	completed      int           // experiments that completed by themselves
	resumed        int           // experiments that ended early and were resumed
	begun          int           // experiments that ended before there was something to resume
	runs           int           // runs recorded before the fault
	lost           int           // of these, runs that were lost
	invalid        int           // invalid runs
	leftSaid       int           // experiments that reported possible leftovers
	leftUnsaid     int           // experiments that left something without a report, except for killed ones
	leftAfterClean int           // experiments whose leftovers clean did not remove
	failed         int           // experiments that could not be completed
	slowest        time.Duration // longest time from start to first end
}

// TestSoak injects all faults at random moments, for the duration in KNOTMETER_SOAK, and prints a table of the
// outcomes.
func TestSoak(t *testing.T) {
	text := os.Getenv("KNOTMETER_SOAK")
	if text == "" {
		t.Skip("KNOTMETER_SOAK has no duration")
	}
	span, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("KNOTMETER_SOAK: %v", err)
	}
	seed, err := strconv.ParseUint(os.Getenv("KNOTMETER_SOAK_SEED"), 10, 64)
	if err != nil {
		seed = 1
	}
	testbed := newTestbed(t)
	e2e.NeedParts(t)
	random := rand.New(rand.NewPCG(seed, 20))
	list := append(faults(), fault{name: "program killed", alone: true,
		inject: func(_ *experiment, r *running) { _ = r.Process.Kill() }})
	scores := map[string]*score{}
	began := time.Now()
	for round := 1; time.Since(began) < span; round++ {
		random.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		for _, f := range list {
			if time.Since(began) >= span || f.once && round > 1 {
				continue
			}
			sc := scores[f.name]
			if sc == nil {
				sc = &score{}
				scores[f.name] = sc
			}
			moment := time.Duration(random.Int64N(int64(injectRange)))
			t.Run(fmt.Sprintf("%d-%s-at-%.1fs", round, strings.ReplaceAll(f.name, " ", "-"), moment.Seconds()),
				func(t *testing.T) {
					s := newExperiment(t, testbed)
					f.testAt(s, moment, sc)
				})
		}
	}
	fmt.Printf("%s of faults, seed %d\n\n%s", time.Since(began).Round(time.Second), seed, tabulate(scores))
}

// testAt injects the fault at a moment after the start, completes the experiment, and counts the outcome.
func (f fault) testAt(s *experiment, moment time.Duration, sc *score) {
	s.Helper()
	f.setUp(s)
	defer s.tearDown()
	s.alone, s.random = true, true
	began := time.Now()
	r := s.measure(f.caseFlags()...)
	select {
	case <-r.exited:
		sc.missed++
	case <-time.After(moment):
		sc.struck++
	}
	before := s.runs()
	f.inject(s, r)
	status := s.end(r)
	sc.slowest = max(sc.slowest, time.Since(began))
	if f.repair != nil {
		f.repair(s)
	}
	now := s.runs()
	sc.runs += len(before)
	sc.lost += len(lost(before, now))
	sc.invalid += len(now) - valid(now)
	reported := cleanCommand().MatchString(r.String())
	if reported {
		sc.leftSaid++
	}
	if left := s.remains(); len(left) > 0 && !reported && r.ProcessState.Exited() {
		sc.leftUnsaid++
		s.Errorf("left without a report: %v\n%s", left, r)
	}
	if c := s.start("clean", "--all", "--yes", "--target", s.target()); s.end(c) != 0 {
		s.Errorf("clean: %s", c)
	}
	if left := s.remains(); len(left) > 0 {
		sc.leftAfterClean++
		s.Errorf("left after clean: %v", left)
	}
	if r.ProcessState.Exited() && status != 0 && status != 130 && !strings.Contains(r.String(), "knotmeter: ") {
		s.Errorf("status %d without an error:\n%s", status, r)
	}
	s.finish(status, sc)
	s.Logf("status %d, then %d valid of %d runs; %s", status, valid(now), len(now), lastLine(r.String()))
}

// finish resumes the experiment if it can be resumed, and counts whether it completed.
func (s *experiment) finish(status int, sc *score) {
	s.Helper()
	before := s.runs()
	switch {
	case status == 0:
		sc.completed++
		s.checkComplete(before, blocks)
	case before == nil:
		sc.begun++
	default:
		sc.resumed++
		s.resume(blocks)
		s.nothingLeft()
	}
	if s.Failed() {
		sc.failed++
	}
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

// tabulate returns the scores as a table in Markdown.
func tabulate(scores map[string]*score) string {
	var b strings.Builder
	b.WriteString("| fault | struck | missed | went on | resumed | began anew | runs before | of these lost | " +
		"invalid runs | said what may be left | left unsaid | left after clean | not completed | longest, s |\n")
	b.WriteString("|---|" + strings.Repeat("---:|", 13) + "\n")
	var sum score
	for _, f := range append(faults(), fault{name: "program killed"}) {
		if sc := scores[f.name]; sc != nil {
			b.WriteString(sc.row(f.name))
			sum.add(*sc)
		}
	}
	b.WriteString(sum.row("all"))
	return b.String()
}

func (sc score) row(name string) string {
	return fmt.Sprintf("| %s | %d | %d | %d | %d | %d | %d | %d | %d | %d | %d | %d | %d | %.0f |\n", name, sc.struck,
		sc.missed, sc.completed, sc.resumed, sc.begun, sc.runs, sc.lost, sc.invalid, sc.leftSaid, sc.leftUnsaid,
		sc.leftAfterClean, sc.failed, sc.slowest.Seconds())
}

func (sc *score) add(o score) {
	sc.struck += o.struck
	sc.missed += o.missed
	sc.completed += o.completed
	sc.resumed += o.resumed
	sc.begun += o.begun
	sc.runs += o.runs
	sc.lost += o.lost
	sc.invalid += o.invalid
	sc.leftSaid += o.leftSaid
	sc.leftUnsaid += o.leftUnsaid
	sc.leftAfterClean += o.leftAfterClean
	sc.failed += o.failed
	sc.slowest = max(sc.slowest, o.slowest)
}
