package architecture

import (
	"slices"
	"strings"
	"testing"
)

// knowFamilies are what may know kinds of workloads besides the folders of families: the list of implementations, what
// carries workloads out, and what makes cases of other tools' output.
var knowFamilies = []string{
	"internal/registry", "internal/load/netload", "internal/agentprogram", "internal/importer",
}

// A switch over kinds of workloads takes their types or constants, so nobody else may import those: the runner, the
// commands, targets, hosts and the analysis know families by internal/family alone. Targets deploy Vault, and name it.
func TestKindsStayInTheirFolders(t *testing.T) {
	const families = module + "internal/family/"
	known := 0
	for _, s := range sources(t) {
		for _, path := range imports(s.file) {
			name, is := strings.CutPrefix(path, families)
			if !is || name == "familytest" || name == "app/vault" {
				continue
			}
			known++
			inside := strings.HasPrefix(s.pkg, "internal/family/") || s.pkg == "bench" ||
				slices.Contains(knowFamilies, s.pkg)
			if !inside {
				t.Errorf("%s knows the family %s: what it has to know belongs into family.Traits", s.name, name)
			}
		}
	}
	if known < 10 {
		t.Errorf("found %d imports of families; have they moved?", known)
	}
}
