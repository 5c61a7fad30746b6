package runner

import "github.com/knotmeter/knotmeter/internal/result"

// A Kind is what an Event tells.
type Kind string

// The kinds of events, in the order in which they come.
const (
	Planned      Kind = "planned"
	NotMeasured  Kind = "not-measured" // Target, Case (either may be "*"), Reason
	BlockStarted Kind = "block-started"
	RunStarted   Kind = "run-started"
	RunDone      Kind = "run-done"    // Value, if the run has its main metric
	RunInvalid   Kind = "run-invalid" // Reason
	Finished     Kind = "finished"    // Reason is the Stop
)

// An Event is progress. Fields that do not apply to its kind are zero.
type Event struct {
	Kind   Kind          `json:"event"`
	Case   string        `json:"case,omitempty"`
	Target string        `json:"target,omitempty"`
	Block  int           `json:"block,omitempty"` // from 1
	Blocks int           `json:"blocks"`          // of the design
	Slot   int           `json:"slot,omitempty"`  // position in the block, from 1
	Slots  int           `json:"slots,omitempty"` // runs in the block
	Value  *result.Value `json:"value,omitempty"`
	Reason string        `json:"reason,omitempty"`
	// Done and Runs are the runs so far, of earlier sessions too, and those that the design wants.
	Done int `json:"done"`
	Runs int `json:"runs"`
	// Elapsed and Remaining are seconds of this session. Remaining is an estimate from the runs so
	// far, and at most what is left of the budget.
	Elapsed   float64 `json:"elapsed"`
	Remaining float64 `json:"remaining"`
}

func (s *session) emit(e Event) {
	e.Blocks = s.e.Design.Blocks
	e.Elapsed = s.elapsed()
	e.Done, e.Runs, e.Remaining = s.progress()
	if e.Kind == Finished {
		e.Remaining = 0
	}
	s.Events(e)
}

// progress counts the runs that are done and wanted, and predicts the seconds of the rest.
func (s *session) progress() (done, runs int, remaining float64) {
	type key struct {
		caseName, target string
		block            int
	}
	valid := map[key]bool{}
	for _, r := range s.runs {
		if r.Valid() && r.Block <= s.e.Design.Blocks {
			valid[key{r.Case, r.Target, r.Block}] = true
		}
	}
	have := map[[2]string]int{}
	for k := range valid {
		have[[2]string{k.caseName, k.target}]++
	}
	for _, c := range s.e.Cases {
		for _, name := range Order(s.e, c, 1, 1) {
			n := min(have[[2]string{c.Name, name}], s.e.Design.Blocks)
			done, runs = done+n, runs+s.e.Design.Blocks
			remaining += float64(s.e.Design.Blocks-n) * s.costs.of(c.Name, name)
		}
	}
	if b := s.e.Design.Budget; b > 0 {
		remaining = min(remaining, max(0, b-s.elapsed()))
	}
	return done, runs, remaining
}
