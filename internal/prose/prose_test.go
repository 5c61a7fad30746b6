package prose

import (
	"strings"
	"testing"
)

func TestParagraph(t *testing.T) {
	for _, tt := range []struct{ first, rest, text, want string }{
		{"", "", "a b", "a b\n"},
		{"  ", "  ", "", "\n"},
		{"  name ", "       ", strings.Repeat("word ", 15) + "end",
			"  name " + strings.Repeat("word ", 13) + "word\n       word end\n"},
		{"", "", strings.Repeat("é", 40) + " " + strings.Repeat("é", 39),
			strings.Repeat("é", 40) + " " + strings.Repeat("é", 39) + "\n"},
		{"", "  ", strings.Repeat("节", 50), strings.Repeat("节", 40) + "\n  " + strings.Repeat("节", 10) + "\n"},
		{"", "", strings.Repeat("x", 77) + " 55 %", strings.Repeat("x", 77) + "\n55 %\n"},
	} {
		var p Page
		if p.Paragraph(tt.first, tt.rest, tt.text); p.String() != tt.want {
			t.Errorf("%q after %q:\n%s\nnot\n%s", tt.text, tt.first, p.String(), tt.want)
		}
	}
}

// TestParagraphFits checks that paragraphs fit into a terminal, also with characters of two columns, and keep all
// words.
func TestParagraphFits(t *testing.T) {
	for _, text := range []string{
		"", "word", strings.Repeat("some words ", 40), strings.Repeat("节点间 同节点 ", 30),
		strings.Repeat("a", 70) + " " + strings.Repeat("b", 70),
	} {
		for _, blanks := range []int{0, 4, 6} {
			indent := strings.Repeat(" ", blanks)
			var p Page
			p.Paragraph(indent, indent+"  ", text)
			for line := range strings.Lines(p.String()) {
				line = strings.TrimSuffix(line, "\n")
				if Width(line) > Columns || text != "" && !strings.HasPrefix(line, indent) {
					t.Errorf("%d columns, not indented by %d: %q", Width(line), blanks, line)
				}
			}
			if got := strings.Join(strings.Fields(p.String()), " "); got != strings.Join(strings.Fields(text), " ") {
				t.Errorf("%q became %q", text, got)
			}
		}
	}
}

// TestRow checks that the text of a row follows its cells, or starts below cells that are too long.
func TestRow(t *testing.T) {
	long, digest := strings.Repeat("n", 30), strings.Repeat("f", 60)
	for _, tt := range []struct{ name, text, want string }{
		{"kernel", "6.18", "    kernel                   6.18\n"},
		{long, "1", "    " + long + " 1\n"},
		{long, strings.Repeat("word ", 10) + "end", "    " + long + "\n" + strings.Repeat(" ", 29) +
			strings.Repeat("word ", 9) + "word\n" + strings.Repeat(" ", 29) + "end\n"},
		{"image", digest, "    image\n      " + digest + "\n"},
		{"evil\x1b", "a\nb", `    evil\x1b                 a\nb` + "\n"},
	} {
		var p Page
		if p.Row("    ", []int{25}, []string{tt.name}, tt.text); p.String() != tt.want {
			t.Errorf("%s\nnot\n%s", p.String(), tt.want)
		}
	}
}

func TestList(t *testing.T) {
	got := List([]Section{
		{Rows: [][]string{{"a", "b", "one"}, {"long", "", "two"}}},
		{Heading: "names:", Rows: [][]string{{"节点", "nodes"}, {"x", "y"}}},
		{Heading: "none"},
	})
	if want := "a     b  one\nlong     two\n\nnames:\n  节点  nodes\n  x     y\n\nnone\n"; got != want {
		t.Errorf("%s\nnot\n%s", got, want)
	}
}

func TestEnumerations(t *testing.T) {
	names := strings.Fields("a b c d e f g")
	for n, want := range map[int]string{0: "", 1: "a", 2: "a and b", 3: "a, b and c"} {
		if got := Enumerate(names[:n]); got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
	for n, want := range map[int]string{0: "", 1: "a", 5: "a, b, c, d, e", 7: "a, b, c, d, e and 2 more"} {
		if got := Some(names[:n]); got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
}

func TestCut(t *testing.T) {
	for s, want := range map[string]string{
		"short": "short", "exactly10!": "exactly10!", "eleven-char": "eleven-ch…", "节点间同节点": "节点间同…",
	} {
		if got := Cut(s, 10); got != want || Width(got) > 10 {
			t.Errorf("%q becomes %q", s, got)
		}
	}
}
