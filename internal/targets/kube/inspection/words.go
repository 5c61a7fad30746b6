package inspection

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// noneGiven is the value of a fact about a property that an object does not state.
const noneGiven = "none given"

// List joins names with commas; without any it returns "none".
func List(names []string) string { return cmp.Or(strings.Join(names, ", "), "none") }

// Counted returns the number of names and the names, or "none". It sorts names in place.
func Counted(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	slices.Sort(names)
	return fmt.Sprintf("%d: %s", len(names), List(names))
}
