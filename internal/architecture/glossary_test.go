package architecture

import (
	"go/ast"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestOneMeaningPerTypeName checks that several packages declare an exported type of the same name only if the glossary
// lists the name, with the packages and the meaning. A name that is not listed needs another word.
func TestOneMeaningPerTypeName(t *testing.T) {
	listed, packages := sharedTypes(t), map[string][]string{}
	for _, s := range sources(t) {
		pkg, inside := strings.CutPrefix(s.pkg, "internal/")
		if !inside || s.file.Name.Name == "main" || strings.HasSuffix(pkg, "test") {
			continue
		}
		for _, name := range exportedTypes(s.file) {
			if !slices.Contains(packages[name], pkg) {
				packages[name] = append(packages[name], pkg)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(packages)) {
		got := slices.Sorted(slices.Values(packages[name]))
		if want := listed[name]; !slices.Equal(got, want) && (len(got) > 1 || len(want) > 0) {
			t.Errorf("the packages with a type %s are %v, and in docs/glossary.md %v", name, got, want)
		}
		delete(listed, name)
	}
	for name := range listed {
		t.Errorf("docs/glossary.md lists the type %s, which no package declares", name)
	}
}

// sharedTypes returns the types of the glossary's table of names in several packages, with the sorted packages.
func sharedTypes(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "docs/glossary.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "\n### Same word in several packages\n")
	table, _, _ = strings.Cut(table, "\n#")
	types := map[string][]string{}
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 || len(quoted(cells[1])) != 1 {
			continue
		}
		name := quoted(cells[1])[0]
		if types[name] = slices.Sorted(slices.Values(quoted(cells[2]))); len(strings.TrimSpace(cells[3])) == 0 {
			t.Errorf("docs/glossary.md gives no meaning of the type %s", name)
		}
	}
	if len(types) < 10 {
		t.Fatalf("docs/glossary.md: found %d types; has the table moved?", len(types))
	}
	return types
}

// exportedTypes returns the exported types that a file declares. An alias has the meaning of its original.
func exportedTypes(f *ast.File) []string {
	var names []string
	for _, d := range f.Decls {
		group, ok := d.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range group.Specs {
			if s, ok := spec.(*ast.TypeSpec); ok && s.Name.IsExported() && !s.Assign.IsValid() {
				names = append(names, s.Name.Name)
			}
		}
	}
	return names
}
