package cluster

import (
	"context"
	"fmt"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/knotmeter/knotmeter/internal/targets"
	"github.com/knotmeter/knotmeter/internal/targets/kube/diagnosis"
	"github.com/knotmeter/knotmeter/internal/targets/kube/inspection"
)

// Lacking names the rights that a placement takes in addition to those of all runs, and that the user does not have.
func Lacking(
	ctx context.Context, api kubernetes.Interface, n Need, p targets.Placement, calls []targets.Call,
) ([]string, error) {
	var inNamespace []rbacv1.PolicyRule
	switch {
	case p.AsksAPI():
		inNamespace = askRules(n.FromHere, calls)
	case p.Volume && !n.NoClaims, p.Application != "" && n.VaultVolumes:
		return LackingVolumes(ctx, api, n.Namespace)
	}
	return Lacks(ctx, api, n.Namespace, inNamespace...)
}

// LackingVolumes names the rights on claims in a namespace, or without one in all of them, and on volumes that the user
// does not have.
func LackingVolumes(ctx context.Context, api kubernetes.Interface, namespace string) ([]string, error) {
	missing, err := Lacks(ctx, api, namespace, volumeRules...)
	if err != nil {
		return nil, err
	}
	more, err := Lacks(ctx, api, "", SeeVolumes)
	return append(missing, more...), err
}

// LackText says that rights are missing.
func LackText(missing []string) string {
	return fmt.Sprintf("who the kubeconfig names lacks rights on %s; 'knotmeter doctor --rbac' prints what is needed",
		inspection.List(missing))
}

// Lacks names what of some rules is missing, in a namespace or without one in the whole cluster.
func Lacks(
	ctx context.Context, api kubernetes.Interface, namespace string, rules ...rbacv1.PolicyRule,
) ([]string, error) {
	var missing []string
	for _, r := range rules {
		for _, resource := range r.Resources {
			verbs, err := refuses(ctx, api, namespace, r.APIGroups[0], resource, r.Verbs)
			if err != nil {
				return nil, diagnosis.Explain(err, namespace)
			}
			if len(verbs) > 0 {
				missing = append(missing, resource+" ("+inspection.List(verbs)+")")
			}
		}
	}
	return missing, nil
}

// refuses says which verbs may not be used on a resource in a namespace, or without one in all of them.
func refuses(
	ctx context.Context, api kubernetes.Interface, namespace, group, resource string, verbs []string,
) (refused []string, err error) {
	resource, sub, _ := strings.Cut(resource, "/")
	for _, verb := range verbs {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: namespace, Group: group, Resource: resource,
				Subresource: sub, Verb: verb},
		}}
		answer, err := api.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		if err != nil {
			return nil, err
		}
		if !answer.Status.Allowed {
			refused = append(refused, verb)
		}
	}
	return refused, nil
}
