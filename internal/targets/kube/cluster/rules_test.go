package cluster

import (
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/knotmeter/knotmeter/internal/targets"
)

// TestDeploymentRules checks that runs have the rights to deploy an application only if one is deployed.
func TestDeploymentRules(t *testing.T) {
	rules := runRules(RightsScope{Deployment: []targets.Right{{Resource: "secrets", Verbs: []string{"delete", "create"}}}})
	is := func(r rbacv1.PolicyRule) bool { return slices.Contains(r.Resources, "secrets") }
	i := slices.IndexFunc(rules, is)
	if i < 0 || !slices.Equal(rules[i].Verbs, []string{"create", "delete"}) ||
		slices.ContainsFunc(runRules(RightsScope{}), is) {
		t.Errorf("%+v", rules)
	}
}
