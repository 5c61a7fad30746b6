package result

// LastAttempts returns what tells of each of the runs whether it is of the last attempt at its block of its case; of
// targets that are measured in turn, at its block of its case on its target. Only those count, if they are valid.
func LastAttempts(runs []Run) func(*Run) bool {
	type block struct {
		experiment, name string
		number           int
		target           string // of a visit
	}
	of := func(r *Run) block {
		if r.Visit == 0 {
			return block{r.Experiment, r.Case, r.Block, ""}
		}
		return block{r.Experiment, r.Case, r.Block, r.Target}
	}
	last := map[block]int{}
	for i := range runs {
		at := of(&runs[i])
		last[at] = max(last[at], runs[i].Attempt)
	}
	return func(r *Run) bool { return r.Attempt == last[of(r)] }
}
