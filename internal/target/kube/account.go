package kube

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/knotmeter/knotmeter/internal/target"
	"github.com/knotmeter/knotmeter/internal/target/kube/diagnosis"
	"github.com/knotmeter/knotmeter/internal/target/kube/inspection"
	"github.com/knotmeter/knotmeter/internal/target/kube/manifest"
)

// An account is who asks.
type account struct {
	name string
	// lacks says why resources that need more than a Role cannot be used.
	lacks map[string]string
	names map[string]string // of flow schemas and priority levels, by UID; those that may be seen
	term  *term             // nil where no account was made
}

// accountRules are what it takes to make an account with a Role.
func accountRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		rule("", "serviceaccounts", "create", "delete", "list"),
		rule("rbac.authorization.k8s.io", "roles", "create", "delete", "list"),
		rule("rbac.authorization.k8s.io", "rolebindings", "create", "delete", "list"),
		rule("batch", "jobs", "create", "patch", "delete", "list"),
	}
}

// askRules are what a user needs for these calls: to make the account, and what the account gets, since RBAC forbids
// granting permissions that the user lacks.
func askRules(o options, calls []target.Call) []rbacv1.PolicyRule {
	rules := rightsFor(calls).here
	if o.Here {
		return rules
	}
	return append(accountRules(), rules...)
}

// wideAskRules are the same of rights in the whole cluster.
func wideAskRules(o options, rules []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	if o.Here {
		return rules
	}
	return append(clusterAccountRules(), rules...)
}

// priorityRules are what the names of priorities take.
func priorityRules() []rbacv1.PolicyRule {
	const group = "flowcontrol.apiserver.k8s.io"
	return []rbacv1.PolicyRule{rule(group, "flowschemas", "list"), rule(group, "prioritylevelconfigurations", "list")}
}

// clusterAccountRules are what it takes to give the account more than a Role can.
func clusterAccountRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		rule("rbac.authorization.k8s.io", "clusterroles", "create", "delete", "list"),
		rule("rbac.authorization.k8s.io", "clusterrolebindings", "create", "delete", "list"),
	}
}

// accountName is that of the experiment's account, of its Role and binding, and of the Job that they belong to.
func (k *kubeTarget) accountName() string {
	return fmt.Sprintf("%s-%s-api-%d", manifest.ManagedBy, k.experiment, k.accounts)
}

// clusterName is that of a ClusterRole and its binding.
func (k *kubeTarget) clusterName(purpose string) string {
	return fmt.Sprintf("%s-%s-%s-%d", manifest.ManagedBy, k.experiment, purpose, k.accounts)
}

func (k *kubeTarget) apiLabels() map[string]string {
	return map[string]string{manifest.LabelManaged: manifest.ManagedBy, manifest.LabelExperiment: k.experiment}
}

// admit makes the account with the rights of what is planned, once. What is given up half way may be made all the
// same, and is removed by Close.
func (k *kubeTarget) admit(ctx context.Context) error {
	if k.account != nil && k.account.term.runs() {
		return nil
	}
	k.dismiss()
	k.asked = true
	whole, cancel := context.WithTimeout(context.WithoutCancel(ctx), surveyTime)
	defer cancel()
	given := rightsFor(k.calls())
	a := &account{name: k.accountName(), lacks: map[string]string{}, names: priorities(whole, k.cluster)}
	var err error
	if a.term, err = k.newTerm(whole); err == nil {
		err = k.makeAccount(whole, given.here, a.term.owner)
	}
	if err != nil {
		return fmt.Errorf("the account by which the API server is asked cannot be made: %w; "+
			"'knotmeter doctor --rbac' prints what is needed, and vantage=here does without it", diagnosis.Explain(err, k.namespace))
	}
	for purpose, rules := range given.wide() {
		if err := k.grant(whole, purpose, rules); err != nil {
			a.lacks[purpose] = diagnosis.Explain(err, "").Error()
		}
	}
	a.term.extend()
	k.account = a
	return nil
}

// dismiss forgets the account. Another one has another name, lest it goes with this one.
func (k *kubeTarget) dismiss() {
	if k.account == nil {
		return
	}
	k.account.term.end()
	k.account = nil
	k.accounts++
}

