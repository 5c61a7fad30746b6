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

// strikeRange is when a fault strikes, from the start of an experiment, which takes as long if nothing happens.
const strikeRange = 25 * time.Second

// A score is what became of the experiments under one kind of fault.
type score struct {
	struck, missed int // during the experiment, or after its end
	completed      int // by themselves
	resumed        int // after they had ended early
	begun          int // anew, since there was nothing to resume yet
	runs           int // recorded when the fault struck
	lost           int // of these afterwards
	invalid        int // runs, with a reason
	leftSaid       int // experiments that said that something may be left
	leftUnsaid     int // that left something and did not say so, but were not killed
	leftAfterClean int
	failed         int           // that could not be completed
	slowest        time.Duration // experiment to its first end
}

// All faults at random moments, for as long as KNOTMETER_SOAK says. The figures are printed as a table.
func TestSoak(t *testing.T) {
	text := os.Getenv("KNOTMETER_SOAK")
	if text == "" {
		t.Skip("KNOTMETER_SOAK does not say for how long")
	}
	span, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("KNOTMETER_SOAK: %v", err)
	}
	seed, err := strconv.ParseUint(os.Getenv("KNOTMETER_SOAK_SEED"), 10, 64)
	if err != nil {
		seed = 1
	}
	stage := newStage(t)
	e2e.NeedParts(t)
	random := rand.New(rand.NewPCG(seed, 20))
	list := append(faults(), fault{name: "program killed", alone: true, strike: func(_ *scene,
		r *running) {
		_ = r.Process.Kill()
	}})
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
			moment := time.Duration(random.Int64N(int64(strikeRange)))
			t.Run(fmt.Sprintf("%d-%s-at-%.1fs", round, strings.ReplaceAll(f.name, " ", "-"), moment.Seconds()),
				func(t *testing.T) {
					s := newScene(t, stage)
					f.endure(s, moment, sc)
				})
		}
	}
	fmt.Printf("%s of faults, seed %d\n\n%s", time.Since(began).Round(time.Second), seed, tabulate(scores))
}

// endure has a fault strike at a moment, and brings the experiment to its end all the same.
func (f fault) endure(s *scene, moment time.Duration, sc *score) {
	s.Helper()
	f.set(s)
	defer s.close()
	s.alone, s.random = true, true
	began := time.Now()
	r := s.measure(f.caseFlags()...)
	select {
	case <-r.over:
		sc.missed++
	case <-time.After(moment):
		sc.struck++
	}
	before := s.runs()
	f.strike(s, r)
	status := s.end(r)
	sc.slowest = max(sc.slowest, time.Since(began))
	if f.mend != nil {
		f.mend(s)
	}
	now := s.runs()
	sc.runs += len(before)
	sc.lost += len(lost(before, now))
	sc.invalid += len(now) - valid(now)
	said := cleanCommand().MatchString(r.String())
	if said {
		sc.leftSaid++
	}
	if left := s.remains(); len(left) > 0 && !said && r.ProcessState.Exited() {
		sc.leftUnsaid++
		s.Errorf("left, and not said: %v\n%s", left, r)
	}
	if c := s.start("clean", "--all", "--yes", "--target", s.target()); s.end(c) != 0 {
		s.Errorf("clean: %s", c)
	}
	if left := s.remains(); len(left) > 0 {
		sc.leftAfterClean++
		s.Errorf("left after clean: %v", left)
	}
	if r.ProcessState.Exited() && status != 0 && status != 130 && !strings.Contains(r.String(), "knotmeter: ") {
		s.Errorf("status %d without a word:\n%s", status, r)
	}
	s.goOn(status, sc)
	s.Logf("status %d, then %d valid of %d runs; %s", status, valid(now), len(now), lastLine(r.String()))
}

// goOn completes the experiment.
func (s *scene) goOn(status int, sc *score) {
	s.Helper()
	before := s.runs()
	switch {
	case status == 0:
		sc.completed++
		s.complete(before, blocks)
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

// tabulate is the figures in Markdown.
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
		sc.missed, sc.completed, sc.resumed,
		sc.begun, sc.runs, sc.lost, sc.invalid, sc.leftSaid, sc.leftUnsaid, sc.leftAfterClean, sc.failed,
		sc.slowest.Seconds())
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
