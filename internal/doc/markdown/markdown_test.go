package markdown

import (
	"regexp"
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/doc"
	"github.com/knotmeter/knotmeter/internal/doc/doctest"
	"github.com/knotmeter/knotmeter/internal/golden"
)

func TestGolden(t *testing.T) {
	var w Comment
	w.Block(doctest.Block())
	golden.Check(t, "testdata/block.md", w.String())
}

// TestHostileTextStaysText checks that text makes no element, table cell, link or mention.
func TestHostileTextStaysText(t *testing.T) {
	var w Comment
	w.Block(doctest.HostileBlock())
	unescaped := regexp.MustCompile("<script|</td>|@user|#1|[^\\\\][`\\]]|\x1b")
	if found := unescaped.FindString(w.String()); found != "" {
		t.Errorf("%q is not escaped:\n%s", found, w.String())
	}
}

// TestRoom checks that a comment has no more bytes than GitHub accepts, that what it folds ends, and that it counts
// what it left out.
func TestRoom(t *testing.T) {
	var w Comment
	for range 30 {
		b := doctest.Block()
		b.Level, b.Count = doc.Detail, "1 sample"
		for range 3 {
			b.Parts = append(b.Parts, b.Parts...)
		}
		w.Block(b)
	}
	got := w.String()
	const end = "had no room in a comment; the report and its JSON have everything.\n"
	if len(got) > MaxBytes || !strings.HasSuffix(got, end) {
		t.Errorf("%d bytes, which end with %q", len(got), got[len(got)-100:])
	}
	if a, b := strings.Count(got, "<details>"), strings.Count(got, "</details>"); a != b || a == 0 {
		t.Errorf("%d folded parts begin, %d end", a, b)
	}
}
