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

// MissingRights returns the rights that a placement needs beyond those of every run and that the user lacks, in words.
func MissingRights(
	ctx context.Context, api kubernetes.Interface, n RightsScope, p targets.Placement,
) ([]string, error) {
	var inNamespace []rbacv1.PolicyRule
	switch {
	case p.AsksAPI:
		inNamespace = n.apiRules()
	case p.Volume && !n.NoClaims, p.Application != "" && n.Stored != "":
		return MissingVolumeRights(ctx, api, n.Namespace)
	}
	return MissingRules(ctx, api, n.Namespace, inNamespace...)
}

// MissingVolumeRights returns the rights on claims and volumes that the user lacks; namespace "" is all namespaces.
func MissingVolumeRights(ctx context.Context, api kubernetes.Interface, namespace string) ([]string, error) {
	missing, err := MissingRules(ctx, api, namespace, volumeRules...)
	if err != nil {
		return nil, err
	}
	more, err := MissingRules(ctx, api, "", ReadVolumes)
	return append(missing, more...), err
}

// MissingRightsText returns a clause about missing rights, with the remedy.
func MissingRightsText(missing []string) string {
	return fmt.Sprintf("who the kubeconfig names lacks rights on %s; 'knotmeter doctor --rbac' prints what is needed",
		inspection.List(missing))
}

// MissingRules returns, in words, what the user lacks of some rules; namespace "" is the whole cluster.
func MissingRules(
	ctx context.Context, api kubernetes.Interface, namespace string, rules ...rbacv1.PolicyRule,
) ([]string, error) {
	var missing []string
	for _, r := range rules {
		for _, resource := range r.Resources {
			verbs, err := refusedVerbs(ctx, api, namespace, r.APIGroups[0], resource, r.Verbs)
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

// refusedVerbs returns the verbs that the user may not use on a resource; namespace "" is all namespaces.
func refusedVerbs(
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
