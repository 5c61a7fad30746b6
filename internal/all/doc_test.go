package all

import (
	"os"
	"strings"
	"testing"
)

// TestLabPage holds the page about the lab to what there is.
func TestLabPage(t *testing.T) {
	text, err := os.ReadFile("../../docs/lab.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range Kinds() {
		for _, line := range k.Targets {
			if name := strings.TrimPrefix(line.Spec, k.Name+":"); !strings.Contains(string(text), "`"+name+"`") {
				t.Errorf("docs/lab.md does not name %s", line.Spec)
			}
		}
		for _, o := range k.Options {
			if !strings.Contains(string(text), "| `"+o.Spec+"` |") {
				t.Errorf("docs/lab.md does not name the option %s", o.Spec)
			}
		}
	}
}
