package kube

import (
	"context"
	"errors"
	"fmt"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Pods that ask the API server do it as a service account of their own, which may do what the cases do and nothing
// else. No other pod of ours has a token.

// Where the token and the certificate of the API server's authority are in a pod that asks it.
const (
	tokenVolume = "api-access"
	tokenDir    = "/var/run/secrets/knotmeter.dev"
	tokenFile   = tokenDir + "/token"
	caFile      = tokenDir + "/ca.crt"
	// tokenTime is how long a token is good for; the kubelet renews it before that.
	tokenTime = 3600 // seconds
	// rootCA is the ConfigMap that every namespace has with the certificate.
	rootCA = "kube-root-ca.crt"
)

// An account is who asks.
type account struct {
	name string
	// lacks says why resources that need more than a Role can not be used.
	lacks map[string]string
	names map[string]string // of flow schemas and priority levels, by UID; those that may be seen
}

// allVerbs are what is done with the objects of cases.
func allVerbs() []string {
	return []string{"create", "get", "list", "watch", "update", "patch", "delete"}
}

// caseRules are what the cases do in the namespace of a run.
func caseRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"configmaps", "services", "pods"}, Verbs: append(allVerbs(), "deletecollection")},
		rule("apps", "deployments", append(allVerbs(), "deletecollection")...),
		rule("apps", "deployments/scale", "patch"),
		rule("apps", "replicasets", "list", "delete", "deletecollection"),
	}
}

// accountRules are what it takes to make an account with a Role.
func accountRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		rule("", "serviceaccounts", "create", "delete", "list"),
		rule("rbac.authorization.k8s.io", "roles", "create", "delete", "list"),
		rule("rbac.authorization.k8s.io", "rolebindings", "create", "delete", "list"),
	}
}

// askRules are what a user needs for cases of the API server: to make the account, and what the account gets, since nobody may
// give away what he does not have.
func askRules(o options) []rbacv1.PolicyRule {
	if o.Here {
		return caseRules()
	}
	return append(accountRules(), caseRules()...)
}

// wideAskRules are what he needs besides for cases of namespaces, and to read the API server's own metrics.
func wideAskRules(o options) []rbacv1.PolicyRule {
	rules := []rbacv1.PolicyRule{namespaceRule(), metricsRule()}
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

func namespaceRule() rbacv1.PolicyRule { return rule("", "namespaces", allVerbs()...) }

func metricsRule() rbacv1.PolicyRule {
	return rbacv1.PolicyRule{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}
}

// What an account gets for the whole cluster, by name.
const (
	forNamespaces = "namespaces"
	forMetrics    = "metrics"
)

// tokenVolumeOf has the token of the pod's account, bound to the pod, and the certificate.
func tokenVolumeOf() corev1.Volume {
	return corev1.Volume{Name: tokenVolume, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
		{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token", ExpirationSeconds: new(int64(tokenTime))}},
		{ConfigMap: &corev1.ConfigMapProjection{
			LocalObjectReference: corev1.LocalObjectReference{Name: rootCA}, Items: []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}},
		}},
	}}}}
}

// accountName is that of the experiment's account, and of its Role and binding.
func (k *kubeTarget) accountName() string { return managedBy + "-" + k.experiment + "-api" }

// clusterName is that of a ClusterRole and its binding.
func (k *kubeTarget) clusterName(purpose string) string {
	return managedBy + "-" + k.experiment + "-" + purpose
}

func (k *kubeTarget) apiLabels() map[string]string {
	return map[string]string{labelManaged: managedBy, labelExperiment: k.experiment}
}

// admit makes the account with its rights, once.
func (k *kubeTarget) admit(ctx context.Context) error {
	if k.account != nil {
		return nil
	}
	// What is given up half way may be made all the same, and is removed by Close.
	k.asked = true
	whole, cancel := context.WithTimeout(context.WithoutCancel(ctx), surveyTime)
	defer cancel()
	a := &account{name: k.accountName(), lacks: map[string]string{}, names: k.cluster.priorities(whole)}
	meta := metav1.ObjectMeta{Name: a.name, Namespace: k.namespace, Labels: k.apiLabels()}
	subjects := []rbacv1.Subject{{Kind: "ServiceAccount", Name: a.name, Namespace: k.namespace}}
	rbac := k.cluster.RbacV1()
	_, err := k.cluster.CoreV1().ServiceAccounts(k.namespace).Create(whole, &corev1.ServiceAccount{ObjectMeta: meta, AutomountServiceAccountToken: new(false)}, metav1.CreateOptions{})
	if ignoreThere(err) == nil {
		_, err = rbac.Roles(k.namespace).Create(whole, &rbacv1.Role{ObjectMeta: meta, Rules: caseRules()}, metav1.CreateOptions{})
	}
	if ignoreThere(err) == nil {
		_, err = rbac.RoleBindings(k.namespace).Create(whole, &rbacv1.RoleBinding{
			ObjectMeta: meta, Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: a.name},
		}, metav1.CreateOptions{})
	}
	if err := ignoreThere(err); err != nil {
		return fmt.Errorf("the account by which the API server is asked can not be made: %w; 'knotmeter doctor --rbac' says what is needed, and vantage=here does without it",
			explain(err, k.namespace))
	}
	for purpose, rule := range map[string]rbacv1.PolicyRule{forNamespaces: namespaceRule(), forMetrics: metricsRule()} {
		if err := k.grant(whole, purpose, rule, subjects); err != nil {
			a.lacks[purpose] = explain(err, "").Error()
		}
	}
	k.account = a
	return nil
}

// grant gives the account a right for the whole cluster.
func (k *kubeTarget) grant(ctx context.Context, purpose string, right rbacv1.PolicyRule, subjects []rbacv1.Subject) error {
	meta := metav1.ObjectMeta{Name: k.clusterName(purpose), Labels: k.apiLabels()}
	rbac := k.cluster.RbacV1()
	_, err := rbac.ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{right}}, metav1.CreateOptions{})
	if ignoreThere(err) != nil {
		return err
	}
	_, err = rbac.ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta, Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
	}, metav1.CreateOptions{})
	return ignoreThere(err)
}

func ignoreThere(err error) error {
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// priorities are the names of the flow schemas and priority levels, by UID; none if they may not be seen.
func (c *cluster) priorities(ctx context.Context) map[string]string {
	names := map[string]string{}
	flow := c.FlowcontrolV1()
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

// mayMakeNamespaces asks whether who the kubeconfig names may; empty if so, else why not.
func (c *cluster) mayMakeNamespaces(ctx context.Context) string {
	for _, verb := range allVerbs() {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: verb, Resource: "namespaces"},
		}}
		answer, err := c.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		if err != nil {
			return "" // the case will tell
		}
		if !answer.Status.Allowed {
			return "who the kubeconfig names may not " + verb + " namespaces"
		}
	}
	return ""
}

// removeAccount removes the account and all that gives it rights.
func (k *kubeTarget) removeAccount(ctx context.Context) error {
	rbac, options := k.cluster.RbacV1(), metav1.DeleteOptions{}
	var errs []error
	drop := func(err error) {
		// What may not be removed could not be made either.
		if err = ignoreGone(err); err != nil && !apierrors.IsForbidden(err) {
			errs = append(errs, explain(err, k.namespace))
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
	}
	return errors.Join(errs...)
}

// sweepTime is how long it may take to remove what an agent that was killed has left.
const sweepTime = 30 * time.Second
