package cluster

import (
	"maps"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/knotmeter/knotmeter/internal/targets"
)

// What pods that ask the API server are allowed: what their cases do, prepared, measured and cleaned up, and nothing
// else.

// A Rights is what an account gets: in the namespace of the runs, and in the whole cluster.
type Rights struct{ Here, namespaces, metrics []rbacv1.PolicyRule }

// What an account gets for the whole cluster, by name.
const (
	ForNamespaces = "namespaces"
	ForMetrics    = "metrics"
)

// Wide are the rights in the whole cluster, by what they are for.
func (r Rights) Wide() map[string][]rbacv1.PolicyRule {
	all := map[string][]rbacv1.PolicyRule{ForNamespaces: r.namespaces, ForMetrics: r.metrics}
	maps.DeleteFunc(all, func(_ string, rules []rbacv1.PolicyRule) bool { return len(rules) == 0 })
	return all
}

// RightsFor are the rights that calls take together.
func RightsFor(calls []targets.Call) Rights {
	var r Rights
	for _, c := range calls {
		part := &r.Here
		if c.Resource == "namespace" {
			part = &r.namespaces
		}
		*part = merged(slices.Concat(*part, callRules(c)))
		if ReadsMetrics(c) {
			r.metrics = []rbacv1.PolicyRule{{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}}
		}
	}
	return r
}

// AllCalls are those of all cases there are.
func AllCalls() []targets.Call {
	list := []targets.Call{{Operation: "floor"}, {Operation: "pod-startup"}, {Operation: "pod-deletion"}}
	for _, resource := range []string{"configmap", "namespace", "service", "deployment", "pod"} {
		for _, operation := range []string{"create", "get", "list", "update", "patch", "delete", "watch"} {
			list = append(list, targets.Call{Resource: resource, Operation: operation})
		}
	}
	for _, resource := range []string{"networkpolicy", "pod", "endpoint", "service", "deployment"} {
		list = append(list, targets.Call{Resource: resource, Operation: targets.Effect})
	}
	return append(list, targets.Call{Resource: "deployment", Operation: "scale"})
}

// callRules are what one case does. Every case but the floor makes objects, and finds and removes them again.
func callRules(c targets.Call) []rbacv1.PolicyRule {
	if c.Operation == targets.Effect {
		return effectRules(c.Resource)
	}
	group := map[string]string{"deployment": "apps"}[c.Resource]
	own := rule(group, c.Resource+"s", "create", "list", "delete")
	if c.Resource != "namespace" { // many namespaces cannot be removed at once
		own.Verbs = append(own.Verbs, "deletecollection")
	}
	switch c.Operation {
	case "floor":
		return nil
	case "pod-startup", "pod-deletion":
		return []rbacv1.PolicyRule{rule("", "pods", "create", "list", "watch", "delete", "deletecollection")}
	case "update":
		own.Verbs = append(own.Verbs, "get", "update")
	case "get", "watch", "patch":
		own.Verbs = append(own.Verbs, c.Operation)
	}
	rules := []rbacv1.PolicyRule{own}
	if c.Resource == "deployment" { // what controllers make of it is removed too
		removal := []string{"list", "delete", "deletecollection"}
		rules = append(rules, rule("apps", "replicasets", removal...), rule("", "pods", removal...))
	}
	if c.Operation == "scale" {
		rules = append(rules, rule("apps", "deployments/scale", "patch"))
	}
	return merged(rules)
}

// effectRules are what a change of a resource takes whose effect is seen: pods that answer, and what they are behind.
func effectRules(resource string) []rbacv1.PolicyRule {
	removal := []string{"list", "delete", "deletecollection"}
	own := func(group, resources string) rbacv1.PolicyRule {
		return rule(group, resources, append([]string{"create", "watch"}, removal...)...)
	}
	pods := own("", "pods")
	services := rule("", "services", append([]string{"create"}, removal...)...)
	slices := rule("discovery.k8s.io", "endpointslices", "list", "watch")
	switch resource {
	case "networkpolicy":
		return []rbacv1.PolicyRule{pods, own("networking.k8s.io", "networkpolicies")}
	case "endpoint":
		return []rbacv1.PolicyRule{pods, rule("", "pods/status", "patch"), services, slices}
	case "service":
		return []rbacv1.PolicyRule{pods, services, slices}
	case "deployment":
		deployments := own("apps", "deployments")
		deployments.Verbs = append(deployments.Verbs, "patch")
		return []rbacv1.PolicyRule{pods, services, deployments, rule("apps", "replicasets", removal...)}
	}
	return []rbacv1.PolicyRule{pods}
}

// ReadsMetrics says whether the API server's own histograms are read beside a case: those of requests that are
// answered at once.
func ReadsMetrics(c targets.Call) bool {
	return c.Resource != "" && c.Operation != "watch" && c.Operation != targets.Effect
}

// allVerbs are all that are used, in the order in which they are written.
var allVerbs = []string{"create", "get", "list", "watch", "update", "patch", "delete", "deletecollection"}

// merged has a rule for each resource, in the order in which they first come, with all verbs of it.
func merged(rules []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	var list []rbacv1.PolicyRule
	for _, r := range rules {
		at := slices.IndexFunc(list, func(o rbacv1.PolicyRule) bool {
			return slices.Equal(o.APIGroups, r.APIGroups) && slices.Equal(o.Resources, r.Resources)
		})
		if at < 0 {
			list = append(list, rbacv1.PolicyRule{APIGroups: r.APIGroups, Resources: r.Resources})
			at = len(list) - 1
		}
		verbs := slices.Concat(list[at].Verbs, r.Verbs)
		list[at].Verbs = slices.DeleteFunc(slices.Clone(allVerbs), func(v string) bool { return !slices.Contains(verbs, v) })
	}
	return list
}
