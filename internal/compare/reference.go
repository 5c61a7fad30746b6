package compare

// judgeReferences marks the references that a target exceeds by more than delta. They are no limit, so all shares of
// them are removed.
func (c *Comparison) judgeReferences() {
	type key struct{ rc, metric string }
	all := map[key][]*UpperBound{}
	fastest := map[key]UpperBound{}
	addShare := func(of key, b *UpperBound, target string, share Number) {
		all[of] = append(all[of], b)
		if by := share - 1; by.Known() && by > max(Number(c.Delta), fastest[of].ExceededBy) {
			fastest[of] = UpperBound{ExceededBy: by, Faster: target}
		}
	}
	for _, r := range c.Comparisons {
		if b := r.UpperBound; b != nil {
			addShare(key{r.Case, r.Metric}, b, r.Baseline, b.BaselineShare)
			addShare(key{r.Case, r.Metric}, b, r.Target, b.TargetShare)
		}
	}
	for _, m := range c.Medians {
		if b := m.UpperBound; b != nil {
			addShare(key{m.Case, m.Metric}, b, m.Target, b.TargetShare)
		}
	}
	for of, f := range fastest {
		for _, b := range all[of] {
			b.BaselineShare, b.TargetShare, b.ExceededBy, b.Faster = Missing(), Missing(), f.ExceededBy, f.Faster
		}
	}
}
