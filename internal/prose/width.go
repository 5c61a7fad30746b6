package prose

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Plain makes external text safe for a terminal and for single-line formats: unprintable characters, in particular
// escape sequences, become Go escapes.
func Plain(s string) string { return escaped(s, "") }

// PlainLines escapes text as [Plain] does, but keeps line feeds and the replacement character.
func PlainLines(s string) string { return escaped(s, "\n\uFFFD") }

// escaped replaces characters that are neither printable nor in kept by Go escapes.
func escaped(s, kept string) string {
	escape := func(r rune) bool { return !printable(r) && !strings.ContainsRune(kept, r) }
	if !strings.ContainsFunc(s, escape) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if escape(r) {
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// printable reports whether r is printable and not the replacement character.
func printable(r rune) bool { return unicode.IsPrint(r) && r != unicode.ReplacementChar }

// Width returns the number of terminal columns of s: none for combining marks, two for wide characters.
func Width(s string) int {
	n := 0
	for _, r := range s {
		n += runeWidth(r)
	}
	return n
}

func runeWidth(r rune) int {
	switch {
	case r < 0x300:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	case unicode.Is(wide, r):
		return 2
	}
	return 1
}

// wide approximates the characters that Unicode's EastAsianWidth.txt lists as W and F, by whole blocks.
var wide = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x1100, Hi: 0x115f, Stride: 1}, // Hangul Jamo
		{Lo: 0x231a, Hi: 0x231b, Stride: 1}, // watch, hourglass
		{Lo: 0x2e80, Hi: 0x303e, Stride: 1}, // CJK radicals and punctuation
		{Lo: 0x3041, Hi: 0x4dbf, Stride: 1}, // Kana to CJK extension A
		{Lo: 0x4e00, Hi: 0xa4cf, Stride: 1}, // CJK, Yi
		{Lo: 0xa960, Hi: 0xa97f, Stride: 1}, // Hangul Jamo extended
		{Lo: 0xac00, Hi: 0xd7a3, Stride: 1}, // Hangul syllables
		{Lo: 0xf900, Hi: 0xfaff, Stride: 1}, // CJK compatibility
		{Lo: 0xfe30, Hi: 0xfe6f, Stride: 1}, // CJK forms
		{Lo: 0xff00, Hi: 0xff60, Stride: 1}, // full-width forms
		{Lo: 0xffe0, Hi: 0xffe6, Stride: 1},
	},
	R32: []unicode.Range32{
		{Lo: 0x1f300, Hi: 0x1f64f, Stride: 1}, // pictographs
		{Lo: 0x1f680, Hi: 0x1f6ff, Stride: 1},
		{Lo: 0x1f900, Hi: 0x1f9ff, Stride: 1},
		{Lo: 0x20000, Hi: 0x3fffd, Stride: 1}, // CJK extensions
	},
}

// Left pads s with spaces on its right to n columns.
func Left(s string, n int) string { return s + strings.Repeat(" ", max(n-Width(s), 0)) }

// Right pads s with spaces on its left to n columns.
func Right(s string, n int) string { return strings.Repeat(" ", max(n-Width(s), 0)) + s }

// words splits s where a line may end; a percent sign stays with its number.
func words(s string) []string {
	var list []string
	for _, word := range strings.Fields(s) {
		if strings.HasPrefix(word, "%") && len(list) > 0 {
			list[len(list)-1] += " " + word
			continue
		}
		list = append(list, word)
	}
	return list
}

// Wrap breaks s between words into lines of at most n columns. Longer words are broken, except URLs, which stay whole
// so that they can be copied.
func Wrap(s string, n int) []string { return wrap(s, n, n) }

// wrap is Wrap with a different width for the first line.
func wrap(s string, first, rest int) []string {
	var lines []string
	line, room := "", first
	end := func(text string) { lines, line, room = append(lines, text), "", rest }
	for _, word := range words(s) {
		if line != "" && Width(line)+1+Width(word) <= room {
			line += " " + word
			continue
		}
		if line != "" {
			end(line)
		}
		for Width(word) > room && !strings.Contains(word, "://") {
			var head string
			head, word = splitAt(word, room)
			end(head)
		}
		line = word
	}
	if line != "" || len(lines) == 0 {
		end(line)
	}
	return lines
}

// Cut shortens s to at most n columns, with an ellipsis in place of its end.
func Cut(s string, n int) string {
	if Width(s) <= n {
		return s
	}
	head, _ := splitAt(s, n-1)
	return head + "…"
}

// CutMiddle shortens s to at most n columns, with an ellipsis in place of its middle.
func CutMiddle(s string, n int) string {
	if Width(s) <= n {
		return s
	}
	head, tail := splitAt(s, n/2)
	for Width(tail) > n-1-Width(head) {
		_, first := utf8.DecodeRuneInString(tail)
		tail = tail[first:]
	}
	return head + "…" + tail
}

func splitAt(s string, n int) (head, tail string) {
	used := 0
	for i, r := range s {
		if used += runeWidth(r); used > n && i > 0 {
			return s[:i], s[i:]
		}
	}
	return s, ""
}
