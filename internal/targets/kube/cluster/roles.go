package cluster

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/knotmeter/knotmeter/internal/targets"
	"github.com/knotmeter/knotmeter/internal/targets/kube/inspection"
)

// DefaultNamespace is the namespace of printed rights if the target names none.
const DefaultNamespace = "knotmeter"

// A RightsScope holds the properties of a target that determine the rights it needs.
type RightsScope struct {
	Namespace string    // existing namespace; "" if each experiment creates one
	Nodes     [2]string // named by the user; "" if chosen
	FromHere  bool      // requests to the API server come from this machine
	// Rights are those of the cases that ask the API server: the planned ones, or all.
	Rights []targets.Right
	// Deployment holds the rights to deploy an application. Stored describes its data on volumes; "" if it has none.
	Deployment     []targets.Right
	Stored         string
	DefaultNetwork string // NAMESPACE/NAME of the pods' network, if it is not the cluster's
	NoClaims       bool   // storage is measured without PersistentVolumeClaims
}

// Manifests returns the rights as YAML: in one namespace, or, if wide, for namespaces that experiments create and
// remove.
func Manifests(n RightsScope, wide bool) (string, error) {
	text := clusterIntroduction()
	if !wide {
		text = introduction(&n)
	}
	for _, d := range Roles(n) {
		part, err := yaml.Marshal(d)
		if err != nil {
			return "", err
		}
		text += "---\n" + comment(purposeOf(d)) + string(part)
	}
	return text, nil
}

// annotationWhy is the annotation of a role that explains what it allows and when it is needed.
const annotationWhy = "knotmeter.dev/why"

// introduction returns comments that explain the Roles and how to bind them. It sets a default namespace in n if there
// is none.
func introduction(n *RightsScope) string {
	text := ""
	if n.Namespace == "" {
		n.Namespace = DefaultNamespace
		text = comment("No namespace is named, so these rights are for one called "+n.Namespace+", which you create first:") +
			"#   kubectl create namespace " + n.Namespace + "\n" +
			"#   knotmeter run --target 'kube:?namespace=" + n.Namespace + "' ...\n" +
			comment("Without namespace=, Knotmeter creates and deletes a namespace for each experiment. That takes "+
				"rights close to cluster-admin, which 'knotmeter doctor --rbac=cluster' prints.") + "#\n"
	}
	return text + comment("Each Role allows something in the namespace "+n.Namespace+" and nothing elsewhere; each "+
		"ClusterRole reads only. Bind what you need, for example:") +
		"#   kubectl create rolebinding knotmeter -n " + n.Namespace + " --role knotmeter --user NAME\n" +
		"#   kubectl create clusterrolebinding knotmeter-facts --clusterrole knotmeter-facts --user NAME\n"
}

// clusterIntroduction returns comments that warn of the ClusterRoles' power.
func clusterIntroduction() string {
	return comment("WARNING: these rights are close to cluster-admin. They hold in every namespace, "+
		"kube-system included. Whoever has them can start pods, run commands in all pods that there are, and by that use "+
		"their Secrets and their service accounts; and can delete any namespace with all that is in it. Kubernetes cannot "+
		"limit them to "+
		"namespaces that do not exist yet.") +
		comment("They are needed only to create a namespace for each experiment, and for cases that "+
			"create namespaces. Everything else works in one existing namespace, except reading the API server's metrics "+
			"from a pod: "+
			"'knotmeter doctor --rbac' prints the rights in it.")
}

// comment returns a text as lines of YAML comments.
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

// purposeOf returns the annotation that explains a Role or ClusterRole; "" for other objects.
func purposeOf(document any) string {
	switch d := document.(type) {
	case rbacv1.Role:
		return d.Annotations[annotationWhy]
	case rbacv1.ClusterRole:
		return d.Annotations[annotationWhy]
	}
	return ""
}

// clusterRole returns a ClusterRole with the annotation why.
func clusterRole(name, why string, rules ...rbacv1.PolicyRule) any {
	return rbacv1.ClusterRole{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{annotationWhy: why}}, Rules: rules,
	}
}

