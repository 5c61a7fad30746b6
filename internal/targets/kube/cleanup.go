package kube

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/knotmeter/knotmeter/internal/targets"
	"github.com/knotmeter/knotmeter/internal/targets/kube/cluster"
	"github.com/knotmeter/knotmeter/internal/targets/kube/diagnosis"
	"github.com/knotmeter/knotmeter/internal/targets/kube/inspection"
	"github.com/knotmeter/knotmeter/internal/targets/kube/volumes"
)

// removeNamespace removes a namespace with its contents, and returns when it is gone.
func removeNamespace(ctx context.Context, api kubernetes.Interface, name string) error {
	namespaces := api.CoreV1().Namespaces()
	err := namespaces.Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(1))})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil && !apierrors.IsConflict(err) {
		return fmt.Errorf("the namespace %s is not removed: %w", name, diagnosis.Explain(err, name))
	}
	err = cluster.AwaitGone(ctx, cluster.ByName(name), namespaces.List, namespaces.Watch)
	if err != nil {
		return fmt.Errorf("the namespace %s is not gone yet%s: %w", name, remainingPods(ctx, api, name),
			diagnosis.Explain(err, name))
	}
	return nil
}

// remainingPods describes the pods that keep a namespace from being removed because their nodes do not answer; "" if
// none is known.
func remainingPods(ctx context.Context, api kubernetes.Interface, namespace string) string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cluster.ProbeTime)
	defer cancel()
	pods, err := api.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil || len(pods.Items) == 0 {
		return ""
	}
	var names []string
	for _, p := range pods.Items {
		names = append(names, p.Name+" on node "+p.Spec.NodeName)
	}
	slices.Sort(names)
	return " (it has still the pods " + inspection.List(names) + ", which end when their node answers)"
}

// cleanTime limits the wait for removed objects. After an outage, controllers and nodes reconnect to the API server
// only gradually.
const cleanTime = 3 * time.Minute

// cleanCluster reports all objects with our label to how.Found, and removes those that how allows: leftovers, or with
// how.All everything. An experiment counts as running until lives after its last heartbeat. cleanCluster returns the
// names of the removed objects.
func cleanCluster(
	ctx context.Context, c *cluster.Cluster, namespace string, how targets.Cleaning, lives time.Duration,
) (removed []string, _ error) {
	s, found, err := selectObjects(ctx, c, namespace, how.All, lives)
	if err != nil {
		return nil, err
	}
	removable := false
	for _, t := range found {
		removable = how.Report(t.String(), s.keepReason(t)) || removable
	}
	if !removable {
		return nil, volumes.CheckRetained(ctx, c)
	}
	add := func(more []string, err error) error {
		removed = append(removed, more...)
		return err
	}
	selector := s.selector()
	// Objects of runs on the API server come first, because controllers would create more pods from them. Namespaces
	// that cases created are removed even if the user gave the experiment's namespace.
	if err := add(removeObjects(ctx, c, namespace, selector, runCollections, s.removes)); err != nil {
		return removed, err
	}
	// Pods and their volumes come before the namespaces, so that their removal is awaited. Objects that must stay
	// do not prevent the removal of the others.
	stay := add(removeSites(ctx, c, namespace, selector, s.removes))
	if err := add(removeObjects(ctx, c, namespace, selector+","+labelRun, namespaceKind, s.removes)); err != nil {
		return removed, errors.Join(stay, err)
	}
	rights := slices.Concat(clusterKinds, accountKinds)
	if err := add(removeObjects(ctx, c, namespace, selector, rights, s.removes)); err != nil {
		return removed, errors.Join(stay, err)
	}
	// Namespaces and Leases come last, so that an interrupted clean can be repeated.
	if namespace == "" {
		stay = errors.Join(stay, add(cleanNamespaces(ctx, c, s)))
	}
	if stay != nil {
		return removed, stay
	}
	err = add(removeObjects(ctx, c, namespace, selector, leaseKind, s.removes))
	return removed, errors.Join(err, volumes.CheckRetained(ctx, c))
}

// cleanNamespaces removes the selected namespaces.
func cleanNamespaces(ctx context.Context, api kubernetes.Interface, s selection) ([]string, error) {
	found, err := api.CoreV1().Namespaces().List(ctx, metav1.ListOptions{LabelSelector: s.selector()})
	if err != nil {
		return nil, diagnosis.Explain(err, "")
	}
	limited, cancel := context.WithTimeout(ctx, cleanTime)
	defer cancel()
	var removed []string
	var errs []error
	vacant := slices.DeleteFunc(found.Items, func(n corev1.Namespace) bool {
		if !s.removes(listedObject{namespaceKind[0], n.ObjectMeta}) {
			return true
		}
		err := volumes.DeleteClaims(limited, api, n.Name)
		errs = append(errs, err)
		return err != nil
	})
	for _, n := range vacant { // delete all before waiting for each
		_ = api.CoreV1().Namespaces().Delete(limited, n.Name, metav1.DeleteOptions{})
	}
	for _, n := range vacant {
		if err := removeNamespace(limited, api, n.Name); err != nil {
			errs = append(errs, err)
			continue
		}
		removed = append(removed, "namespace "+n.Name)
	}
	return removed, errors.Join(errs...)
}

// removeSites removes the pods and Services that a selector finds and takes accepts, and the claims that the selector
// finds. It returns their names. namespace "" is all namespaces.
func removeSites(
	ctx context.Context, api kubernetes.Interface, namespace, selector string, takes func(listedObject) bool,
) ([]string, error) {
	removed, err := removeObjects(ctx, api, namespace, selector, siteKinds, takes)
	slices.Sort(removed)
	limited, cancel := context.WithTimeout(ctx, cleanTime)
	defer cancel()
	pods := api.CoreV1().Pods(namespace)
	gone := cluster.AwaitGone(limited, metav1.ListOptions{LabelSelector: selector}, pods.List, pods.Watch)
	if gone != nil {
		gone = fmt.Errorf("the pods are not gone yet, whose node may not answer: %w", diagnosis.Explain(gone, namespace))
	}
	claims, left := volumes.Clean(ctx, api, namespace, selector)
	return append(removed, claims...), errors.Join(err, gone, left)
}
