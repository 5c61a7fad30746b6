package architecture

import (
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// knowFamilies holds the packages that may import families, in addition to their own folders: the list of
// implementations, the programs that run workloads, and the import of other tools' output.
var knowFamilies = []string{
	"internal/registry", "internal/agent/program", "internal/importer",
}

// TestKindsStayInTheirFolders checks that only a few packages import families, so that no other package can switch on
// kinds of workloads. The runner, the commands, targets, hosts and the analysis use internal/family alone.
func TestKindsStayInTheirFolders(t *testing.T) {
	const families = module + "internal/family/"
	known := 0
	for _, s := range sources(t) {
		for _, path := range imports(s.file) {
			name, is := strings.CutPrefix(path, families)
			if !is || name == "familytest" {
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

// TestAnalysisKnowsNoTargets checks that the packages that analyse and render results depend on no package of targets,
// clusters, hosts or kernels, not even through others.
func TestAnalysisKnowsNoTargets(t *testing.T) {
	imported := map[string][]string{}
	for _, s := range sources(t) {
		imported[s.pkg] = append(imported[s.pkg], imports(s.file)...)
	}
	for _, pkg := range []string{"stats", "audit", "compare", "explain", "report"} {
		dependencies := []string{"internal/" + pkg}
		for i := 0; i < len(dependencies); i++ {
			for _, path := range imported[dependencies[i]] {
				switch own, is := strings.CutPrefix(path, module); {
				case is && !slices.Contains(dependencies, own):
					dependencies = append(dependencies, own)
				case strings.HasPrefix(path, "k8s.io/"), strings.Contains(path, "netlink"), path == "golang.org/x/sys/unix":
					t.Errorf("%s depends on %s, which imports %s", pkg, dependencies[i], path)
				}
			}
		}
		if pkg != "stats" && len(dependencies) < 3 {
			t.Errorf("found only %v for %s; have the packages moved?", dependencies, pkg)
		}
		for _, d := range dependencies {
			for _, forbidden := range []string{"targets", "lab", "host", "agent", "family", "machine", "runner", "registry"} {
				if d == "internal/"+forbidden || strings.HasPrefix(d, "internal/"+forbidden+"/") {
					t.Errorf("%s depends on %s", pkg, d)
				}
			}
		}
	}
}

// TestTargetsKnowNoCalls: no target names the calls of a family. What a run needs of an API server comes with its
// placement.
func TestTargetsKnowNoCalls(t *testing.T) {
	calls := []string{"floor", "pod-startup", "pod-deletion", "configmap", "networkpolicy", "scale", "effect",
		"api/namespace", "policy-deny", "rollout"}
	files := 0
	for _, s := range sources(t) {
		if !strings.HasPrefix(s.pkg, "internal/targets") {
			continue
		}
		files++
		ast.Inspect(s.file, func(n ast.Node) bool {
			literal, is := n.(*ast.BasicLit)
			if is && slices.Contains(calls, strings.Trim(literal.Value, "\"`")) {
				t.Errorf("%s names the call %s; put what it needs into targets.Placement", s.name, literal.Value)
			}
			return true
		})
	}
	if files < 50 {
		t.Errorf("found %d files of targets; have they moved?", files)
	}
}
