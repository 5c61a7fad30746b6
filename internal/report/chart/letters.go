package chart

import (
	"strings"

	"github.com/knotmeter/knotmeter/internal/prose"
)

// Letters are how a text of a sheet looks. Class gives its colour.
type Letters struct {
	Size  float64 // px
	Bold  bool
	Class string
}

// latin are the widths of the letters from space to tilde in Helvetica, in thousandths of the size.
var latin = [...]float64{
	278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278,
	556, 556, 556, 556, 556, 556, 556, 556, 556, 556, 278, 278, 584, 584, 584, 556,
	1015, 667, 667, 722, 722, 667, 611, 778, 722, 278, 500, 667, 556, 833, 722, 778,
	667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 278, 278, 278, 469, 556,
	333, 556, 556, 500, 556, 556, 278, 556, 556, 222, 222, 500, 222, 833, 556, 556,
	556, 556, 333, 500, 278, 556, 500, 722, 500, 500, 500, 334, 260, 334, 584,
}

// The widest fonts that a viewer may have instead, such as DejaVu Sans, and Latin letters outside of ASCII, in
// Helvetica's widths.
const (
	wider     = 1.17
	widerBold = 1.29
	otherwise = 650
)

// Width is how many pixels a text takes at most, in the fonts that a viewer has.
func (l Letters) Width(s string) float64 {
	sum := 0.0
	for _, r := range s {
		switch {
		case r >= ' ' && r <= '~':
			sum += latin[r-' ']
		case r < 0x2000:
			sum += otherwise * float64(prose.Width(string(r)))
		default: // arrows and signs are as wide as an ideograph
			sum += 1000 * min(1, float64(prose.Width(string(r))))
		}
	}
	if l.Bold {
		return sum * widerBold * l.Size / 1000
	}
	return sum * wider * l.Size / 1000
}

// longest is how many letters of a text are looked at: a name may be of any length.
const longest = 500

// Fit cuts the middle out of a text that is wider than so many pixels: names differ at their ends.
func (l Letters) Fit(s string, width float64) string {
	if l.Width(s) <= width {
		return s
	}
	runes := []rune(s)
	for keep := min(len(runes)-1, longest); keep > 1; keep-- {
		cut := string(runes[:(keep+1)/2]) + "…" + string(runes[len(runes)-keep/2:])
		if l.Width(cut) <= width {
			return cut
		}
	}
	return "…"
}

// Lines breaks a text into at most so many lines of a width: between words, and where a word is wider, behind a
// separator. What does not fit is cut out of the last line.
func (l Letters) Lines(s string, width float64, most int) []string {
	var list []string
	line, words := "", strings.FieldsFunc(s, func(r rune) bool { return r == ' ' || r == '\n' })
	for len(words) > 0 {
		joined := strings.TrimPrefix(line+" "+words[0], " ")
		switch {
		case l.Width(joined) <= width:
			line, words = joined, words[1:]
		case len(list) == most-1:
			return append(list, l.Fit(strings.TrimPrefix(line+" "+strings.Join(words, " "), " "), width))
		case line != "":
			list, line = append(list, line), ""
		default:
			head := l.head(words[0], width)
			list, words[0] = append(list, head), words[0][len(head):]
		}
	}
	if line == "" {
		return list
	}
	return append(list, line)
}

// head is the beginning of a word that fits, up to a separator if there is one.
func (l Letters) head(word string, width float64) string {
	end, broken := 0, 0
	for i, r := range word {
		next := i + len(string(r))
		if i > 0 && l.Width(word[:next]) > width {
			break
		}
		if end = next; strings.ContainsRune(separators, r) {
			broken = next
		}
	}
	if broken > 0 {
		return word[:broken]
	}
	return word[:end]
}

// separators are what a long name is broken behind.
const separators = ":+/_-?&=,"
