package inspection

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// noneGiven says of what an object does not say of itself that it does not.
const noneGiven = "none given"

// List names what there is.
func List(names []string) string { return cmp.Or(strings.Join(names, ", "), "none") }

// Counted is how many there are, and their names.
func Counted(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	slices.Sort(names)
	return fmt.Sprintf("%d: %s", len(names), List(names))
}
