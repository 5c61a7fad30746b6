package result

import "fmt"

// Limits of a design.
const (
	maxAlpha = 0.5
	maxLooks = 50
)

// Check checks the ranges of what the analysis of an experiment depends on: alpha, delta and looks. The text of the
// error begins with the name of the field, which is also that of the flag.
func (d Design) Check() error {
	switch {
	case !(d.Alpha > 0 && d.Alpha < maxAlpha):
		return fmt.Errorf("alpha: %.4g is not between 0 and %g", d.Alpha, maxAlpha)
	case !(d.Delta > 0 && d.Delta < 1):
		return fmt.Errorf("delta: %.4g is not between 0 and 1 (100 %%)", d.Delta)
	case len(d.Looks) > maxLooks:
		return fmt.Errorf("looks: %d looks are more than %d", len(d.Looks), maxLooks)
	}
	last := 0
	for _, n := range d.Looks {
		if n <= last {
			return fmt.Errorf("looks: %v are not numbers of blocks from 1 on, each above the one before", d.Looks)
		}
		last = n
	}
	if len(d.Looks) > 0 && last != d.Blocks {
		return fmt.Errorf("looks: the last look is after %d blocks, but there are %d", last, d.Blocks)
	}
	return nil
}
