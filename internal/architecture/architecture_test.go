package architecture

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	module = "github.com/knotmeter/knotmeter/"
	root   = "../.."
)

// A row of the table of imports.md holds a pattern of packages and what they may import.
type row struct {
	pattern string
	imports []string
}

// table returns the rows of the table of imports.md, so that the rules have no second copy.
func table(t *testing.T) []row {
	t.Helper()
	text, err := os.ReadFile("imports.md")
	if err != nil {
		t.Fatal(err)
	}
	var rows []row
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "| `") {
			cells := strings.Split(line, "|")
			rows = append(rows, row{strings.Trim(cells[1], " `"), quoted(cells[2])})
		}
	}
	if len(rows) < 10 {
		t.Fatalf("imports.md: found %d packages; has the table moved?", len(rows))
	}
	return rows
}

// quoted returns the parts of a cell that are in backquotes.
func quoted(cell string) []string {
	var names []string
	for i, part := range strings.Split(cell, "`") {
		if i%2 == 1 {
			names = append(names, part)
		}
	}
	return names
}

// A source is a Go file of the module that is not a test.
type source struct {
	pkg  string // relative to the module: internal/lab/netns
	name string
	file *ast.File
}

// sources parses all Go files of the module except for tests.
func sources(t *testing.T) []source {
	t.Helper()
	var all []source
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if base := d.Name(); name != root && (strings.HasPrefix(base, ".") || base == "testdata" || nested(name)) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, filepath.Dir(name))
		all = append(all, source{filepath.ToSlash(rel), name, file})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// nested reports whether a directory is another module.
func nested(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}

func imports(f *ast.File) []string {
	var names []string
	for _, spec := range f.Imports {
		names = append(names, strings.Trim(spec.Path.Value, `"`))
	}
	return names
}

// matches reports whether a package, without internal/, matches a pattern of the table. A trailing * matches one path
// element.
func matches(pattern, pkg string) bool {
	ok, err := path.Match(pattern, strings.TrimPrefix(pkg, "internal/"))
	return err == nil && ok
}

func TestImportsFollowTheTable(t *testing.T) {
	packages := table(t)
	used := map[string]bool{}
	for _, s := range sources(t) {
		i := slices.IndexFunc(packages, func(r row) bool { return matches(r.pattern, s.pkg) })
		if i < 0 {
			t.Errorf("%s is not in the table of imports.md", s.pkg)
			continue
		}
		used[packages[i].pattern] = true
		for _, name := range imports(s.file) {
			ours, ok := strings.CutPrefix(name, module)
			if !ok {
				continue
			}
			if !slices.ContainsFunc(packages[i].imports, func(p string) bool { return matches(p, ours) }) {
				t.Errorf("%s imports %s, which the table does not allow", s.name, ours)
			}
		}
	}
	for _, r := range packages {
		if !used[r.pattern] {
			t.Errorf("the table lists %s, which does not exist", r.pattern)
		}
	}
}

func TestHouseRules(t *testing.T) {
	for _, s := range sources(t) {
		if base := path.Base(s.pkg); slices.Contains([]string{"util", "utils", "common", "helpers", "misc", "lib"}, base) {
			t.Errorf("%s: name the package by what it contains", s.pkg)
		}
		for _, spec := range s.file.Imports {
			if spec.Name != nil && spec.Name.Name == "_" && spec.Path.Value != `"embed"` {
				t.Errorf("%s: blank import of %s", s.name, spec.Path.Value)
			}
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if n.Recv == nil && n.Name.Name == "init" {
					t.Errorf("%s: an init function", s.name)
				}
			case *ast.CallExpr:
				sel, ok := n.Fun.(*ast.SelectorExpr)
				if !ok || strings.HasPrefix(s.pkg, "cmd/") || s.pkg == "bench" {
					return true
				}
				x, ok := sel.X.(*ast.Ident)
				if ok && (x.Name == "os" && sel.Sel.Name == "Exit" || x.Name == "log" && strings.HasPrefix(sel.Sel.Name, "Fatal")) {
					t.Errorf("%s: %s.%s outside cmd", s.name, x.Name, sel.Sel.Name)
				}
			}
			return true
		})
	}
}
