package result

import "testing"

func TestLastAttempts(t *testing.T) {
	runs := []Run{
		{ID: "repeated", Case: "k", Block: 1, Attempt: 1},
		{ID: "last", Case: "k", Block: 1, Attempt: 2},
		{ID: "only, of another case", Case: "l", Block: 1, Attempt: 1},
		{ID: "only, of another block", Case: "k", Block: 2, Attempt: 1},
		{ID: "last, though invalid", Case: "k", Block: 3, Attempt: 3, Invalid: []Warning{{Code: "no", Text: "no"}}},
		{ID: "repeated, though valid and later in the list", Case: "k", Block: 3, Attempt: 2},
		{ID: "repeated in a visit", Case: "k", Block: 4, Attempt: 1, Target: "a", Visit: 1},
		{ID: "last of its target", Case: "k", Block: 4, Attempt: 2, Target: "a", Visit: 3},
		{ID: "last of another target", Case: "k", Block: 4, Attempt: 1, Target: "b", Visit: 2},
	}
	last := LastAttempts(runs)
	for i, want := range []bool{false, true, true, true, true, false, false, true, true} {
		if got := last(&runs[i]); got != want {
			t.Errorf("%s: %v", runs[i].ID, got)
		}
	}
}
