package prose

import (
	"fmt"
	"slices"
	"strings"
)

// Choices joins the known names with commas, and appends the one that name probably stands for, if there is one.
func Choices(name string, known []string) string {
	return strings.Join(known, ", ") + DidYouMean(name, known)
}

// DidYouMean returns the end of a sentence that suggests the known name nearest to name; "" if none is near.
func DidYouMean(name string, known []string) string {
	meant, near := nearest(name, known)
	if !near {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", meant)
}

// minSubstring is the minimum length of a part of a name that identifies it.
const minSubstring = 3

// nearest returns the known name with the smallest distance to name, if that is at most a third of its characters,
// rounded up, or else the first known name that contains it.
func nearest(name string, known []string) (meant string, near bool) {
	name = strings.ToLower(name)
	size := len([]rune(name))
	least := min((size+2)/3+1, size)
	for _, k := range known {
		if d := distance([]rune(name), []rune(strings.ToLower(k))); d < least {
			meant, least, near = k, d, true
		}
	}
	if near || size < minSubstring {
		return meant, near
	}
	i := slices.IndexFunc(known, func(k string) bool { return strings.Contains(strings.ToLower(k), name) })
	if i < 0 {
		return "", false
	}
	return known[i], true
}

// distance returns the number of insertions, deletions, replacements and swaps of neighbours that turn a into b.
func distance(a, b []rune) int {
	d := make([][]int, len(a)+1) // between the beginnings of a and those of b
	for i := range d {
		d[i] = make([]int, len(b)+1)
		d[i][0] = i
	}
	for j := range d[0] {
		d[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			replace := 1
			if a[i-1] == b[j-1] {
				replace = 0
			}
			d[i][j] = min(d[i-1][j]+1, d[i][j-1]+1, d[i-1][j-1]+replace)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d[i][j] = min(d[i][j], d[i-2][j-2]+1)
			}
		}
	}
	return d[len(a)][len(b)]
}
