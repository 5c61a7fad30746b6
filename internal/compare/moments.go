package compare

import "github.com/knotmeter/knotmeter/internal/stats"

// Moments holds the arithmetic mean and the sample variance over runs, as published tables give them. They are shown
// next to our own robust estimates: a single bad run can change both without limit.
type Moments struct {
	Runs           int
	Mean, Variance Number // the variance of a single run is missing
}

// PublishedChange returns a change in the form that others have published: the difference of the means as a fraction of
// the target's mean, not the baseline's, without an interval. It is not known if the target's mean is 0.
func PublishedChange(baseline, target Moments) Number {
	return (target.Mean - baseline.Mean) / target.Mean
}

// MomentsOf returns the moments of the values of runs.
func MomentsOf(values []float64) Moments {
	mean, variance := stats.Moments(values)
	return Moments{Runs: len(values), Mean: Number(mean), Variance: Number(variance)}
}
