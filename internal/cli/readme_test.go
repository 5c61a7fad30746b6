package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/knotmeter/knotmeter/internal/registry"
)

// TestReadme checks the length of the README and its table of commands.
func TestReadme(t *testing.T) {
	const most = 900
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	if n := len(strings.Fields(string(text))); n > most {
		t.Errorf("README.md has %d words, want at most %d", n, most)
	}
	for _, name := range []string{"run", "plan", "compare", "report",
		"audit", "import", "doctor", "selftest", "clean", "list"} {
		if !strings.Contains(string(text), "| `"+name) {
			t.Errorf("README.md does not name the command %s", name)
		}
		if status, out := execute(t, name, "--help"); status != statusDone {
			t.Errorf("%s --help: status %d\n%s", name, status, out)
		}
	}
}

func TestCompletion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if status, out := execute(t, "completion", shell); status != statusDone || !strings.Contains(out, "knotmeter") {
			t.Errorf("completion %s: status %d", shell, status)
		}
	}
}

func execute(t *testing.T, args ...string) (int, string) {
	t.Helper()
	var out bytes.Buffer
	status := Main(t.Context(), Streams{Out: &out, Err: &out}, "test", args)
	return status, out.String()
}

// TestClusterPage checks the experiment file of the page on clusters.
func TestClusterPage(t *testing.T) {
	text, err := os.ReadFile("../../docs/kubernetes.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "```yml\n")
	yaml, _, ok := strings.Cut(rest, "```")
	if !ok {
		t.Fatal("docs/kubernetes.md shows no experiment file")
	}
	var o options
	o.register(&cobra.Command{Use: "run"})
	o.file = filepath.Join(t.TempDir(), "experiment.yaml")
	if err := os.WriteFile(o.file, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := o.readFile(t.Context()); err != nil {
		t.Fatal(err)
	}
	specs, err := o.specs()
	if err != nil {
		t.Fatal(err)
	}
	for _, spec := range specs {
		_, err := registry.Target(spec)
		if own := spec.Options; err != nil || own["namespace"] != "bench" || own["rotate-nodes"] != "yes" ||
			!strings.Contains(own["config"], "spot") {
			t.Errorf("%+v: %v", spec, err)
		}
	}
}
