package plan

import "github.com/knotmeter/knotmeter/internal/result"

// Windows returns the windows of a forecast without computing the rest, which takes long.
func Windows(e result.Experiment, k Known) ([]Window, error) {
	rows, err := spreads(e, k)
	return windows(rows, k.Results.Runs), err
}
