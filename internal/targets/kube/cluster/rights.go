package cluster

import (
	"maps"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/knotmeter/knotmeter/internal/targets"
)

// Pods that measure the API server may do what their cases do, including preparation and cleanup, and nothing else.

// Rights are the rules of an account, in the namespace of the runs and in the whole cluster.
type Rights struct{ InNamespace, namespaces, metrics []rbacv1.PolicyRule }

// Purposes of cluster-wide rights.
const (
	ForNamespaces = "namespaces"
	ForMetrics    = "metrics"
)

// ClusterWide returns the rules for the whole cluster, by purpose.
func (r Rights) ClusterWide() map[string][]rbacv1.PolicyRule {
	all := map[string][]rbacv1.PolicyRule{ForNamespaces: r.namespaces, ForMetrics: r.metrics}
	maps.DeleteFunc(all, func(_ string, rules []rbacv1.PolicyRule) bool { return len(rules) == 0 })
	return all
}

// RightsFor returns the rights that calls need together.
func RightsFor(calls []targets.Call) Rights {
	var r Rights
	for _, c := range calls {
		part := &r.InNamespace
		if c.Resource == "namespace" {
			part = &r.namespaces
		}
		*part = mergeRules(slices.Concat(*part, callRules(c)))
		if ReadsMetrics(c) {
			r.metrics = []rbacv1.PolicyRule{{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}}
		}
	}
	return r
}

// AllCalls returns the calls of all cases.
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

// callRules returns the rules of one case. Every case but the floor creates, finds and removes objects.
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
	if c.Resource == "deployment" { // objects that its controllers create are removed too
		removal := []string{"list", "delete", "deletecollection"}
		rules = append(rules, rule("apps", "replicasets", removal...), rule("", "pods", removal...))
	}
	if c.Operation == "scale" {
		rules = append(rules, rule("apps", "deployments/scale", "patch"))
	}
	return mergeRules(rules)
}

// effectRules returns the rules of a case that measures when a change takes effect: the changed object, and the pods
// that show the effect.
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

// ReadsMetrics reports whether a case also reads the API server's own latency histograms. They exist for requests with
// a single response.
func ReadsMetrics(c targets.Call) bool {
	return c.Resource != "" && c.Operation != "watch" && c.Operation != targets.Effect
}

// allVerbs has all verbs in use, in the order in which they are printed.
var allVerbs = []string{"create", "get", "list", "watch", "update", "patch", "delete", "deletecollection"}

// mergeRules returns one rule for each resource, in order of first appearance, with all its verbs.
func mergeRules(rules []rbacv1.PolicyRule) []rbacv1.PolicyRule {
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
