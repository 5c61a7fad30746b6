package cluster

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/knotmeter/knotmeter/internal/targets"
)

// lines returns a line for each rule.
func lines(where string, rules []rbacv1.PolicyRule) string {
	text := ""
	for _, r := range rules {
		on := strings.Join(slices.Concat(r.Resources, r.NonResourceURLs), " ")
		text += fmt.Sprintf("%s: %s%s %s\n", where, strings.Join(r.APIGroups, " "), "/"+on, strings.Join(r.Verbs, ","))
	}
	return text
}

// TestMerge checks that rights on a resource become one rule, the same in any order of the rights, and that those in
// the whole cluster stay apart.
func TestMerge(t *testing.T) {
	everywhere, metrics := targets.Purpose{Name: "namespaces"}, targets.Purpose{Name: "metrics"}
	rights := []targets.Right{
		{Resource: "pods", Verbs: []string{"list", "create"}},
		{Resource: "namespaces", Verbs: []string{"delete", "create"}, Purpose: everywhere},
		{Group: "apps", Resource: "deployments", Verbs: []string{"patch"}},
		{Resource: "/metrics", Verbs: []string{"get"}, Purpose: metrics},
		{Resource: "pods", Verbs: []string{"list", "watch"}},
		{Resource: "namespaces", Verbs: []string{"get", "create"}, Purpose: everywhere},
		{Resource: "pods/status", Verbs: []string{"patch"}},
	}
	const want = "namespace: /pods create,list,watch\nnamespace: /pods/status patch\nnamespace: apps/deployments patch\n" +
		"metrics: //metrics get\nnamespaces: /namespaces create,get,delete\n"
	for range 2 {
		r := Merge(rights)
		got := lines("namespace", r.InNamespace)
		for _, g := range r.ClusterWide {
			got += lines(g.Name, g.Rules)
		}
		if got != want {
			t.Errorf("got\n%swant\n%s", got, want)
		}
		slices.Reverse(rights)
	}
}
