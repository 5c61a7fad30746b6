package runner

import (
	"github.com/knotmeter/knotmeter/internal/plan"
	"github.com/knotmeter/knotmeter/internal/result"
)

// A Kind is the kind of an [Event].
type Kind string

// The kinds of events, in the order in which they occur, with the fields that they set in addition to the counters.
const (
	Planned       Kind = "planned"
	NotMeasured   Kind = "not-measured" // Target, Case (either may be "*"), Reason
	BlockStarted  Kind = "block-started"
	SwitchStarted Kind = "switch-started" // Target
	SwitchDone    Kind = "switch-done"    // Target, which is ready now
	SwitchFailed  Kind = "switch-failed"  // Target, Reason; the target is visited again after the others
	SiteFailed    Kind = "site-failed"    // Target, Reason; opening the site is tried again
	RunStarted    Kind = "run-started"
	RunDone       Kind = "run-done"    // Value, if the run has its main metric
	RunInvalid    Kind = "run-invalid" // Reason
	// CaseDecided is emitted when Case ends after Block blocks, fewer than the design allows.
	CaseDecided    Kind = "case-decided"
	RestoreStarted Kind = "restore-started" // Reason is the command
	Finished       Kind = "finished"        // Reason is the Stop
)

// An Event reports progress. Fields that do not apply to its kind are zero.
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
	// Visit is the number of the current or next visit, from 1, of all Visits of the design; a failed visit keeps its
	// number. Both are 0 unless targets are measured in turn.
	Visit  int `json:"visit,omitempty"`
	Visits int `json:"visits,omitempty"`
	// Done is the number of valid runs so far, including earlier sessions; Runs is the number in the end if every
	// continuing case has all its blocks.
	Done int `json:"done"`
	Runs int `json:"runs"`
	// Elapsed and Remaining are seconds of this session. Remaining is predicted from the runs so far, and at most the
	// rest of the budget.
	Elapsed   float64 `json:"elapsed"`
	Remaining float64 `json:"remaining"`
	// AtMost reports whether cases may end before the last block, so that Blocks, Runs and Remaining are upper limits.
	AtMost bool `json:"at_most,omitempty"`
}

func (s *session) emit(e Event) {
	e.Blocks, e.AtMost = s.e.Design.Blocks, len(s.e.Design.Looks) > 1
	e.Elapsed = s.elapsed()
	e.Done, e.Runs, e.Remaining = s.progress()
	if s.e.InTurn() {
		e.Visit, e.Visits = s.visitProgress()
	}
	if e.Kind == Finished {
		e.Remaining = 0
	}
	s.Events(e)
}

// progress returns the number of valid runs so far and in the end, and the predicted seconds of the rest. Of a case
// that ended early, only the blocks that it has count.
func (s *session) progress() (done, runs int, remaining float64) {
	valid := s.validBlocks()
	left := map[string]float64{} // blocks, by case
	for _, c := range s.e.Cases {
		blocks := s.wantedBlocks(c)
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

// wantedBlocks returns the number of blocks that a case has in the end.
func (s *session) wantedBlocks(c result.Case) int {
	if at, ended := s.ended[c.Name]; ended {
		return min(s.e.Design.Blocks, at)
	}
	return s.e.Design.Blocks
}

// visitProgress returns the number of the first visit that is not complete, from 1, and the number of visits in all.
func (s *session) visitProgress() (next, all int) {
	valid := s.validBlocks()
	for _, name := range s.e.TargetNames() {
		wanted, left := 0, 0
		for _, c := range s.e.Cases {
			if s.e.Measures(c, name) {
				wanted = max(wanted, s.wantedBlocks(c))
				left = max(left, s.wantedBlocks(c)-len(valid[[2]string{c.Name, name}]))
			}
		}
		all, next = all+wanted, next+wanted-left
	}
	return min(next+1, all), all
}

// validBlocks returns the blocks of the design with a valid run, by case and target.
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
