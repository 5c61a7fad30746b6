package kube

import (
	"slices"

	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/knotmeter/knotmeter/internal/target"
)

// RBAC is what a user needs to measure a target, as manifests. With namespace= that is a Role there, and the list of
// nodes unless client-node= and server-node= name them; without it a ClusterRole.
func RBAC(spec target.Spec) (string, error) {
	o, err := parse(spec)
	if err != nil {
		return "", err
	}
	text := ""
	for _, d := range documents(o) {
		part, err := yaml.Marshal(d)
		if err != nil {
			return "", err
		}
		text += "---\n" + string(part)
	}
	return text, nil
}

func documents(o options) []any {
	const (
		api      = "rbac.authorization.k8s.io/v1"
		forFacts = "knotmeter-facts"
	)
	meta := func(name, namespace, about string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: name, Namespace: namespace, Annotations: map[string]string{"knotmeter.dev/why": about}}
	}
	clusterRole := func(name, about string, rules ...rbacv1.PolicyRule) any {
		return rbacv1.ClusterRole{TypeMeta: metav1.TypeMeta{APIVersion: api, Kind: "ClusterRole"}, ObjectMeta: meta(name, "", about), Rules: rules}
	}
	optional := factRules()
	if o.Client != "" && o.Server != "" {
		named := rule("", "nodes", "list", "watch")
		named.ResourceNames = []string{o.Client, o.Server}
		optional = append(optional, named)
	}
	facts := clusterRole(forFacts, "optional: without it, facts about the network plugin and kube-proxy are unknown, and experiments in other namespaces are not seen", optional...)
	nodes := rule("", "nodes", "list", "watch")
	wide := clusterRole("knotmeter-api-wide", "cases of the API server, optional: for namespaces, the API server's metrics and the names of its priorities",
		append(wideAskRules(o), priorityRules()...)...)
	const forAPI = "cases of the API server, in addition; not needed for others"
	wideVolumes := clusterRole("knotmeter-storage-wide",
		"storage, in addition, not optional: volumes are checked, so that no data of others are overwritten or removed",
		wideVolumeRules()...)
	const forStorage = "storage, in addition; not needed for others"
	if o.Namespace == "" {
		own := append([]rbacv1.PolicyRule{nodes, rule("", "namespaces", "create", "delete", "list", "watch"),
			rule("", "persistentvolumeclaims", "list")}, runRules(o)...)
		return []any{clusterRole("knotmeter", "measuring, in namespaces that are made and removed", own...), clusterRole("knotmeter-api", forAPI, askRules(o)...), wide,
			clusterRole("knotmeter-storage", forStorage, volumeRules()...), wideVolumes, facts}
	}
	role := rbacv1.Role{
		TypeMeta: metav1.TypeMeta{APIVersion: api, Kind: "Role"}, ObjectMeta: meta("knotmeter", o.Namespace, "measuring in this namespace"), Rules: runRules(o),
	}
	asking := rbacv1.Role{
		TypeMeta: metav1.TypeMeta{APIVersion: api, Kind: "Role"}, ObjectMeta: meta("knotmeter-api", o.Namespace, forAPI), Rules: askRules(o),
	}
	volumes := rbacv1.Role{
		TypeMeta: metav1.TypeMeta{APIVersion: api, Kind: "Role"}, ObjectMeta: meta("knotmeter-storage", o.Namespace, forStorage), Rules: volumeRules(),
	}
	if o.Client != "" && o.Server != "" {
		return []any{role, asking, wide, volumes, wideVolumes, facts}
	}
	return []any{role, clusterRole("knotmeter-nodes", "choosing nodes; not needed with client-node= and server-node=", nodes), asking, wide, volumes, wideVolumes, facts}
}

func rule(group, resource string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
}

// runRules are what runs take: a Vault that is deployed has a Secret besides.
func runRules(o options) []rbacv1.PolicyRule {
	rules := append(siteRules(), rule(coordinationv1.GroupName, "leases", "create", "list", "patch", "delete"))
	if o.Vault.Deploy {
		return append(rules, rule("", "secrets", "create", "delete"))
	}
	return rules
}

// siteRules are what the places of runs take.
func siteRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		rule("", "pods", "create", "list", "watch", "delete", "deletecollection"),
		rule("", "pods/exec", "create", "get"),
		rule("", "services", "create", "list", "delete"),
		rule("", "events", "list"),
		rule("discovery.k8s.io", "endpointslices", "watch"),
		rule("networking.k8s.io", "networkpolicies", "list"),
	}
}

func factRules() []rbacv1.PolicyRule {
	maps := rule("", "configmaps", "get")
	for _, name := range configMaps() {
		if !slices.Contains(maps.ResourceNames, name[1]) {
			maps.ResourceNames = append(maps.ResourceNames, name[1])
		}
	}
	pools := rule("crd.projectcalico.org", "ippools", "list")
	felix := rule("crd.projectcalico.org", "felixconfigurations", "get")
	for _, r := range []*rbacv1.PolicyRule{&pools, &felix} {
		r.APIGroups = append(r.APIGroups, "projectcalico.org")
	}
	felix.ResourceNames = []string{calicoDefault}
	return []rbacv1.PolicyRule{
		maps, rule(coordinationv1.GroupName, "leases", "list"), rule("apps", "daemonsets", "list"), pools, felix,
		rule("cilium.io", "ciliumnodeconfigs", "list"), rule("cilium.io", "ciliumnetworkpolicies", "list"),
		rule("cilium.io", "ciliumclusterwidenetworkpolicies", "list"),
	}
}
