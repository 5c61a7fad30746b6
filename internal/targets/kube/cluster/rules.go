package cluster

import (
	"slices"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/knotmeter/knotmeter/internal/targets/kube/product"
)

// accountRules allow creating an account with a Role.
var accountRules = []rbacv1.PolicyRule{
	rule("", "serviceaccounts", "create", "delete", "list"),
	rule("rbac.authorization.k8s.io", "roles", "create", "delete", "list"),
	rule("rbac.authorization.k8s.io", "rolebindings", "create", "delete", "list"),
	rule("batch", "jobs", "create", "patch", "delete", "list"),
}

// apiRules returns the rights that a user needs for cases of the API server: to create the account, and the account's
// own rights, because RBAC forbids granting permissions that the user lacks.
func (n RightsScope) apiRules() []rbacv1.PolicyRule {
	rules := Merge(n.Rights).InNamespace
	if n.FromHere {
		return rules
	}
	return slices.Concat(accountRules, rules)
}

// priorityRules allow reading the names of flow schemas and priority levels.
var priorityRules = []rbacv1.PolicyRule{
	rule("flowcontrol.apiserver.k8s.io", "flowschemas", "list"),
	rule("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations", "list"),
}

// clusterAccountRules allow granting the account cluster-wide rights.
var clusterAccountRules = []rbacv1.PolicyRule{
	rule("rbac.authorization.k8s.io", "clusterroles", "create", "delete", "list"),
	rule("rbac.authorization.k8s.io", "clusterrolebindings", "create", "delete", "list"),
}

// ReadVolumes allows reading volumes. Without it no claim is created, since the volume it is bound to could not be
// checked.
var ReadVolumes = rule("", "persistentvolumes", "get", "list")

// volumeRules are the rights that storage needs in the namespace; wideVolumeRules are those it needs in the whole
// cluster. Without the right to list classes, facts about them are unknown; without that to watch volumes, their
// removal is not awaited.
var volumeRules = []rbacv1.PolicyRule{rule("", "persistentvolumeclaims", "create", "get", "list", "watch", "delete")}

var wideVolumeRules = []rbacv1.PolicyRule{rule("storage.k8s.io", "storageclasses", "list"),
	rule("", "persistentvolumes", "get", "list", "watch")}

// targetFactRules returns the rights that the facts of a target need. Those on nodes and on the pods' network are
// limited to the names that the options give.
func targetFactRules(n RightsScope) []rbacv1.PolicyRule {
	rules := CommonFactRules()
	if n.Nodes[0] != "" && n.Nodes[1] != "" {
		named := rule("", "nodes", "list", "watch")
		named.ResourceNames = n.Nodes[:]
		rules = append(rules, named)
	}
	if _, name, ok := strings.Cut(n.DefaultNetwork, "/"); ok {
		network := rule(product.AttachmentsGroup, product.Attachments, "get")
		network.ResourceNames = []string{name}
		rules = append(rules, network)
	}
	return rules
}

func rule(group, resource string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
}

// runRules returns the rights of runs, with those of a deployed application.
func runRules(n RightsScope) []rbacv1.PolicyRule {
	leases := rule(coordinationv1.GroupName, "leases", "create", "list", "patch", "delete")
	return slices.Concat(SiteRules, []rbacv1.PolicyRule{leases}, Merge(n.Deployment).InNamespace)
}

// SiteRules are the rights that sites need.
var SiteRules = []rbacv1.PolicyRule{
	rule("", "pods", "create", "list", "watch", "delete", "deletecollection"),
	rule("", "pods/exec", "create", "get"),
	rule("", "services", "create", "list", "delete"),
	rule("", "events", "list"),
	rule("discovery.k8s.io", "endpointslices", "watch"),
	rule("networking.k8s.io", "networkpolicies", "list"),
}

// CommonFactRules returns the rights that facts need on any cluster.
func CommonFactRules() []rbacv1.PolicyRule {
	maps := rule("", "configmaps", "get")
	var custom []rbacv1.PolicyRule
	for _, path := range product.ConfigMaps() {
		if _, name, _ := strings.Cut(path, "/"); !slices.Contains(maps.ResourceNames, name) {
			maps.ResourceNames = append(maps.ResourceNames, name)
		}
	}
	for _, p := range product.All() {
		for _, r := range slices.Concat(p.Resources, p.Policies) {
			read := rbacv1.PolicyRule{Resources: []string{r.Plural}, Verbs: []string{"list"}}
			if r.Name != "" {
				read.Verbs, read.ResourceNames = []string{"get"}, []string{r.Name}
			}
			for _, group := range r.Groups {
				if name, _, _ := strings.Cut(group, "/"); !slices.Contains(read.APIGroups, name) {
					read.APIGroups = append(read.APIGroups, name)
				}
			}
			custom = append(custom, read)
		}
	}
	system := rule("", "namespaces", "list") // one namespace; its UID identifies the cluster
	system.ResourceNames = []string{metav1.NamespaceSystem}
	return append([]rbacv1.PolicyRule{
		maps, rule(coordinationv1.GroupName, "leases", "list"), rule("apps", "daemonsets", "list"), system,
	}, custom...)
}
