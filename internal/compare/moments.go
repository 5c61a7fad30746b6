package compare

import "math"

// Moments are the arithmetic mean and the sample variance over runs, in the form that others publish. They are shown beside
// our own estimates, which neither is: one run that went wrong moves both at will.
type Moments struct {
	Runs           int
	Mean, Variance Number // the variance of a single run is not known
}

// MomentsOf are those of the values of runs.
func MomentsOf(values []float64) Moments {
	m := Moments{Runs: len(values), Mean: Number(math.NaN()), Variance: Number(math.NaN())}
	if len(values) == 0 {
		return m
	}
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	mean := sum / float64(len(values))
	m.Mean = Number(mean)
	if len(values) < 2 {
		return m
	}
	squares := 0.0
	for _, v := range values {
		squares += (v - mean) * (v - mean)
	}
	m.Variance = Number(squares / float64(len(values)-1))
	return m
}
