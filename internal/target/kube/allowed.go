package kube

import (
	"context"
	"errors"
	"fmt"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/knotmeter/knotmeter/internal/target"
	"github.com/knotmeter/knotmeter/internal/target/kube/diagnosis"
	"github.com/knotmeter/knotmeter/internal/target/kube/inspection"
)

// Allowed asks the API server for each right that a path takes in addition to those of all runs, and names those that the user of
// the kubeconfig does not have.
func (k *kubeTarget) Allowed(ctx context.Context, p target.Placement) error {
	if err := k.survey(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, surveyTime)
	defer cancel()
	missing, err := k.lacking(ctx, p.Path)
	if err != nil || len(missing) == 0 {
		return err
	}
	return errors.New(lackText(missing))
}

func lackText(missing []string) string {
	return fmt.Sprintf("who the kubeconfig names lacks rights on %s; 'knotmeter doctor --rbac' prints what is needed", inspection.List(missing))
}

// lacking names the rights that a path takes in addition to those of all runs, and that the user does not have.
func (k *kubeTarget) lacking(ctx context.Context, p target.Path) ([]string, error) {
	var inNamespace, wide []rbacv1.PolicyRule
	switch p {
	case target.API:
		inNamespace = askRules(k.options, k.calls())
	case target.Storage:
		inNamespace, wide = volumeRules(), []rbacv1.PolicyRule{seeVolumes()}
	}
	missing, err := lacks(ctx, k.cluster, k.options.Namespace, inNamespace...)
	if err != nil {
		return nil, err
	}
	more, err := lacks(ctx, k.cluster, "", wide...)
	return append(missing, more...), err
}

// lacks names what of some rules is missing, in a namespace or without one in the whole cluster.
func lacks(ctx context.Context, api kubernetes.Interface, namespace string, rules ...rbacv1.PolicyRule) ([]string, error) {
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
func refuses(ctx context.Context, api kubernetes.Interface, namespace, group, resource string, verbs []string) (refused []string, err error) {
	resource, sub, _ := strings.Cut(resource, "/")
	for _, verb := range verbs {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: namespace, Group: group, Resource: resource, Subresource: sub, Verb: verb},
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
