package kube

import (
	"fmt"
	"slices"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/knotmeter/knotmeter/internal/target"
	"github.com/knotmeter/knotmeter/internal/target/kube/inspection"
)

// defaultNamespace is the one that rights are printed for where none is named.
const defaultNamespace = "knotmeter"

// RBAC is what a user needs to measure a target, as manifests: in one namespace, or wide, for namespaces that are made
// and removed.
func RBAC(spec target.Spec, wide bool) (string, error) {
	o, err := parse(spec)
	if err != nil {
		return "", err
	}
	if wide && o.Namespace != "" {
		return "", fmt.Errorf("%w: %s: namespace=%s takes no rights in the whole cluster; "+
			"leave it out, or print those in it with --rbac", target.ErrSpec, spec.Label(), o.Namespace)
	}
	text := clusterIntroduction()
	if !wide {
		text = introduction(&o)
	}
	for _, d := range documents(o) {
		part, err := yaml.Marshal(d)
		if err != nil {
			return "", err
		}
		text += "---\n" + comment(why(d)) + string(part)
	}
	return text, nil
}

// annotationWhy says on a role what it allows, and when it is needed.
const annotationWhy = "knotmeter.dev/why"

// introduction is what the Roles are, and how they are used. Where no namespace is named it chooses one.
func introduction(o *options) string {
	text := ""
	if o.Namespace == "" {
		o.Namespace = defaultNamespace
		text = comment("No namespace is named, so these rights are for one called "+o.Namespace+", which you create first:") +
			"#   kubectl create namespace " + o.Namespace + "\n" +
			"#   knotmeter run --target 'kube:?namespace=" + o.Namespace + "' ...\n" +
			comment("Without namespace=, Knotmeter creates and deletes a namespace for each experiment. That takes "+
				"rights close to cluster-admin, which 'knotmeter doctor --rbac=cluster' prints.") + "#\n"
	}
	return text + comment("Each Role allows something in the namespace "+o.Namespace+" and nothing elsewhere; each "+
		"ClusterRole reads only. Bind what you need, for example:") +
		"#   kubectl create rolebinding knotmeter -n " + o.Namespace + " --role knotmeter --user NAME\n" +
		"#   kubectl create clusterrolebinding knotmeter-facts --clusterrole knotmeter-facts --user NAME\n"
}

// clusterIntroduction says what the ClusterRoles amount to.
func clusterIntroduction() string {
	return comment("WARNING: these rights are close to cluster-admin. They hold in every namespace, "+
		"kube-system included. Whoever has them can start pods, run commands in all pods that there are, and by that use "+
		"their Secrets and their service accounts; and can delete any namespace with all that is in it. Kubernetes cannot limit them to "+
		"namespaces that do not exist yet.") +
		comment("They are needed only to create a namespace for each experiment, and for cases of namespaces "+
			"(api/namespace/...). Everything else works in one existing namespace, except reading the API server's metrics from a pod: "+
			"'knotmeter doctor --rbac' prints the rights in it.")
}

// comment breaks a text into lines that YAML ignores.
func comment(text string) string {
	lines, line := "", "#"
	for word := range strings.FieldsSeq(text) {
		if len(line)+1+len(word) > 120 {
			lines, line = lines+line+"\n", "#"
		}
		line += " " + word
	}
	return lines + line + "\n"
}

// why is what a role says of itself.
func why(document any) string {
	switch d := document.(type) {
	case rbacv1.Role:
		return d.Annotations[annotationWhy]
	case rbacv1.ClusterRole:
		return d.Annotations[annotationWhy]
	}
	return ""
}

// clusterRole allows something everywhere.
func clusterRole(name, why string, rules ...rbacv1.PolicyRule) any {
	return rbacv1.ClusterRole{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{annotationWhy: why}}, Rules: rules,
	}
}

// role allows something in the namespace that is given, or without one everywhere.
func (o options) role(name, what string, rules ...rbacv1.PolicyRule) any {
	if o.Namespace == "" {
		return clusterRole(name, what+", in ALL namespaces, those of others included", rules...)
	}
	return rbacv1.Role{
		TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "Role"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: o.Namespace, Annotations: map[string]string{
			annotationWhy: what + ", in the namespace " + o.Namespace,
		}}, Rules: rules,
	}
}

