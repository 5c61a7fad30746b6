package architecture

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
)

// majorVersion is the end of a module's path that says only its version.
var majorVersion = regexp.MustCompile(`/v[0-9]+$`)

// TestModules compares the modules that the program requires with the table of ARCHITECTURE.md, which says why.
func TestModules(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	file, err := modfile.Parse("go.mod", text, nil)
	if err != nil {
		t.Fatal(err)
	}
	var required []string
	for _, r := range file.Require {
		if !r.Indirect {
			required = append(required, majorVersion.ReplaceAllString(strings.TrimPrefix(r.Mod.Path, "github.com/"), ""))
		}
	}
	text, err = os.ReadFile(filepath.Join(root, "ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "## Dependencies")
	section, _, _ = strings.Cut(section, "Linters are modules of their own")
	var explained []string
	for line := range strings.Lines(section) {
		if cells := strings.Split(line, "|"); len(cells) > 1 {
			explained = append(explained, quoted(cells[1])...)
		}
	}
	for _, name := range required {
		if !slices.Contains(explained, name) {
			t.Errorf("ARCHITECTURE.md gives no reason for the module %s", name)
		}
	}
	for _, name := range explained {
		if !slices.Contains(required, name) {
			t.Errorf("ARCHITECTURE.md gives a reason for the module %s, which go.mod does not require", name)
		}
	}
}
