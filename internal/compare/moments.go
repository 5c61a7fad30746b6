package compare

import "github.com/knotmeter/knotmeter/internal/stats"

// Moments are the arithmetic mean and the sample variance over runs, in the form that others publish. They are shown
// next to our own estimates, which neither is: one run that went wrong moves both at will.
type Moments struct {
	Runs           int
	Mean, Variance Number // the variance of a single run is not known
}

// PublishedChange returns how others have published a change: the difference of the means as a fraction of the target's
// and not of the baseline's, without an interval. It is not known if the target's mean is 0.
func PublishedChange(baseline, target Moments) Number {
	return (target.Mean - baseline.Mean) / target.Mean
}

// MomentsOf are those of the values of runs.
func MomentsOf(values []float64) Moments {
	mean, variance := stats.Moments(values)
	return Moments{Runs: len(values), Mean: Number(mean), Variance: Number(variance)}
}
