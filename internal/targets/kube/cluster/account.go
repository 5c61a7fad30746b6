package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/knotmeter/knotmeter/internal/targets"
	"github.com/knotmeter/knotmeter/internal/targets/kube/diagnosis"
	"github.com/knotmeter/knotmeter/internal/targets/kube/inspection"
	"github.com/knotmeter/knotmeter/internal/targets/kube/manifest"
)

// An Account is who asks.
type Account struct {
	Name string // "": who the kubeconfig names
	// Lacks says why resources that need more than a Role cannot be used.
	Lacks map[string]string
	Names map[string]string     // of flow schemas and priority levels, by UID; those that may be seen
	Owner metav1.OwnerReference // with which its pods go
	term  *term                 // nil where no account was made
}

// A Home is where the accounts of an experiment are made, and what they are called.
type Home struct {
	Experiment string
	Namespace  string
	UID        types.UID // of a namespace that was made for the experiment; "" of one that was given
	// how many accounts there were before: another one has another name, lest it goes with one of these
	Count int
}

// name is that of an account, of its Role and binding, and of the Job that they belong to.
func (h Home) name() string {
	return fmt.Sprintf("%s-%s-api-%d", manifest.ManagedBy, h.Experiment, h.Count)
}

// clusterName is that of a ClusterRole and its binding.
func (h Home) clusterName(purpose string) string {
	return fmt.Sprintf("%s-%s-%s-%d", manifest.ManagedBy, h.Experiment, purpose, h.Count)
}

// meta is of an object in the namespace, or without one in the whole cluster, that goes with its owner.
func (h Home) meta(name, namespace string, owner metav1.OwnerReference) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: name, Namespace: namespace, Labels: manifest.ExperimentLabels(h.Experiment),
		OwnerReferences: []metav1.OwnerReference{owner},
	}
}

func (h Home) subjects() []rbacv1.Subject {
	return []rbacv1.Subject{{Kind: "ServiceAccount", Name: h.name(), Namespace: h.Namespace}}
}

// OfKubeconfig is the user of the kubeconfig as an account, for what is planned.
func OfKubeconfig(ctx context.Context, api kubernetes.Interface, calls []targets.Call) *Account {
	a := &Account{Lacks: map[string]string{}, Names: priorities(ctx, api)}
	if why := mayUseNamespaces(ctx, api, RightsFor(calls).namespaces); why != "" {
		a.Lacks[ForNamespaces] = why
	}
	return a
}

// Make makes an account with the rights of what is planned. It lasts so long without the program, and pod is what the
// Job that it belongs to has for one. What is given up half way may be made all the same, and is removed by Remove.
func Make(
	ctx context.Context, api kubernetes.Interface, h Home, calls []targets.Call, lasts time.Duration, pod corev1.PodSpec,
) (*Account, error) {
	given := RightsFor(calls)
	a := &Account{Name: h.name(), Lacks: map[string]string{}, Names: priorities(ctx, api)}
	var err error
	if a.term, a.Owner, err = newTerm(ctx, api, h, lasts, pod); err == nil {
		err = makeAccount(ctx, api, h, given.Here, a.Owner)
	}
	if err != nil {
		return nil, fmt.Errorf("the account by which the API server is asked cannot be made: %w; "+
			"'knotmeter doctor --rbac' prints what is needed, and vantage=here does without it",
			diagnosis.Explain(err, h.Namespace))
	}
	for purpose, rules := range given.Wide() {
		if err := grantWide(ctx, api, h, purpose, rules); err != nil {
			a.Lacks[purpose] = diagnosis.Explain(err, "").Error()
		}
	}
	a.term.extend()
	return a, nil
}

// Lasts says whether the account is still there, as far as is known here.
func (a *Account) Lasts() bool { return a != nil && a.term.runs() }

// End lets the account run out.
func (a *Account) End() {
	if a != nil {
		a.term.end()
	}
}

// makeAccount makes the account with its rights in the namespace.
func makeAccount(
	ctx context.Context, api kubernetes.Interface, h Home, rules []rbacv1.PolicyRule, owner metav1.OwnerReference,
) error {
	meta, rbac := h.meta(h.name(), h.Namespace, owner), api.RbacV1()
	a := &corev1.ServiceAccount{ObjectMeta: meta, AutomountServiceAccountToken: new(false)}
	_, err := api.CoreV1().ServiceAccounts(h.Namespace).Create(ctx, a, metav1.CreateOptions{})
	if diagnosis.IgnoreAlreadyExists(err) == nil {
		r := &rbacv1.Role{ObjectMeta: meta, Rules: rules}
		_, err = rbac.Roles(h.Namespace).Create(ctx, r, metav1.CreateOptions{})
	}
	if diagnosis.IgnoreAlreadyExists(err) == nil {
		to := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name}
		b := &rbacv1.RoleBinding{ObjectMeta: meta, Subjects: h.subjects(), RoleRef: to}
		_, err = rbac.RoleBindings(h.Namespace).Create(ctx, b, metav1.CreateOptions{})
	}
	return diagnosis.IgnoreAlreadyExists(err)
}

// ErrGiven is why an account in a namespace of others gets no right in the whole cluster: should the binding be left
// behind, it would be for whoever may make service accounts there.
var ErrGiven = errors.New("an account in a namespace that was given with namespace= gets no rights in the whole " +
	"cluster; " +
	"leave namespace= out, or use vantage=here")

// grantWide gives the account a right in the whole cluster, which goes with the namespace.
func grantWide(ctx context.Context, api kubernetes.Interface, h Home, purpose string, rules []rbacv1.PolicyRule) error {
	if h.UID == "" {
		return ErrGiven
	}
	owner := metav1.OwnerReference{APIVersion: "v1", Kind: "Namespace", Name: h.Namespace, UID: h.UID}
	meta, rbac := h.meta(h.clusterName(purpose), "", owner), api.RbacV1()
	_, err := rbac.ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules}, metav1.CreateOptions{})
	if diagnosis.IgnoreAlreadyExists(err) != nil {
		return err
	}
	to := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name}
	b := &rbacv1.ClusterRoleBinding{ObjectMeta: meta, Subjects: h.subjects(), RoleRef: to}
	_, err = rbac.ClusterRoleBindings().Create(ctx, b, metav1.CreateOptions{})
	return diagnosis.IgnoreAlreadyExists(err)
}

// priorities are the names of the flow schemas and priority levels, by UID; none if they may not be seen.
func priorities(ctx context.Context, api kubernetes.Interface) map[string]string {
	names := map[string]string{}
	flow := api.FlowcontrolV1()
	if found, err := flow.FlowSchemas().List(ctx, metav1.ListOptions{}); err == nil {
		for _, s := range found.Items {
			names[string(s.UID)] = s.Name
		}
	}
	if found, err := flow.PriorityLevelConfigurations().List(ctx, metav1.ListOptions{}); err == nil {
		for _, p := range found.Items {
			names[string(p.UID)] = p.Name
		}
	}
	return names
}

// mayUseNamespaces asks whether who the kubeconfig names may do what rules say; empty if so, else why not.
func mayUseNamespaces(ctx context.Context, api kubernetes.Interface, rules []rbacv1.PolicyRule) string {
	for _, r := range rules {
		refused, err := refuses(ctx, api, "", r.APIGroups[0], r.Resources[0], r.Verbs)
		if err == nil && len(refused) > 0 {
			return "who the kubeconfig names may not " + inspection.List(refused) + " namespaces"
		}
	}
	return "" // where it is not known, the case will tell
}
