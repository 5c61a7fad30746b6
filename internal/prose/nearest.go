package prose

import (
	"fmt"
	"slices"
	"strings"
)

// Choices are the known names with commas between, and the one that was probably meant by name.
func Choices(name string, known []string) string {
	return strings.Join(known, ", ") + DidYouMean(name, known)
}

// DidYouMean is the end of a sentence that asks about the name that was probably meant; empty if none is near.
func DidYouMean(name string, known []string) string {
	meant, near := nearest(name, known)
	if !near {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", meant)
}

// partFrom is how long a part of a name has to be to stand for it.
const partFrom = 3

// nearest is the known name that differs from name in the fewest characters, if that is less than about a third of
// them, or the first that has it as a part.
func nearest(name string, known []string) (meant string, near bool) {
	name = strings.ToLower(name)
	size := len([]rune(name))
	least := min((size+2)/3+1, size)
	for _, k := range known {
		if d := distance([]rune(name), []rune(strings.ToLower(k))); d < least {
			meant, least, near = k, d, true
		}
	}
	if near || size < partFrom {
		return meant, near
	}
	i := slices.IndexFunc(known, func(k string) bool { return strings.Contains(strings.ToLower(k), name) })
	if i < 0 {
		return "", false
	}
	return known[i], true
}

// distance is Levenshtein's: the fewest characters to insert, delete and replace that make b of a.
func distance(a, b []rune) int {
	row := make([]int, len(b)+1) // of the distances from a's beginning to the beginnings of b
	for j := range row {
		row[j] = j
	}
	for i, x := range a {
		diagonal := row[0]
		row[0] = i + 1
		for j, y := range b {
			replace := diagonal
			if x != y {
				replace++
			}
			diagonal = row[j+1]
			row[j+1] = min(replace, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
