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

// An Account is the identity that sends requests to the API server: a ServiceAccount created for the experiment, or the
// kubeconfig's user.
type Account struct {
	Name string // "" is the user of the kubeconfig
	// DeniedPurposes holds, by purpose, why its cluster-wide rights could not be granted.
	DeniedPurposes map[string]string
	Names          map[string]string     // names of flow schemas and priority levels, by UID, as far as they may be listed
	Owner          metav1.OwnerReference // of the account's pods: the garbage collector removes them with it
	term           *term                 // nil for the user of the kubeconfig
}

// An AccountSpec determines where the account of an experiment is created and how its objects are named.
type AccountSpec struct {
	Experiment string
	Namespace  string
	UID        types.UID // of a namespace made for the experiment; "" if the user gave the namespace
	// Count is the number of earlier accounts. It is part of the names, because the garbage collector may still be
	// removing an earlier account.
	Count int
}

// name returns the name of the account, its Role, its binding and the Job that owns them.
func (h AccountSpec) name() string {
	return fmt.Sprintf("%s-%s-api-%d", manifest.ManagedBy, h.Experiment, h.Count)
}

// clusterName returns the name of the ClusterRole for a purpose and of its binding.
func (h AccountSpec) clusterName(purpose string) string {
	return fmt.Sprintf("%s-%s-%s-%d", manifest.ManagedBy, h.Experiment, purpose, h.Count)
}

// meta returns the metadata of an object that is removed with its owner; namespace "" is for cluster-wide objects.
func (h AccountSpec) meta(name, namespace string, owner metav1.OwnerReference) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: name, Namespace: namespace, Labels: manifest.ExperimentLabels(h.Experiment),
		OwnerReferences: []metav1.OwnerReference{owner},
	}
}

func (h AccountSpec) subjects() []rbacv1.Subject {
	return []rbacv1.Subject{{Kind: "ServiceAccount", Name: h.name(), Namespace: h.Namespace}}
}

// KubeconfigAccount returns the kubeconfig's user as an account for the planned cases.
func KubeconfigAccount(ctx context.Context, api kubernetes.Interface, rights []targets.Right) *Account {
	a := &Account{DeniedPurposes: map[string]string{}, Names: priorities(ctx, api)}
	for _, g := range Merge(rights).ClusterWide {
		if why := refusal(ctx, api, g.Rules); why != "" {
			a.DeniedPurposes[g.Name] = why
		}
	}
	return a
}

// NewAccount creates an account with the rights of the planned cases. The account expires duration after its last
// extension; the program extends it until End. pod is the template of the Job that owns the account. After an error
// some objects may exist; they have the experiment's label, by which they are removed.
func NewAccount(
	ctx context.Context, api kubernetes.Interface, h AccountSpec, rights []targets.Right, duration time.Duration,
	pod corev1.PodSpec,
) (*Account, error) {
	given := Merge(rights)
	a := &Account{Name: h.name(), DeniedPurposes: map[string]string{}, Names: priorities(ctx, api)}
	var err error
	if a.term, a.Owner, err = newTerm(ctx, api, h, duration, pod); err == nil {
		err = createAccount(ctx, api, h, given.InNamespace, a.Owner)
	}
	if err != nil {
		return nil, fmt.Errorf("the account by which the API server is asked cannot be made: %w; "+
			"'knotmeter doctor --rbac' prints what is needed, and vantage=here does without it",
			diagnosis.Explain(err, h.Namespace))
	}
	for _, g := range given.ClusterWide {
		if err := grantClusterWide(ctx, api, h, g); err != nil {
			a.DeniedPurposes[g.Name] = diagnosis.Explain(err, "").Error()
		}
	}
	a.term.keepExtending()
	return a, nil
}

// Valid reports whether the account certainly exists; it may have expired while this machine slept.
func (a *Account) Valid() bool { return a != nil && a.term.valid() }

// End stops extending the account, which then expires.
func (a *Account) End() {
	if a != nil {
		a.term.end()
	}
}

// createAccount creates the ServiceAccount with its Role and RoleBinding.
func createAccount(
	ctx context.Context, api kubernetes.Interface, h AccountSpec, rules []rbacv1.PolicyRule, owner metav1.OwnerReference,
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

// ErrGivenNamespace explains why an account in the user's own namespace gets no cluster-wide rights: if its binding
// were left behind, every user who may create ServiceAccounts there could obtain these rights.
var ErrGivenNamespace = errors.New("an account in a namespace that was given with namespace= gets no rights " +
	"in the whole cluster; leave namespace= out, or use vantage=here")

// grantClusterWide grants the account the cluster-wide rights for a purpose. The namespace owns the ClusterRole and its
// binding, so they are removed with it.
func grantClusterWide(
	ctx context.Context, api kubernetes.Interface, h AccountSpec, g Grant,
) error {
	if h.UID == "" {
		return ErrGivenNamespace
	}
	owner := metav1.OwnerReference{APIVersion: "v1", Kind: "Namespace", Name: h.Namespace, UID: h.UID}
	meta, rbac := h.meta(h.clusterName(g.Name), "", owner), api.RbacV1()
	role := &rbacv1.ClusterRole{ObjectMeta: meta, Rules: g.Rules}
	_, err := rbac.ClusterRoles().Create(ctx, role, metav1.CreateOptions{})
	if diagnosis.IgnoreAlreadyExists(err) != nil {
		return err
	}
	to := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name}
	b := &rbacv1.ClusterRoleBinding{ObjectMeta: meta, Subjects: h.subjects(), RoleRef: to}
	_, err = rbac.ClusterRoleBindings().Create(ctx, b, metav1.CreateOptions{})
	return diagnosis.IgnoreAlreadyExists(err)
}

// priorities returns the names of flow schemas and priority levels by UID, as far as they may be listed.
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

// refusal returns why the kubeconfig's user may not do what cluster-wide rules allow; "" if the user may, or if that is
// unknown, as for rules about URLs.
func refusal(ctx context.Context, api kubernetes.Interface, rules []rbacv1.PolicyRule) string {
	for _, r := range rules {
		for _, resource := range r.Resources {
			refused, err := refusedVerbs(ctx, api, "", r.APIGroups[0], resource, r.Verbs)
			if err == nil && len(refused) > 0 {
				return "who the kubeconfig names may not " + inspection.List(refused) + " " + resource
			}
		}
	}
	return ""
}
