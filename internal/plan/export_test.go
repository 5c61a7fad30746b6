package plan

import "github.com/knotmeter/knotmeter/internal/result"

// ForecastLongerRuns returns the effect of longer runs in a forecast without computing the rest, which takes long.
func ForecastLongerRuns(e result.Experiment, k EarlierResults) ([]LongerRuns, error) {
	rows, err := spreads(e, k)
	return longerRuns(rows, k.Results.Runs), err
}
