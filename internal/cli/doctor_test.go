package cli

import (
	"errors"
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/result"
)

// What doctor says fits in 80 columns as far as words allow, and begins where it should.
func TestHanging(t *testing.T) {
	long := strings.Repeat("x", 90)
	for _, test := range []struct{ lead, text, indent, want string }{
		{"", "a b", "", "a b"},
		{"  ", "", "  ", "  "},
		{"  name ", strings.Repeat("word ", 15) + "end", "       ", "  name " + strings.Repeat("word ", 13) + "word\n       word end"},
		{"  ", long + " a", "  ", "  " + long + "\n  a"},
		{"", strings.Repeat("é", 40) + " " + strings.Repeat("é", 39), "", strings.Repeat("é", 40) + " " + strings.Repeat("é", 39)},
	} {
		if got := hanging(test.lead, test.text, test.indent); got != test.want {
			t.Errorf("%q after %q:\n%s\nnot\n%s", test.text, test.lead, got, test.want)
		}
	}
}

// What is said of a name is beside it, or below a name that is too long.
func TestEntry(t *testing.T) {
	long := strings.Repeat("n", 30)
	for _, test := range []struct{ name, text, want string }{
		{"kernel", "6.18", "    kernel                   6.18\n"},
		{long, "1", "    " + long + " 1\n"},
		{long, strings.Repeat("word ", 10) + "end", "    " + long + "\n" + strings.Repeat(" ", 29) + strings.Repeat("word ", 9) + "word\n" + strings.Repeat(" ", 29) + "end\n"},
	} {
		var out strings.Builder
		if entry(Streams{Out: &out}, "    ", test.name, test.text); out.String() != test.want {
			t.Errorf("%s\nnot\n%s", out.String(), test.want)
		}
	}
}

// Reasons are said once each, with all that they are about; and one that is none says so.
func TestRefusals(t *testing.T) {
	var r refusals
	r.add("storage", result.NotSupported("there is no disk"))
	r.add("node-node", errors.New("the line is cut"))
	r.add("the API server", result.NotSupported("there is no disk"))
	var out strings.Builder
	r.print(Streams{Out: &out})
	if want := "    not storage, the API server:\n      there is no disk\n    not node-node:\n      could not tell: the line is cut\n"; out.String() != want {
		t.Errorf("%s\nnot\n%s", out.String(), want)
	}
	for n, want := range []string{"a", "a and b", "a, b and c"} {
		if got := enumerated(strings.Fields("a b c")[:n+1]); got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
}
