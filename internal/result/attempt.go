package result

// LastAttempts returns a function that reports whether a run belongs to the last attempt at its case in its block; if
// targets are measured in turn, at its case in its block on its target. Of the valid runs, only these count.
func LastAttempts(runs []Run) func(*Run) bool {
	type block struct {
		experiment, name string
		number           int
		target           string // empty unless targets are measured in turn
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
