package architecture

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// maxColumns is the maximum length of a line of code, comments and documentation. A tab counts as one column.
const maxColumns = 120

func TestStyle(t *testing.T) {
	for _, f := range faults(t) {
		t.Error(f)
	}
}

// faults returns the violations of the rules of style.
func faults(t *testing.T) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if base := d.Name(); name != root && (strings.HasPrefix(base, ".") || base == "testdata") {
				return filepath.SkipDir
			}
			return nil
		}
		if ext := filepath.Ext(name); ext != ".go" && ext != ".md" {
			return nil
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		found, err := faultsOf(filepath.ToSlash(rel), string(text))
		all = append(all, found...)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// faultsOf returns the violations in one file.
func faultsOf(name, text string) ([]string, error) {
	if strings.HasSuffix(name, ".md") {
		return longLines(name, prose(text)), nil
	}
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, text, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	found := append(longLines(name, text), wordsOfComments(files, file)...)
	if strings.HasSuffix(name, "_test.go") {
		return found, nil
	}
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil {
			for _, what := range rebuilt(f) {
				found = append(found, fmt.Sprintf("%s: %s %s; make it a variable of the package",
					files.Position(f.Pos()), f.Name.Name, what))
			}
		}
	}
	return found, nil
}

// A wording is a pattern of comments, with the words to use instead, and the files that may still have it.
type wording struct {
	pattern *regexp.Regexp
	instead string
	except  []string
}

// beginnings holds the wordings to avoid in the first line of a function's comment, phrases those to avoid in any line
// of a comment.
var (
	beginnings = []wording{
		{regexp.MustCompile(`^// \w+ (says|tells) (whether|why|what)\b`), "reports whether, returns or describes", nil},
		{regexp.MustCompile(`^// \w+ (is|are) what\b`), "a verb", nil},
	}
	phrases = []wording{
		{regexp.MustCompile(`\bof ours\b`), "the owner's name, or nothing", nil},
		{regexp.MustCompile(`\bcan not\b`), "cannot", nil},
	}
)

// wordsOfComments returns the comments of a file with a wording that the project avoids.
func wordsOfComments(files *token.FileSet, f *ast.File) []string {
	var found []string
	check := func(c *ast.Comment, list []wording) {
		for _, w := range list {
			at := files.Position(c.Pos())
			if bad := w.pattern.FindString(c.Text); bad != "" && !slices.Contains(w.except, at.Filename) {
				found = append(found, fmt.Sprintf("%s: the comment has %q; use %s", at, bad, w.instead))
			}
		}
	}
	for _, d := range f.Decls {
		if function, ok := d.(*ast.FuncDecl); ok && function.Doc != nil {
			check(function.Doc.List[0], beginnings)
		}
	}
	for _, group := range f.Comments {
		for _, c := range group.List {
			check(c, phrases)
		}
	}
	return found
}

func longLines(name, text string) []string {
	var found []string
	number := 0
	for line := range strings.Lines(text) {
		number++
		if n := utf8.RuneCountInString(strings.TrimRight(line, "\r\n")); n > maxColumns {
			found = append(found, fmt.Sprintf("%s:%d: %d columns, want at most %d", name, number, n, maxColumns))
		}
	}
	return found
}

// prose empties the lines of a page that cannot be wrapped: rows of tables, and code.
func prose(page string) string { return tableRow.ReplaceAllString(withoutCode(page), "") }

var tableRow = regexp.MustCompile(`(?m)^\|.*$`)

// withoutCode empties the lines of code of a page, fenced or indented.
func withoutCode(page string) string {
	var b strings.Builder
	fenced := false
	for line := range strings.Lines(page) {
		fence := strings.HasPrefix(strings.TrimSpace(line), "```")
		if fence {
			fenced = !fenced
		}
		if fence || fenced || strings.HasPrefix(line, "    ") {
			line = "\n"
		}
		b.WriteString(line)
	}
	return b.String()
}

// rebuilt describes the work that a function repeats on every call with the same result: it compiles a fixed regular
// expression, or only makes a fixed table.
func rebuilt(f *ast.FuncDecl) []string {
	var what []string
	ast.Inspect(f.Body, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok && isMustCompile(call) {
			what = append(what, "compiles a regular expression")
		}
		return true
	})
	if f.Recv == nil && len(f.Type.Params.List) == 0 && returnsTable(f.Body) {
		what = append(what, "only makes a table")
	}
	return what
}

func isMustCompile(call *ast.CallExpr) bool {
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || !strings.HasPrefix(sel.Sel.Name, "MustCompile") || len(call.Args) != 1 {
		return false
	}
	x, ok := sel.X.(*ast.Ident)
	if !ok || x.Name != "regexp" {
		return false
	}
	_, fixed := call.Args[0].(*ast.BasicLit)
	return fixed
}

// returnsTable reports whether a function only returns a fixed slice or map, without calls in it.
func returnsTable(body *ast.BlockStmt) bool {
	if len(body.List) != 1 {
		return false
	}
	ret, ok := body.List[0].(*ast.ReturnStmt)
	if !ok || len(ret.Results) != 1 {
		return false
	}
	table, ok := ret.Results[0].(*ast.CompositeLit)
	if !ok {
		return false
	}
	switch table.Type.(type) {
	case *ast.ArrayType, *ast.MapType:
	default:
		return false
	}
	fixed := len(table.Elts) > 0
	ast.Inspect(table, func(n ast.Node) bool {
		switch n.(type) {
		case *ast.CallExpr, *ast.FuncLit:
			fixed = false
		}
		return fixed
	})
	return fixed
}

func TestRulesOfStyle(t *testing.T) {
	long := strings.Repeat("x", maxColumns+1)
	for _, c := range []struct {
		name, text string
		want       int
	}{
		{"p/a.go", "package p\n// " + long + "\n", 1},
		{"p/a_test.go", "package p\n// " + long + "\n", 1},
		{"p/a.go", "package p\nfunc f() []int { return []int{1, 2} }\n", 1},
		{"p/a.go", "package p\nfunc f() map[string][]int { return map[string][]int{\"a\": {x, y.Z}} }\n", 1},
		{"p/a.go", "package p\nfunc f(i int) bool { return regexp.MustCompile(`a`).MatchString(s) }\n", 1},
		{"p/a.go", "package p\nvar e = regexp.MustCompile(`a`)\nvar t = []int{1}\nfunc f() []int { return t }\n", 0},
		{"p/a.go", "package p\nfunc f(s string) any { return regexp.MustCompile(s) }\n", 0},
		{"p/a.go", "package p\nfunc f(n int) []int { return []int{n} }\nfunc g() []int { return []int{f(1)} }\n", 0},
		{"p/a_test.go", "package p\nfunc f() []int { return []int{1, 2} }\n", 0},
		{"p/a.go", "package p\n\n// f " + "says whether.\nfunc f()\n", 1},
		{"p/a_test.go", "package p\n\n// f is what is.\nfunc f() {} // x of " + "ours\n", 2},
		{"p/a.go", "package p\n\n// T is what is.\ntype T int\n", 0},
		{"p/a.go", "package p\n\n// f reports\n// f " + "says whether.\nfunc f() { g(`// f ` + `tells why`) }\n", 0},
		{"docs/a.md", "# A\n\n" + long + "\n", 1},
		{"docs/a.md", "| " + long + " |\n\n    " + long + "\n\n```\n" + long + "\n```\n", 0},
	} {
		found, err := faultsOf(c.name, c.text)
		if err != nil || len(found) != c.want {
			t.Errorf("%s: %q: found %v, %v; want %d", c.name, c.text, found, err, c.want)
		}
	}
}
