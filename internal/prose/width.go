package prose

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mattn/go-runewidth"
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

// terminal measures columns. Characters whose width depends on the locale have one column, so that every machine
// writes the same text.
var terminal = &runewidth.Condition{StrictEmojiNeutral: true}

// Width returns the number of terminal columns of s: none for combining marks, two for wide characters.
func Width(s string) int { return terminal.StringWidth(s) }

// Left pads s with spaces on its right to n columns.
func Left(s string, n int) string { return terminal.FillRight(s, n) }

// Right pads s with spaces on its left to n columns.
func Right(s string, n int) string { return terminal.FillLeft(s, n) }

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
func Cut(s string, n int) string { return terminal.Truncate(s, n, "…") }

// splitAt returns the first n columns of s, at least one character, and the rest.
func splitAt(s string, n int) (head, tail string) {
	head = terminal.Truncate(s, n, "")
	if head == "" {
		_, size := utf8.DecodeRuneInString(s)
		head = s[:size]
	}
	return head, s[len(head):]
}
