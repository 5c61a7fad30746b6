package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestScreen(t *testing.T) {
	for text, want := range map[string]string{
		"plain µs ±2 % 测试 👩‍💻\n\ttab": "plain µs ±2 % 测试 👩‍💻\n\ttab",
		"\x1b[31mred\x1b]0;title\a":   `\u001b[31mred\u001b]0;title\u0007`,
		"a\rb\r\nc\r":                 "a\\u000db\r\nc\\u000d",
		"\x7f\u009b31m":               `\u007f\u009b31m`,
		"a\u202eb\u2066c\u200fd":      `a\u202eb\u2066c\u200fd`,
		"tag\U000e0041":               `tag\udb40\udc41`,
		"\xff\xc3(":                   `\xff\xc3(`,
		"cut \xe6\xb5":                `cut \xe6\xb5`,
		"a\u2028b\ufeffc\u00add":      `a\u2028b\ufeffc\u00add`,
	} {
		for _, size := range []int{1, 2, 3, 1000} {
			if got := through(t, []byte(text), size); got != want {
				t.Errorf("%q in pieces of %d: %q, want %q", text, size, got, want)
			}
		}
	}
}

// through writes text to a sanitizer in pieces and returns the output.
func through(t *testing.T, text []byte, size int) string {
	t.Helper()
	var b bytes.Buffer
	s := &sanitizer{to: &b}
	for len(text) > 0 {
		n := min(size, len(text))
		if wrote, err := s.Write(text[:n]); err != nil || wrote != n {
			t.Fatal(wrote, err)
		}
		text = text[n:]
	}
	if err := s.flush(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestScreenOwn checks that the program's own control sequences are not escaped; the same ones in a name are.
func TestScreenOwn(t *testing.T) {
	var b bytes.Buffer
	s := &sanitizer{to: &b}
	_, _ = s.Write([]byte("name" + string(eraseLines(1))))
	writeSequence(s, eraseLines(1))
	_, _ = coloured(s).Write([]byte("\x1b[1;33mworse\x1b[0m \x1b[31mother\x1b[2J"))
	want := `name\u000d\u001b[K\u001b[1A\u001b[K` + string(eraseLines(1)) +
		"\x1b[1;33mworse\x1b[0m " + `\u001b[31mother\u001b[2J`
	if b.String() != want {
		t.Errorf("%q", b.String())
	}
}

// TestNamesOnScreen checks that no command prints control characters of names from files or arguments.
func TestNamesOnScreen(t *testing.T) {
	const evil = "\x1b[31mevil\u202e\u009b2J"
	dir := t.TempDir()
	file := filepath.Join(dir, "in.csv")
	text := "target,case,metric,unit,value\n" +
		strings.Repeat(evil+",pod-pod/other/tcp-rr,p50,us,20\n=a,pod-pod/other/tcp-rr,p50,us,21\n", 8)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "out")
	for _, args := range [][]string{
		{"import", "csv", file, "--out", out}, {"compare", out},
		{"compare", out, "-o", "json"}, {"compare", out, "-o", "markdown"},
		{"audit", out}, {"audit", filepath.Join(dir, evil)}, {"run", "--target", evil},
		{"list", evil}, {evil}, {"doctor", "--target", "lab:" + evil},
	} {
		_, said := execute(t, args...)
		if said == "" || strings.ContainsFunc(strings.ReplaceAll(said, "\r\n", "\n"), isControl) {
			t.Errorf("%q: %q", args, said)
		}
	}
}

// FuzzScreen checks that the output is valid text without control characters, however the input is cut into pieces;
// printable text is not changed; and JSON keeps its meaning.
func FuzzScreen(f *testing.F) {
	for _, text := range []string{"", "plain", "\x1b[2J",
		"\xe6\xb5\x8b\xff", "a\r\nb\rc", "\u202e", "\U000e0041", "\x9b1m"} {
		f.Add([]byte(text), 3)
	}
	f.Fuzz(func(t *testing.T, text []byte, size int) {
		got := through(t, text, size&15+1)
		if got != through(t, text, len(text)+1) {
			t.Errorf("%q depends on how it is cut", text)
		}
		if !utf8.ValidString(got) || strings.ContainsFunc(strings.ReplaceAll(got, "\r\n", "\n"), isControl) {
			t.Errorf("%q: %q", text, got)
		}
		if utf8.Valid(text) && !bytes.ContainsFunc(text, isControl) && got != string(text) {
			t.Errorf("%q: %q", text, got)
		}
		encoded, err := json.Marshal(string(text))
		if err != nil {
			t.Fatal(err)
		}
		var before, after string
		if json.Unmarshal(encoded, &before) != nil || json.Unmarshal([]byte(through(t, encoded, 7)), &after) != nil ||
			before != after {
			t.Errorf("as JSON: %q, %q", before, after)
		}
	})
}
