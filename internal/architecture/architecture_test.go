package architecture

import (
	"bufio"
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

// A row of a table of imports.md holds a pattern in the first column, and the packages in the second.
type row struct {
	pattern string
	imports []string
}

// tables returns the rows of the two tables of imports.md, so that the rules have no second copy.
func tables(t *testing.T) (packages, restricted []row) {
	t.Helper()
	file, err := os.Open("imports.md")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var heading string
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		line := lines.Text()
		if h, ok := strings.CutPrefix(line, "## "); ok {
			heading = h
		}
		if !strings.HasPrefix(line, "| `") {
			continue
		}
		cells := strings.Split(line, "|")
		r := row{strings.Trim(cells[1], " `"), quoted(cells[2])}
		switch heading {
		case "Packages":
			packages = append(packages, r)
		case "Restricted imports":
			restricted = append(restricted, r)
		}
	}
	if len(packages) < 10 || len(restricted) < 3 {
		t.Fatalf("imports.md: found %d packages and %d restricted imports; have the tables moved?", len(packages),
			len(restricted))
	}
	return packages, restricted
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

// matches reports whether a package, without internal/, matches a pattern of a table. A trailing * matches one path
// element.
func matches(pattern, pkg string) bool {
	ok, err := path.Match(pattern, strings.TrimPrefix(pkg, "internal/"))
	return err == nil && ok
}

func TestImportsFollowTheTable(t *testing.T) {
	packages, _ := tables(t)
	used := map[string]bool{}
	for _, s := range sources(t) {
		i := slices.IndexFunc(packages, func(r row) bool { return matches(r.pattern, s.pkg) })
		if i < 0 {
			t.Errorf("%s is not in the table of packages of imports.md", s.pkg)
			continue
		}
		used[packages[i].pattern] = true
		for _, name := range imports(s.file) {
			ours, ok := strings.CutPrefix(name, module)
			if !ok {
				continue
			}
			if !slices.ContainsFunc(packages[i].imports, func(p string) bool { return matches(p, ours) }) {
				t.Errorf("%s imports %s, which the table of packages does not allow", s.name, ours)
			}
		}
	}
	for _, r := range packages {
		if !used[r.pattern] {
			t.Errorf("the table of packages lists %s, which does not exist", r.pattern)
		}
	}
}

func TestRestrictedImports(t *testing.T) {
	_, restricted := tables(t)
	for _, s := range sources(t) {
		for _, name := range imports(s.file) {
			for _, r := range restricted {
				if name != r.pattern && !strings.HasPrefix(name, r.pattern+"/") {
					continue
				}
				if !slices.ContainsFunc(r.imports, func(p string) bool { return matches(p, s.pkg) }) {
					t.Errorf("%s imports %s; only %v may", s.name, name, r.imports)
				}
			}
		}
	}
}

func TestEveryPackageHasOneComment(t *testing.T) {
	comments := map[string][]string{}
	for _, s := range sources(t) {
		if _, ok := comments[s.pkg]; !ok {
			comments[s.pkg] = nil
		}
		if s.file.Doc != nil {
			comments[s.pkg] = append(comments[s.pkg], s.name)
		}
	}
	for pkg, files := range comments {
		if len(files) != 1 {
			t.Errorf("%s has %d package comments, want one: %v", pkg, len(files), files)
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
