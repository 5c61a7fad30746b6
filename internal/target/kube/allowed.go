package kube

import (
	"context"
	"fmt"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/knotmeter/knotmeter/internal/target"
)

// Allowed asks the API server for each right that a path takes in addition to those of all runs, and names those that the user of
// the kubeconfig does not have.
func (k *kubeTarget) Allowed(ctx context.Context, p target.Placement) error {
	if err := k.survey(ctx); err != nil {
		return err
	}
	rules := map[target.Path][]rbacv1.PolicyRule{target.API: askRules(k.options), target.Storage: volumeRules()}[p.Path]
	ctx, cancel := context.WithTimeout(ctx, surveyTime)
	defer cancel()
	var missing []string
	for _, r := range rules {
		for _, resource := range r.Resources {
			verbs, err := k.cluster.refuses(ctx, k.options.Namespace, r.APIGroups[0], resource, r.Verbs)
			if err != nil {
				return explain(err, k.options.Namespace)
			}
			if len(verbs) > 0 {
				missing = append(missing, resource+" ("+list(verbs)+")")
			}
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("who the kubeconfig names lacks rights on %s; 'knotmeter doctor --rbac' prints what is needed", list(missing))
}

// refuses says which verbs may not be used on a resource in a namespace, or without one in all of them.
func (c *cluster) refuses(ctx context.Context, namespace, group, resource string, verbs []string) (refused []string, err error) {
	resource, sub, _ := strings.Cut(resource, "/")
	for _, verb := range verbs {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: namespace, Group: group, Resource: resource, Subresource: sub, Verb: verb},
		}}
		answer, err := c.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		if err != nil {
			return nil, err
		}
		if !answer.Status.Allowed {
			refused = append(refused, verb)
		}
	}
	return refused, nil
}
