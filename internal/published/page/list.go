package page

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/knotmeter/knotmeter/internal/audit"
	"github.com/knotmeter/knotmeter/internal/result"
)

// A listed configuration is one in a list of what was tested.
type listed struct{ name, place string }

// listItem returns the text of a list item; empty if the line is none.
func listItem(line string) string {
	text := strings.TrimLeft(line, " \t")
	for _, mark := range []string{"- ", "* ", "• "} {
		if rest, ok := strings.CutPrefix(text, mark); ok {
			return strings.TrimSpace(rest)
		}
	}
	return ""
}

// readList reads a list of configurations: its items without nested ones. It returns the number of lines read.
func (r *reader) readList() int {
	indent := func(i int) int { return len(r.line(i)) - len(strings.TrimLeft(r.line(i), " \t")) }
	n := 0
	for ; listItem(r.line(r.at+n)) != ""; n++ {
		i := r.at + n
		if listItem(r.line(i+1)) != "" && indent(i+1) > indent(i) {
			continue
		}
		r.listed = append(r.listed, listed{clean(listItem(r.line(i))), r.place(r.number(i))})
	}
	return n
}

// matchListed matches the listed configurations with the targets of the tables, and registers those without figures. A
// list of which fewer than two items, or fewer than half, match is about something else.
func (b *builder) matchListed() {
	names := map[string]listed{}
	var missed []listed
	for _, l := range b.listed {
		found := false
		for _, t := range b.doc.Experiment.Targets {
			if alike(l.name, t.Name) {
				names[t.Name], found = l, true
			}
		}
		if !found {
			missed = append(missed, l)
		}
	}
	if len(names) < 2 || len(names) < len(missed) {
		return
	}
	for _, l := range missed {
		if !b.targets[l.name] {
			b.registerTarget(l.name)
			names[l.name] = l
		}
	}
	for _, name := range slices.SortedFunc(maps.Keys(names), cmp.Compare) {
		b.doc.Facts[name] = append(b.doc.Facts[name], result.Fact{Name: audit.FactListed, Value: names[name].place})
	}
}

// alike reports whether two names are equal but for case, spaces, punctuation, words for mode, and one letter.
func alike(a, b string) bool {
	x, y := normalised(a), normalised(b)
	return x == y || min(len(x), len(y)) > 5 && withinOneEdit([]rune(x), []rune(y))
}

// normalised returns the letters and digits of a name, in lower case, without words for mode.
func normalised(name string) string {
	low := strings.ToLower(strings.ReplaceAll(strings.ReplaceAll(clean(name), "模式", ""), "mode", ""))
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return -1
	}, low)
}

// withinOneEdit reports whether one letter inserted, removed or replaced turns a into b.
func withinOneEdit(a, b []rune) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	i := 0
	for i < len(a) && a[i] == b[i] {
		i++
	}
	if len(a) == len(b) {
		return i == len(a) || slices.Equal(a[i+1:], b[i+1:])
	}
	return len(b) == len(a)+1 && slices.Equal(a[i:], b[i+1:])
}
