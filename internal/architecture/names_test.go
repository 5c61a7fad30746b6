package architecture

import (
	"go/ast"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"testing"
)

var (
	codeName = regexp.MustCompile("`([a-z][a-z0-9]*)\\.([A-Z]\\w*)")
	codePath = regexp.MustCompile("`((?:internal|cmd|test|bench)/[\\w./-]*\\w)[/`]")
)

// TestPagesNameCodeThatExists checks that every package, folder, type, function, constant or variable that a page names
// exists.
func TestPagesNameCodeThatExists(t *testing.T) {
	exported := map[string]bool{}
	for _, s := range sources(t) {
		for _, name := range declared(s.file) {
			exported[s.file.Name.Name+"."+name] = true
		}
	}
	names := 0
	for page, text := range textFiles(t) {
		if path.Ext(page) != ".md" {
			continue
		}
		for _, m := range codeName.FindAllStringSubmatch(text, -1) {
			names++
			if name := m[1] + "." + m[2]; !exported[name] {
				t.Errorf("%s names %s, which does not exist", page, name)
			}
		}
		for _, m := range codePath.FindAllStringSubmatch(text, -1) {
			names++
			if _, err := os.Stat(filepath.Join(root, m[1])); err != nil {
				t.Errorf("%s names %s: %v", page, m[1], err)
			}
		}
	}
	if names < 30 {
		t.Errorf("only %d names were found", names)
	}
}

// declared returns the names that a file declares for its whole package.
func declared(f *ast.File) []string {
	var names []string
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				names = append(names, d.Name.Name)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					names = append(names, spec.Name.Name)
				case *ast.ValueSpec:
					for _, name := range spec.Names {
						names = append(names, name.Name)
					}
				}
			}
		}
	}
	return names
}
