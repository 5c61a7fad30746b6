package compare

// judgeReferences finds the references that a target exceeds by more than delta. They are no limit, so that nothing of
// their case is a share of them.
func (c *Comparison) judgeReferences() {
	type about struct{ rc, metric string }
	all := map[about][]*UpperBound{}
	fastest := map[about]UpperBound{}
	see := func(of about, b *UpperBound, target string, share Number) {
		all[of] = append(all[of], b)
		if by := share - 1; by.Known() && by > max(Number(c.Delta), fastest[of].ExceededBy) {
			fastest[of] = UpperBound{ExceededBy: by, Faster: target}
		}
	}
	for _, r := range c.Comparisons {
		if b := r.UpperBound; b != nil {
			see(about{r.Case, r.Metric}, b, r.Baseline, b.BaselineShare)
			see(about{r.Case, r.Metric}, b, r.Target, b.TargetShare)
		}
	}
	for _, m := range c.Medians {
		if b := m.UpperBound; b != nil {
			see(about{m.Case, m.Metric}, b, m.Target, b.TargetShare)
		}
	}
	for of, f := range fastest {
		for _, b := range all[of] {
			b.BaselineShare, b.TargetShare, b.ExceededBy, b.Faster = Missing(), Missing(), f.ExceededBy, f.Faster
		}
	}
}
