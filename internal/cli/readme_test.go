package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/knotmeter/knotmeter/internal/all"
)

// TestReadme takes the commands and the file of the README at their word: each experiment that it
// shows can be planned, and each command that it names exists.
func TestReadme(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "experiment.yaml")
	_, rest, _ := strings.Cut(string(text), "```yaml\n")
	yaml, _, ok := strings.Cut(rest, "```")
	if !ok {
		t.Fatal("README.md shows no experiment file")
	}
	if err := os.WriteFile(file, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	experiments := 0
	for line := range strings.Lines(string(text)) {
		args := words(strings.TrimSpace(line))
		if len(args) < 2 || args[0] != "bin/knotmeter" || args[1] != "run" {
			continue
		}
		experiments++
		args[1] = "plan"
		for i := range args {
			args[i] = strings.ReplaceAll(args[i], "experiment.yaml", file)
		}
		if status, out := execute(t, args[1:]...); status != statusDone {
			t.Errorf("%s: status %d\n%s", strings.TrimSpace(line), status, out)
		}
	}
	if experiments < 3 {
		t.Errorf("README.md shows %d experiments, want three and more", experiments)
	}
	for _, name := range []string{"run", "plan", "compare", "report", "audit", "import", "doctor", "selftest", "clean", "list"} {
		if !strings.Contains(string(text), "| `"+name) {
			t.Errorf("README.md does not name the command %s", name)
		}
		if status, out := execute(t, name, "--help"); status != statusDone {
			t.Errorf("%s --help: status %d\n%s", name, status, out)
		}
	}
}

// words splits a line as a shell does, as far as single quotes go.
func words(line string) []string {
	var list []string
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			list = append(list, part)
			continue
		}
		list = append(list, strings.Fields(part)...)
	}
	return list
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

// TestClusterPage takes the experiment file of the page on clusters at its word.
func TestClusterPage(t *testing.T) {
	text, err := os.ReadFile("../../docs/kubernetes.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "```yml\n")
	yaml, rest, ok := strings.Cut(rest, "```")
	if !ok {
		t.Fatal("docs/kubernetes.md shows no experiment file")
	}
	var o options
	c := &cobra.Command{}
	o.register(c)
	o.file = filepath.Join(t.TempDir(), "experiment.yaml")
	if err := os.WriteFile(o.file, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := o.readFile(c.Flags()); err != nil {
		t.Fatal(err)
	}
	specs, err := o.kinds.specs(o.targets)
	if err != nil {
		t.Fatal(err)
	}
	for _, spec := range specs {
		if _, err := all.Target(spec); err != nil || spec.Options["namespace"] != "bench" || spec.Options["rotate-nodes"] != "yes" || !strings.Contains(spec.Options["config"], "spot") {
			t.Errorf("%+v: %v", spec, err)
		}
	}
	fields := reflect.TypeFor[clustersInFile]()
	for i := range fields.NumField() {
		if name := fields.Field(i).Tag.Get("json"); !strings.Contains(yaml, name+":") && !strings.Contains(rest, "`"+name+"`") {
			t.Errorf("docs/kubernetes.md does not name the field %s", name)
		}
	}
	for _, kind := range all.Kinds() {
		for _, f := range kind.Flags {
			if !slices.ContainsFunc(reflect.VisibleFields(fields), func(e reflect.StructField) bool { return e.Tag.Get("flag") == f.Name }) {
				t.Errorf("an experiment file can not say what --%s does", f.Name)
			}
		}
	}
}