// makeAccount makes the account with its rights in the namespace.
func (k *kubeTarget) makeAccount(ctx context.Context, rules []rbacv1.PolicyRule, owner metav1.OwnerReference) error {
	meta := metav1.ObjectMeta{
		Name: k.accountName(), Namespace: k.namespace, Labels: k.apiLabels(), OwnerReferences: []metav1.OwnerReference{owner},
	}
	accounts, rbac := k.cluster.CoreV1().ServiceAccounts(k.namespace), k.cluster.RbacV1()
	a := &corev1.ServiceAccount{ObjectMeta: meta, AutomountServiceAccountToken: new(false)}
	_, err := accounts.Create(ctx, a, metav1.CreateOptions{})
	if ignoreThere(err) == nil {
		r := &rbacv1.Role{ObjectMeta: meta, Rules: rules}
		_, err = rbac.Roles(k.namespace).Create(ctx, r, metav1.CreateOptions{})
	}
	if ignoreThere(err) == nil {
		to := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name}
		b := &rbacv1.RoleBinding{ObjectMeta: meta, Subjects: k.subjects(), RoleRef: to}
		_, err = rbac.RoleBindings(k.namespace).Create(ctx, b, metav1.CreateOptions{})
	}
	return ignoreThere(err)
}

func (k *kubeTarget) subjects() []rbacv1.Subject {
	return []rbacv1.Subject{{Kind: "ServiceAccount", Name: k.accountName(), Namespace: k.namespace}}
}

// errGiven is why an account in a namespace of others gets no right in the whole cluster: should the binding be left
// behind, it would be for whoever may make service accounts there.
var errGiven = errors.New("an account in a namespace that was given with namespace= gets no rights in the whole cluster; " +
	"leave namespace= out, or use vantage=here")

// grant gives the account a right in the whole cluster, which goes with the namespace.
func (k *kubeTarget) grant(ctx context.Context, purpose string, rules []rbacv1.PolicyRule) error {
	if !k.own {
		return errGiven
	}
	owner := metav1.OwnerReference{APIVersion: "v1", Kind: "Namespace", Name: k.namespace, UID: k.namespaceUID}
	meta := metav1.ObjectMeta{
		Name: k.clusterName(purpose), Labels: k.apiLabels(), OwnerReferences: []metav1.OwnerReference{owner},
	}
	rbac := k.cluster.RbacV1()
	_, err := rbac.ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules}, metav1.CreateOptions{})
	if ignoreThere(err) != nil {
		return err
	}
	to := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name}
	b := &rbacv1.ClusterRoleBinding{ObjectMeta: meta, Subjects: k.subjects(), RoleRef: to}
	_, err = rbac.ClusterRoleBindings().Create(ctx, b, metav1.CreateOptions{})
	return ignoreThere(err)
}

func ignoreThere(err error) error {
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
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

// removeAccount removes the account and all that gives it rights.
func (k *kubeTarget) removeAccount(ctx context.Context) error {
	rbac, options := k.cluster.RbacV1(), metav1.DeleteOptions{}
	var errs []error
	drop := func(err error) {
		// What may not be removed could not be made either.
		if err = ignoreGone(err); err != nil && !apierrors.IsForbidden(err) {
			errs = append(errs, diagnosis.Explain(err, k.namespace))
		}
	}
	for _, purpose := range []string{forNamespaces, forMetrics} {
		drop(rbac.ClusterRoleBindings().Delete(ctx, k.clusterName(purpose), options))
		drop(rbac.ClusterRoles().Delete(ctx, k.clusterName(purpose), options))
	}
	if !k.own && k.namespace != "" { // else they go with the namespace
		drop(rbac.RoleBindings(k.namespace).Delete(ctx, k.accountName(), options))
		drop(rbac.Roles(k.namespace).Delete(ctx, k.accountName(), options))
		drop(k.cluster.CoreV1().ServiceAccounts(k.namespace).Delete(ctx, k.accountName(), options))
		drop(k.cluster.BatchV1().Jobs(k.namespace).Delete(ctx, k.accountName(), options))
	}
	return errors.Join(errs...)
}

// sweepTime is how long it may take to remove what an agent that was killed has left.
const sweepTime = 30 * time.Second
