package runner

import (
	"github.com/knotmeter/knotmeter/internal/plan"
	"github.com/knotmeter/knotmeter/internal/result"
)

// A Kind is what an Event tells.
type Kind string

// The kinds of events, in the order in which they come.
const (
	Planned       Kind = "planned"
	NotMeasured   Kind = "not-measured" // Target, Case (either may be "*"), Reason
	BlockStarted  Kind = "block-started"
	SwitchStarted Kind = "switch-started" // Target
	SwitchDone    Kind = "switch-done"    // Target, which is ready
	SwitchFailed  Kind = "switch-failed"  // Target, Reason; it is visited again after the others
	SiteFailed    Kind = "site-failed"    // Target, Reason; it is tried again
	RunStarted    Kind = "run-started"
	RunDone       Kind = "run-done"    // Value, if the run has its main metric
	RunInvalid    Kind = "run-invalid" // Reason
	// CaseDecided: Case needs no more blocks than Block, fewer than the design allows.
	CaseDecided    Kind = "case-decided"
	RestoreStarted Kind = "restore-started" // Reason is the command
	Finished       Kind = "finished"        // Reason is the Stop
)

// An Event is progress. Fields that do not apply to its kind are zero.
type Event struct {
	Kind   Kind          `json:"event"`
	Case   string        `json:"case,omitempty"`
	Target string        `json:"target,omitempty"`
	Block  int           `json:"block,omitempty"` // from 1
	Blocks int           `json:"blocks"`          // of the design, at most
	Slot   int           `json:"slot,omitempty"`  // position in the block, from 1
	Slots  int           `json:"slots,omitempty"` // runs in the block
	Value  *result.Value `json:"value,omitempty"`
	Reason string        `json:"reason,omitempty"`
	// Visit is which of the Visits that the design wants is made, or is the next; one that failed is made again. Both are
	// 0 unless targets are measured in turn.
	Visit  int `json:"visit,omitempty"`
	Visits int `json:"visits,omitempty"`
	// Done and Runs are the runs so far, of earlier sessions too, and those that the design wants of
	// the cases that go on.
	Done int `json:"done"`
	Runs int `json:"runs"`
	// Elapsed and Remaining are seconds of this session. Remaining is an estimate from the runs so
	// far, and at most what is left of the budget.
	Elapsed   float64 `json:"elapsed"`
	Remaining float64 `json:"remaining"`
	// AtMost says that cases may stop before the last block, so that Blocks, Runs and Remaining are
	// the most that it can be.
	AtMost bool `json:"at_most,omitempty"`
}

func (s *session) emit(e Event) {
	e.Blocks, e.AtMost = s.e.Design.Blocks, len(s.e.Design.Looks) > 1
	e.Elapsed = s.elapsed()
	e.Done, e.Runs, e.Remaining = s.progress()
	if s.e.InTurn() {
		e.Visit, e.Visits = s.visitsWanted()
	}
	if e.Kind == Finished {
		e.Remaining = 0
	}
	s.Events(e)
}

// progress counts the runs that are done and wanted, and predicts the seconds of the rest. Of a case
// that ended early no more is wanted than it has.
func (s *session) progress() (done, runs int, remaining float64) {
	valid := s.validBlocks()
	left := map[string]float64{} // blocks, by case
	for _, c := range s.e.Cases {
		blocks := s.blocksOf(c)
		var takes float64
		for _, name := range s.e.MeasuredOn(c) {
			n := min(len(valid[[2]string{c.Name, name}]), blocks)
			done, runs = done+n, runs+blocks
			takes = plan.Together(s.e.Design, takes, float64(blocks-n)*s.durations.Run(c.Name, name))
			left[c.Name] = max(left[c.Name], float64(blocks-n))
		}
		remaining += takes
	}
	remaining += s.durations.Sites(left) + s.durations.Switches(left)
	if b := s.e.Design.Budget; b > 0 {
		remaining = min(remaining, max(0, b-s.elapsed()))
	}
	return done, runs, remaining
}

// blocksOf is how many blocks are wanted of a case.
func (s *session) blocksOf(c result.Case) int {
	if at, ended := s.ended[c.Name]; ended {
		return min(s.e.Design.Blocks, at)
	}
	return s.e.Design.Blocks
}

// visitsWanted are the visits that are wanted of all targets, and which of them is not complete yet.
func (s *session) visitsWanted() (next, all int) {
	valid := s.validBlocks()
	for _, name := range s.e.TargetNames() {
		wanted, left := 0, 0
		for _, c := range s.e.Cases {
			if s.e.Measures(c, name) {
				wanted = max(wanted, s.blocksOf(c))
				left = max(left, s.blocksOf(c)-len(valid[[2]string{c.Name, name}]))
			}
		}
		all, next = all+wanted, next+wanted-left
	}
	return min(next+1, all), all
}

// validBlocks are the blocks of the design in which a case has a valid run on a target.
func (s *session) validBlocks() map[[2]string]map[int]bool {
	valid := map[[2]string]map[int]bool{}
	for _, r := range s.runs {
		if !r.Valid() || r.Block > s.e.Design.Blocks {
			continue
		}
		key := [2]string{r.Case, r.Target}
		if valid[key] == nil {
			valid[key] = map[int]bool{}
		}
		valid[key][r.Block] = true
	}
	return valid
}
