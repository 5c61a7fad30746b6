package result

// LastAttempts returns what tells of each of the runs, all of one experiment, whether it is of the last attempt at its
// block of its case. Only those count, if they are valid.
func LastAttempts(runs []Run) func(*Run) bool {
	type block struct {
		name   string
		number int
	}
	last := map[block]int{}
	for i := range runs {
		at := block{runs[i].Case, runs[i].Block}
		last[at] = max(last[at], runs[i].Attempt)
	}
	return func(r *Run) bool { return r.Attempt == last[block{r.Case, r.Block}] }
}
