//go:build linux

package faults

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/knotmeter/knotmeter/internal/store"
)

// Programs are killed in rounds: each at its own random moment, and then clean removes their leftovers.
const (
	kills     = 30
	inRound   = 6
	killRange = 12 * time.Second // after the start of a program
)

// TestKills kills the program at random moments. Its results must be readable and resumable, and clean must remove its
// leftovers.
func TestKills(t *testing.T) {
	testbed := newTestbed(t)
	random := rand.New(rand.NewPCG(4, 30))
	var resumable []*experiment
	for range kills / inRound {
		experiments := killRound(t, testbed, random)
		// One experiment of each round is resumed, all of them in parallel at the end.
		for _, s := range experiments {
			if s.runs() != nil {
				resumable = append(resumable, s)
				break
			}
		}
	}
	t.Run("resumed", func(t *testing.T) {
		for i, s := range resumable {
			t.Run(filepath.Base(s.dir), func(t *testing.T) {
				t.Parallel()
				s.TB, s.port = t, 5400+i
				s.resume(1)
			})
		}
	})
	if left := testbed.left(t); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// killRound starts programs, kills each at a random moment, removes their leftovers by clean, and checks their results.
func killRound(t *testing.T, testbed *testbed, random *rand.Rand) []*experiment {
	t.Helper()
	var experiments []*experiment
	killed := make(chan struct{})
	for i := range inRound {
		s := newExperiment(t, testbed)
		// Experiments on one node need different ports.
		s.port, s.alone = 5300+i, true
		if i%3 == 2 {
			s.namespace = testbed.namespace(t, s.level)
		}
		r := s.measure("--case", "pod-svc/same/tcp-rr", "--blocks", "1")
		moment := time.Duration(random.Int64N(int64(killRange)))
		experiments = append(experiments, s)
		go func() {
			time.Sleep(moment)
			_ = r.Process.Kill() // it may have ended
			<-r.exited
			killed <- struct{}{}
		}()
	}
	for range inRound {
		<-killed
	}
	left := testbed.left(t)
	c := newExperiment(t, testbed)
	if r := c.start("clean", "--all", "--yes", "--target", c.target()); c.end(r) != 0 {
		t.Errorf("clean: %s", r)
	}
	t.Logf("left by kills: %s\n%s", strings.Join(left, ", "), c.output)
	c.alone = true
	c.nothingLeft()
	for _, s := range experiments {
		s.checkOnlyResults()
	}
	return experiments
}

// checkOnlyResults checks that the program wrote nothing but its results, and that these can be read.
func (s *experiment) checkOnlyResults() {
	s.Helper()
	for _, dir := range []struct{ path, only string }{{s.dir, "disk"}, {filepath.Dir(s.out()), filepath.Base(s.out())}} {
		entries, err := os.ReadDir(dir.path)
		s.expect(err)
		for _, e := range entries {
			if e.Name() != dir.only {
				s.Errorf("it left %s", e.Name())
			}
		}
	}
	if _, err := os.Stat(filepath.Join(s.out(), store.ExperimentFile)); err == nil {
		s.runs()
		s.checkReadable()
	}
}
