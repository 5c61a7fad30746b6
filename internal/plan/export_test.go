package plan

import "github.com/knotmeter/knotmeter/internal/result"

// Windows returns what a forecast says of windows, without the rest of it, which takes long.
func Windows(e result.Experiment, k Known) ([]Window, error) {
	rows, err := spreads(e, k)
	return windows(rows, k.Results.Runs), err
}
