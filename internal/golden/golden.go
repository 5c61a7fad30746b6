// Package golden compares the output of tests with golden files under testdata. go test -update rewrites the files.
package golden

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files anew")

// Update reports whether -update is set, for golden files that Check does not compare.
func Update() bool { return *update }

// Check reports a test failure if the file at path does not contain got. With -update it writes the file first.
func Check(t testing.TB, path, got string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (-update writes it)", err)
	}
	if string(want) == got {
		return
	}
	t.Errorf("%s (-want +got, -update writes it anew):\n%s",
		path, cmp.Diff(strings.SplitAfter(string(want), "\n"), strings.SplitAfter(got, "\n")))
}