// documents are the roles that a user needs, each with what it allows.
func documents(o options) []any {
	nodes := rule("", "nodes", "list", "watch")
	const runs = "creates and deletes pods and Services, and runs commands in pods (exec)"
	var list []any
	switch {
	case o.Namespace == "":
		own := []rbacv1.PolicyRule{
			nodes, rule("", "namespaces", "create", "delete", "list", "watch"), rule("", "persistentvolumeclaims", "list"),
		}
		list = []any{o.role("knotmeter", "Required: creates and DELETES namespaces; "+runs, append(own, runRules(o)...)...)}
	case o.Client != "" && o.Server != "":
		list = []any{o.role("knotmeter", "Required: "+runs, runRules(o)...)}
	default:
		list = []any{
			o.role("knotmeter", "Required: "+runs, runRules(o)...),
			clusterRole("knotmeter-nodes", "Required unless client-node= and server-node= name the nodes: reads which nodes "+
				"there are", nodes),
		}
	}
	list = append(list, o.role("knotmeter-api", o.asks(), askRules(o, allCalls())...))
	list = append(list, o.wideAsking()...)
	return append(list,
		o.role("knotmeter-storage", "Only for storage: creates and deletes PersistentVolumeClaims, and by that the volumes "+
			"that are provisioned for them", volumeRules()...),
		clusterRole("knotmeter-storage-wide", "Required for storage: reads which storage classes and volumes there are, so "+
			"that no data of others are overwritten or deleted", wideVolumeRules()...),
		clusterRole("knotmeter-facts", "Optional: reads the settings of the network plugin and of kube-proxy, and the "+
			"Leases of experiments in other namespaces, which are unknown without it", factsRules(o)...))
}

// asks is what the rights for cases of the API server allow.
func (o options) asks() string {
	const objects = "creates, changes and deletes ConfigMaps, Services, pods and Deployments"
	if o.Here {
		return "Only for cases of the API server: " + objects
	}
	return "Only for cases of the API server: " + objects + "; creates a service account for the pods that do so, and " +
		"grants it what the planned cases take"
}

// wideAsking are the roles for cases of the API server that take rights in the whole cluster. In a namespace that is
// given, pods get no such rights.
func (o options) wideAsking() []any {
	priorities := clusterRole("knotmeter-api-priorities", "Optional, for cases of the API server: reads the names of its "+
		"priorities", priorityRules()...)
	if o.Namespace != "" && !o.Here {
		return []any{priorities}
	}
	all, grants := rightsFor(allCalls()), ""
	if !o.Here {
		grants = "; creates ClusterRoles and binds them, with no right that this one lacks"
	}
	return []any{
		clusterRole("knotmeter-api-namespaces", "Only for cases of namespaces (api/namespace/...), and CLOSE TO "+
			"CLUSTER-ADMIN: creates, changes and DELETES ANY namespace"+grants, wideAskRules(o, all.namespaces)...),
		clusterRole("knotmeter-api-metrics", "Optional, for cases of the API server: reads its metrics"+grants,
			wideAskRules(o, all.metrics)...),
		priorities,
	}
}

// factsRules are what facts take; nodes that are named may be read alone.
func factsRules(o options) []rbacv1.PolicyRule {
	if o.Client == "" || o.Server == "" {
		return factRules()
	}
	named := rule("", "nodes", "list", "watch")
	named.ResourceNames = []string{o.Client, o.Server}
	return append(factRules(), named)
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
	for _, name := range inspection.ConfigMaps {
		if !slices.Contains(maps.ResourceNames, name[1]) {
			maps.ResourceNames = append(maps.ResourceNames, name[1])
		}
	}
	pools := rule("crd.projectcalico.org", "ippools", "list")
	felix := rule("crd.projectcalico.org", "felixconfigurations", "get")
	for _, r := range []*rbacv1.PolicyRule{&pools, &felix} {
		r.APIGroups = append(r.APIGroups, "projectcalico.org")
	}
	felix.ResourceNames = []string{inspection.CalicoDefault}
	return []rbacv1.PolicyRule{
		maps, rule(coordinationv1.GroupName, "leases", "list"), rule("apps", "daemonsets", "list"), pools, felix,
		rule("cilium.io", "ciliumnodeconfigs", "list"), rule("cilium.io", "ciliumnetworkpolicies", "list"),
		rule("cilium.io", "ciliumclusterwidenetworkpolicies", "list"),
	}
}
