package registry

import (
	"os"
	"strings"
	"testing"
)

// TestTargetPages holds the page about each kind of target to what there is.
func TestTargetPages(t *testing.T) {
	pages := map[string][]string{"lab": {"docs/lab.md"}, "kube": {"docs/kubernetes.md", "docs/app.md"}, "local": {"docs/storage.md", "docs/app.md"}}
	for _, k := range Kinds() {
		page := strings.Join(pages[k.Name], " or ")
		var text []byte
		for _, name := range pages[k.Name] {
			part, err := os.ReadFile("../../" + name)
			if err != nil {
				t.Error(err)
			}
			text = append(text, part...)
		}
		for _, line := range k.Targets {
			// kube:<context> and local:<dir> are named whole, lab:vxlan by its datapath.
			if name := strings.TrimPrefix(line.Spec, k.Name+":"); !strings.Contains(string(text), "`"+name+"`") && !strings.Contains(string(text), "`"+line.Spec+"`") {
				t.Errorf("%s does not name %s", page, line.Spec)
			}
		}
		for _, o := range k.Options {
			if !strings.Contains(string(text), "`"+o.Spec+"`") {
				t.Errorf("%s does not name the option %s", page, o.Spec)
			}
		}
	}
}
