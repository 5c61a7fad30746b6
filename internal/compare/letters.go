package compare

import (
	"slices"
	"strings"
	"unicode"
)

// maxColumns limits the work of [letters]: in the worst case n things need 3^(n/3) columns.
const maxColumns = 128

// letters returns a compact letter display of n things: two of them share a letter if and only if apart is false for
// them. It uses insert and absorb (Piepho, An Algorithm for a Letter-Based Representation of All-Pairwise Comparisons,
// J. Comput. Graph. Stat. 13, 2004), which needs neither an order nor transitivity. The first thing has the first
// letter.
func letters(n int, apart func(i, j int) bool) []string {
	columns := insertAbsorb(n, apart)
	if columns == nil {
		columns = pairColumns(n, apart)
	}
	slices.SortFunc(columns, func(a, b column) int { return -compareColumns(a, b) })
	texts := make([]strings.Builder, n)
	letter := rune('a')
	for _, c := range columns {
		for i, in := range c {
			if in {
				texts[i].WriteRune(letter)
			}
		}
		letter = nextLetter(letter)
	}
	all := make([]string, n)
	for i := range texts {
		all[i] = texts[i].String()
	}
	return all
}

// A column marks the things that have a letter.
type column []bool

// compareColumns orders columns by their first members.
func compareColumns(a, b column) int {
	for i := range a {
		switch {
		case a[i] && !b[i]:
			return 1
		case b[i] && !a[i]:
			return -1
		}
	}
	return 0
}

// within reports whether all members of a are members of b.
func (a column) within(b column) bool {
	for i := range a {
		if a[i] && !b[i] {
			return false
		}
	}
	return true
}

// insertAbsorb begins with one column of all things, splits each column that contains two things that are apart, and
// drops columns that are within others. It returns nil if there are more than maxColumns.
func insertAbsorb(n int, apart func(i, j int) bool) []column {
	columns := []column{slices.Repeat(column{true}, n)}
	for i := range n {
		for j := i + 1; j < n; j++ {
			if !apart(i, j) {
				continue
			}
			columns = split(columns, i, j)
			if len(columns) > maxColumns {
				return nil
			}
		}
	}
	return columns
}

// split replaces each column with both i and j by one without i and one without j.
func split(columns []column, i, j int) []column {
	var kept, halves []column
	for _, c := range columns {
		if !c[i] || !c[j] {
			kept = append(kept, c)
			continue
		}
		withoutI, withoutJ := slices.Clone(c), slices.Clone(c)
		withoutI[i], withoutJ[j] = false, false
		halves = append(halves, withoutI, withoutJ)
	}
	// Columns without both stay maximal; a half may be within any other column.
	for k, h := range halves {
		absorbed := slices.ContainsFunc(kept, h.within)
		for l := k + 1; l < len(halves) && !absorbed; l++ {
			absorbed = h.within(halves[l])
		}
		if !absorbed {
			kept = append(kept, h)
		}
	}
	return kept
}

// pairColumns returns a column for each pair that is not apart, and for each thing that is apart from all others.
func pairColumns(n int, apart func(i, j int) bool) []column {
	var columns []column
	for i := range n {
		alone := true
		for j := range n {
			if i == j || apart(min(i, j), max(i, j)) {
				continue
			}
			alone = false
			if i < j {
				c := make(column, n)
				c[i], c[j] = true, true
				columns = append(columns, c)
			}
		}
		if alone {
			c := make(column, n)
			c[i] = true
			columns = append(columns, c)
		}
	}
	return columns
}

// nextLetter returns the letter after a letter: a to z, A to Z, then the letters of other scripts.
func nextLetter(letter rune) rune {
	switch letter {
	case 'z':
		return 'A'
	case 'Z':
		return 'À'
	}
	for letter++; !unicode.IsLetter(letter); letter++ {
	}
	return letter
}
