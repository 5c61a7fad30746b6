package cluster

import (
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
)

// Secrets may be created and deleted only if Vault is deployed, and never read.
func TestVaultRules(t *testing.T) {
	rules := runRules(Need{DeploysVault: true})
	is := func(r rbacv1.PolicyRule) bool { return slices.Contains(r.Resources, "secrets") }
	i := slices.IndexFunc(rules, is)
	if i < 0 || !slices.Equal(rules[i].Verbs, []string{"create", "delete"}) || slices.ContainsFunc(runRules(Need{}), is) {
		t.Errorf("%+v", rules)
	}
}
