package architecture

import (
	"slices"
	"strings"
	"testing"
)

// knowFamilies holds the packages that may import families, in addition to their own folders: the list of
// implementations, the programs that run workloads, and the import of other tools' output.
var knowFamilies = []string{
	"internal/registry", "internal/load/netload", "internal/agentprogram", "internal/importer",
}

// TestKindsStayInTheirFolders: only few packages import families, so that no other can switch on kinds of workloads:
// the runner, the commands, targets, hosts and the analysis use internal/family alone. Targets deploy Vault, and import
// it.
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
				t.Errorf("%s imports the family %s; put what it needs into family.Traits", s.name, name)
			}
		}
	}
	if known < 10 {
		t.Errorf("found %d imports of families; have they moved?", known)
	}
}
