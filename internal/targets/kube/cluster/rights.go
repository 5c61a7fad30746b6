package cluster

import (
	"cmp"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/knotmeter/knotmeter/internal/targets"
)

// Pods that send requests to the API server have the rights that the planned cases declare, and no others.

// Rights holds the rules of an account.
type Rights struct {
	InNamespace []rbacv1.PolicyRule // of the runs
	ClusterWide []Grant             // in the order of the purposes' names
}

// A Grant holds the cluster-wide rules for a purpose.
type Grant struct {
	targets.Purpose
	Rules []rbacv1.PolicyRule
}

// Merge returns rights as rules: one for each resource, with all its verbs.
func Merge(rights []targets.Right) Rights {
	var r Rights
	for _, one := range rights {
		if one.Purpose.Name == "" {
			r.InNamespace = addRight(r.InNamespace, one)
			continue
		}
		i, known := slices.BinarySearchFunc(r.ClusterWide, one.Purpose.Name, func(g Grant, name string) int {
			return cmp.Compare(g.Name, name)
		})
		if !known {
			r.ClusterWide = slices.Insert(r.ClusterWide, i, Grant{Purpose: one.Purpose})
		}
		r.ClusterWide[i].Rules = addRight(r.ClusterWide[i].Rules, one)
	}
	return r
}

// addRight adds a right to rules, which are sorted by resource. The rules are sorted so that the printed rules do not
// change with the order of the suites.
func addRight(rules []rbacv1.PolicyRule, right targets.Right) []rbacv1.PolicyRule {
	added := rule(right.Group, right.Resource)
	if strings.HasPrefix(right.Resource, "/") {
		added = rbacv1.PolicyRule{NonResourceURLs: []string{right.Resource}}
	}
	i, known := slices.BinarySearchFunc(rules, added, func(a, b rbacv1.PolicyRule) int {
		return cmp.Or(slices.Compare(a.APIGroups, b.APIGroups), slices.Compare(a.Resources, b.Resources),
			slices.Compare(a.NonResourceURLs, b.NonResourceURLs))
	})
	if !known {
		rules = slices.Insert(rules, i, added)
	}
	verbs := slices.Concat(rules[i].Verbs, right.Verbs)
	slices.SortFunc(verbs, func(a, b string) int { return slices.Index(verbOrder, a) - slices.Index(verbOrder, b) })
	rules[i].Verbs = slices.Compact(verbs)
	return rules
}

// verbOrder is the order in which verbs are printed.
var verbOrder = []string{"create", "get", "list", "watch", "update", "patch", "delete", "deletecollection"}
