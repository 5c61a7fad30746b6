package text

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/doc"
	"github.com/knotmeter/knotmeter/internal/doc/doctest"
	"github.com/knotmeter/knotmeter/internal/golden"
	"github.com/knotmeter/knotmeter/internal/prose"
)

func TestGolden(t *testing.T) {
	for _, width := range []int{0, MinWidth, 120, 200} {
		w := NewTerminal(width)
		w.Level = doc.Detail
		w.Block(doctest.Block())
		golden.Check(t, fmt.Sprintf("testdata/%d.txt", width), w.String())
	}
}

// TestEveryWidth checks that lines fit, unless one of their words does not, and that no text reaches the terminal as a
// control sequence.
func TestEveryWidth(t *testing.T) {
	colours := regexp.MustCompile(`\x1b\[[0-9;]*m`)
	for width := range 200 {
		w := NewTerminal(width)
		w.Level, w.Colour = doc.Detail, true
		w.Block(doctest.Block())
		w.Block(doctest.HostileBlock())
		for line := range strings.Lines(colours.ReplaceAllString(w.String(), "")) {
			line = strings.TrimSuffix(line, "\n")
			if prose.Width(line) > max(w.Columns(), MinWidth) && len(strings.Fields(line)) > 1 {
				t.Fatalf("%d columns: %q has %d", w.Columns(), line, prose.Width(line))
			}
			if strings.ContainsRune(line, '\x1b') {
				t.Errorf("%q has an escape sequence", line)
			}
		}
	}
}

// TestLevels checks that the answer has neither details nor introductions, and no level what only a page has.
func TestLevels(t *testing.T) {
	answer, detail := doctest.Block(), doctest.Block()
	detail.Title, detail.Level = "Further", doc.Detail
	for level, want := range map[doc.Depth]string{doc.Answer: "SAMPLE", doc.Detail: "SAMPLE About FURTHER About"} {
		w := NewTerminal(0)
		w.Level = level
		w.Block(answer)
		w.Block(detail)
		w.Block(doc.Block{Title: "Without parts"})
		got := regexp.MustCompile(`(?m)^(SAMPLE|FURTHER|About|FOLDED|WITHOUT)`).FindAllString(w.String(), -1)
		if strings.Join(got, " ") != want {
			t.Errorf("level %d has %q, want %q", level, got, want)
		}
	}
}