// role returns a Role in the target's namespace, or a ClusterRole if the target has none.
func (n RightsScope) role(name, what string, rules ...rbacv1.PolicyRule) any {
	if n.Namespace == "" {
		return clusterRole(name, what+", in ALL namespaces, those of others included", rules...)
	}
	return rbacv1.Role{
		TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "Role"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: n.Namespace, Annotations: map[string]string{
			annotationWhy: what + ", in the namespace " + n.Namespace,
		}}, Rules: rules,
	}
}

// Roles returns the Roles and ClusterRoles that a user needs, each annotated with its purpose.
func Roles(n RightsScope) []any {
	nodes := rule("", "nodes", "list", "watch")
	const runs = "creates and deletes pods and Services, and runs commands in pods (exec)"
	var list []any
	switch {
	case n.Namespace == "":
		own := []rbacv1.PolicyRule{
			nodes, rule("", "namespaces", "create", "delete", "list", "watch"), rule("", "persistentvolumeclaims", "list"),
		}
		list = []any{n.role("knotmeter", "Required: creates and DELETES namespaces; "+runs, append(own, runRules(n)...)...)}
	case n.Nodes[0] != "" && n.Nodes[1] != "":
		list = []any{n.role("knotmeter", "Required: "+runs, runRules(n)...)}
	default:
		list = []any{
			n.role("knotmeter", "Required: "+runs, runRules(n)...),
			clusterRole("knotmeter-nodes", "Required unless client-node= and server-node= name the nodes: reads which nodes "+
				"there are", nodes),
		}
	}
	list = append(list, n.role("knotmeter-api", n.apiRoleText(), n.apiRules()...))
	list = append(list, n.apiClusterRoles()...)
	if users := n.volumeUsers(); users != "" {
		list = append(list, n.volumeRoles(users)...)
	}
	return append(list,
		clusterRole("knotmeter-facts", "Optional: reads the settings of the network plugin and of kube-proxy, the UID "+
			"of kube-system, which tells the cluster from others, and the Leases of experiments in other namespaces, which are "+
			"unknown without it", targetFactRules(n)...))
}

// volumeRoles returns the roles for claims and for facts about volumes.
func (n RightsScope) volumeRoles(users string) []any {
	return []any{
		n.role("knotmeter-storage", "Only for "+users+": creates and deletes PersistentVolumeClaims, and by that the "+
			"volumes that are provisioned for them", volumeRules...),
		clusterRole("knotmeter-storage-wide", "Required for "+users+": reads which storage classes and volumes there are, "+
			"so that no data of others are overwritten or deleted", wideVolumeRules...),
	}
}

// volumeUsers describes what needs volumes; "" if nothing does.
func (n RightsScope) volumeUsers() string {
	var users []string
	if !n.NoClaims {
		users = append(users, "storage")
	}
	if n.Stored != "" {
		users = append(users, n.Stored)
	}
	return strings.Join(users, " and for ")
}

// apiRoleText describes the rights for cases of the API server.
func (n RightsScope) apiRoleText() string {
	var objects []string
	for _, r := range Merge(n.Rights).InNamespace {
		if slices.Contains(r.Verbs, "create") {
			objects = append(objects, r.Resources...)
		}
	}
	text := "Only for cases of the API server: creates, changes and deletes " + inspection.List(objects)
	if n.FromHere {
		return text
	}
	return text + "; creates a service account for the pods that do so, and grants it what the planned cases take"
}

// apiClusterRoles returns the roles for cases of the API server that need cluster-wide rights. Pods in a namespace that
// the user gave get no such rights.
func (n RightsScope) apiClusterRoles() []any {
	priority := clusterRole("knotmeter-api-priorities", "Optional, for cases of the API server: reads the names of its "+
		"priorities", priorityRules...)
	if n.Namespace != "" && !n.FromHere {
		return []any{priority}
	}
	var list []any
	for _, g := range Merge(n.Rights).ClusterWide {
		about, rules := g.About, g.Rules
		if !n.FromHere {
			about += "; creates ClusterRoles and binds them, with no right that this one lacks"
			rules = slices.Concat(clusterAccountRules, rules)
		}
		list = append(list, clusterRole("knotmeter-api-"+g.Name, about, rules...))
	}
	return append(list, priority)
}
