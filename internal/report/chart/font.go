package chart

import (
	"strings"

	"github.com/knotmeter/knotmeter/internal/prose"
)

// A Font is the look of a text of a sheet. Class selects its colour.
type Font struct {
	Size  float64 // px
	Bold  bool
	Class string
}

// helveticaWidths are the widths of the letters from space to tilde in Helvetica, in thousandths of the size.
var helveticaWidths = [...]float64{
	278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278,
	556, 556, 556, 556, 556, 556, 556, 556, 556, 556, 278, 278, 584, 584, 584, 556,
	1015, 667, 667, 722, 722, 667, 611, 778, 722, 278, 500, 667, 556, 833, 722, 778,
	667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 278, 278, 278, 469, 556,
	333, 556, 556, 500, 556, 556, 278, 556, 556, 222, 222, 500, 222, 833, 556, 556,
	556, 556, 333, 500, 278, 556, 500, 722, 500, 500, 500, 334, 260, 334, 584,
}

// Factors for the widest fonts that a viewer may use instead, such as DejaVu Sans, and the width of letters outside of
// ASCII in Helvetica, in thousandths of the size.
const (
	widthFactor     = 1.17
	boldWidthFactor = 1.29
	nonASCIIWidth   = 650
)

// Width returns the largest width of a text, in pixels, in the fonts that a viewer may use.
func (f Font) Width(s string) float64 {
	sum := 0.0
	for _, r := range s {
		switch {
		case r >= ' ' && r <= '~':
			sum += helveticaWidths[r-' ']
		case r < 0x2000:
			sum += nonASCIIWidth * float64(prose.Width(string(r)))
		default: // arrows and signs are as wide as an ideograph
			sum += 1000 * min(1, float64(prose.Width(string(r))))
		}
	}
	if f.Bold {
		return sum * boldWidthFactor * f.Size / 1000
	}
	return sum * widthFactor * f.Size / 1000
}

// maxKeptRunes limits the work of Fit: a name may have any length.
const maxKeptRunes = 500

// Fit cuts the middle out of a text that is wider than width pixels: names differ at their ends.
func (f Font) Fit(s string, width float64) string {
	if f.Width(s) <= width {
		return s
	}
	runes := []rune(s)
	for keep := min(len(runes)-1, maxKeptRunes); keep > 1; keep-- {
		cut := string(runes[:(keep+1)/2]) + "…" + string(runes[len(runes)-keep/2:])
		if f.Width(cut) <= width {
			return cut
		}
	}
	return "…"
}

// Lines breaks a text into no more than most lines of a width in pixels: between words, and in a wider word after a
// separator. The last line is cut if the text does not fit.
func (f Font) Lines(s string, width float64, most int) []string {
	var list []string
	line, words := "", strings.FieldsFunc(s, func(r rune) bool { return r == ' ' || r == '\n' })
	for len(words) > 0 {
		joined := strings.TrimPrefix(line+" "+words[0], " ")
		switch {
		case f.Width(joined) <= width:
			line, words = joined, words[1:]
		case len(list) == most-1:
			return append(list, f.Fit(strings.TrimPrefix(line+" "+strings.Join(words, " "), " "), width))
		case line != "":
			list, line = append(list, line), ""
		default:
			head := f.fittingPrefix(words[0], width)
			list, words[0] = append(list, head), words[0][len(head):]
		}
	}
	if line == "" {
		return list
	}
	return append(list, line)
}

// fittingPrefix returns the longest beginning of a word that fits, up to a separator if there is one.
func (f Font) fittingPrefix(word string, width float64) string {
	end, broken := 0, 0
	for i, r := range word {
		next := i + len(string(r))
		if i > 0 && f.Width(word[:next]) > width {
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

// separators are the characters after which a long name may be broken.
const separators = ":+/_-?&=,"
