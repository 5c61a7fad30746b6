package compare

import (
	"encoding/json"
	"fmt"
	"math"
)

// A Number is a float64 that may be missing: NaN or infinite in Go, null in JSON.
type Number float64

// Missing returns a missing number.
func Missing() Number { return Number(math.NaN()) }

// Known reports whether the number is finite.
func (n Number) Known() bool { return !math.IsNaN(float64(n)) && !math.IsInf(float64(n), 0) }

// MarshalJSON returns the number, or null if it is missing.
func (n Number) MarshalJSON() ([]byte, error) {
	if !n.Known() {
		return []byte("null"), nil
	}
	return json.Marshal(float64(n))
}

// UnmarshalJSON reads a number or null.
func (n *Number) UnmarshalJSON(text []byte) error {
	var v *float64
	if err := json.Unmarshal(text, &v); err != nil {
		return fmt.Errorf("a number or null: %w", err)
	}
	*n = Missing()
	if v != nil {
		*n = Number(*v)
	}
	return nil
}

// An Interval is a confidence interval that includes both ends. An end that the data do not bound is infinite, and null
// in JSON; the row's warnings then give the reason.
type Interval struct{ Lo, Hi float64 }

// unbounded returns an interval without bounds.
func unbounded() Interval { return Interval{math.Inf(-1), math.Inf(1)} }

// Bounded reports whether both ends are finite.
func (i Interval) Bounded() bool { return Number(i.Lo).Known() && Number(i.Hi).Known() }

// Excludes reports whether v lies outside the interval.
func (i Interval) Excludes(v float64) bool { return i.Lo > v || i.Hi < v }

// Within reports whether the whole interval lies strictly between -margin and +margin.
func (i Interval) Within(margin float64) bool { return i.Lo > -margin && i.Hi < margin }

// MarshalJSON returns [lo,hi].
func (i Interval) MarshalJSON() ([]byte, error) {
	return json.Marshal([2]Number{Number(i.Lo), Number(i.Hi)})
}

// UnmarshalJSON reads [lo,hi]; null is an infinite end.
func (i *Interval) UnmarshalJSON(text []byte) error {
	var ends []Number
	if err := json.Unmarshal(text, &ends); err != nil {
		return err
	}
	if len(ends) != 2 {
		return fmt.Errorf("an interval has 2 ends, not %d", len(ends))
	}
	*i = unbounded()
	if ends[0].Known() {
		i.Lo = float64(ends[0])
	}
	if ends[1].Known() {
		i.Hi = float64(ends[1])
	}
	return nil
}
