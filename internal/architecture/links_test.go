package architecture

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

var (
	linkTarget = regexp.MustCompile(`(?:\]\(|(?:href|src|srcset)=")([^)\s"]+)`)
	heading    = regexp.MustCompile(`(?m)^#{1,6} +(.+?) *$`)
	inCode     = regexp.MustCompile("`[^`\n]*`")
	elsewhere  = regexp.MustCompile(`https?://\S+`)
	ourPage    = regexp.MustCompile(`\b(?:docs|test|bench)/[\w./-]*\w\.md\b`)
)

// TestLinks checks that every relative link of a page leads to an existing file and heading, and that every page that
// code names exists.
func TestLinks(t *testing.T) {
	texts := textFiles(t)
	links := 0
	for name, text := range texts {
		if path.Ext(name) == ".md" {
			for _, m := range linkTarget.FindAllStringSubmatch(inCode.ReplaceAllString(withoutCode(text), ""), -1) {
				links++
				if fault := broken(texts, name, m[1]); fault != "" {
					t.Errorf("%s: link %s: %s", name, m[1], fault)
				}
			}
		}
		for _, page := range ourPage.FindAllString(elsewhere.ReplaceAllString(text, ""), -1) {
			if _, is := texts[page]; !is && path.Base(name) != "style_test.go" {
				t.Errorf("%s names %s, which does not exist", name, page)
			}
		}
	}
	if links < 50 {
		t.Errorf("only %d links were found", links)
	}
}

// textFiles returns the texts of pages, code and the Makefile, by their paths from the root.
func textFiles(t *testing.T) map[string]string {
	t.Helper()
	texts := map[string]string{}
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if base := d.Name(); d.IsDir() && name != root && (strings.HasPrefix(base, ".") || base == "testdata") {
			return filepath.SkipDir
		}
		if ext := filepath.Ext(name); d.IsDir() || ext != ".md" && ext != ".go" && d.Name() != "Makefile" {
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		texts[filepath.ToSlash(rel)] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return texts
}

// broken describes the fault of a link of a page; it returns "" if there is none. Links to other sites are not checked.
func broken(texts map[string]string, page, link string) string {
	if strings.Contains(link, "://") || strings.HasPrefix(link, "mailto:") {
		return ""
	}
	file, anchor, _ := strings.Cut(link, "#")
	name := page
	if file != "" {
		name = path.Join(path.Dir(page), file)
	}
	if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(name))); err != nil {
		return "there is no such file"
	}
	if anchor != "" && !anchors(texts[name])[anchor] {
		return "the page has no such heading"
	}
	return ""
}

// anchors returns the fragments by which GitHub links to the headings of a page.
func anchors(page string) map[string]bool {
	found := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(withoutCode(page), -1) {
		slug := strings.Map(func(r rune) rune {
			switch {
			case r == ' ' || r == '-':
				return '-'
			case unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_':
				return unicode.ToLower(r)
			}
			return -1
		}, m[1])
		name := slug
		for i := 1; found[name]; i++ {
			name = slug + "-" + strconv.Itoa(i)
		}
		found[name] = true
	}
	return found
}

func TestBrokenLinks(t *testing.T) {
	texts := map[string]string{"docs/metrics.md": "# What it costs, `in` µs\n\n# A\n\n# A\n\n    # code\n"}
	for _, c := range []struct {
		link string
		good bool
	}{
		{"metrics.md", true},
		{"metrics.md#what-it-costs-in-µs", true},
		{"#a-1", true},
		{"#a-2", false},
		{"#code", false},
		{"../README.md", true},
		{"missing.md", false},
		{"https://example.org/missing.md", true},
	} {
		if fault := broken(texts, "docs/metrics.md", c.link); (fault == "") != c.good {
			t.Errorf("%s: %q", c.link, fault)
		}
	}
}
