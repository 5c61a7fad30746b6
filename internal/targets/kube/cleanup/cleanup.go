// Package cleanup tells by Leases which experiments use a cluster, and removes what runs and experiments left there.
// Whose experiment runs, by its Lease, keeps what it has.
package cleanup

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

// RemoveNamespace removes a namespace with all that is in it, and returns when it is gone.
func RemoveNamespace(ctx context.Context, api kubernetes.Interface, name string) error {
	namespaces := api.CoreV1().Namespaces()
	err := namespaces.Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(1))})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil && !apierrors.IsConflict(err) {
		return fmt.Errorf("the namespace %s is not removed: %w", name, diagnosis.Explain(err, name))
	}
	err = cluster.Gone(ctx, cluster.Named(name), namespaces.List, namespaces.Watch)
	if err != nil {
		return fmt.Errorf("the namespace %s is not gone yet%s: %w", name, holdouts(ctx, api, name),
			diagnosis.Explain(err, name))
	}
	return nil
}

// holdouts names what keeps a namespace, which is pods on nodes that do not answer; empty if nobody tells.
func holdouts(ctx context.Context, api kubernetes.Interface, namespace string) string {
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

// cleanTime is how long what is removed may take to go. After an outage controllers and nodes find back to the API
// server only bit by bit.
const cleanTime = 3 * time.Minute

// Clean lists everything of ours, and removes what the heartbeats of experiments, which last so long, leave to it.
func Clean(
	ctx context.Context, c *cluster.Cluster, namespace string, how targets.Cleaning, lives time.Duration,
) (removed []string, _ error) {
	s, found, err := sweepOf(ctx, c, namespace, how.All, lives)
	if err != nil {
		return nil, err
	}
	some := false
	for _, t := range found {
		some = how.Report(t.String(), s.keeps(t)) || some
	}
	if !some {
		return nil, volumes.CheckRetained(ctx, c)
	}
	take := func(more []string, err error) error {
		removed = append(removed, more...)
		return err
	}
	selector := s.selector()
	// What runs on the API server leave first: else its controllers would go on making pods of it. Namespaces that cases
	// made are ours wherever the rest was to be.
	if err := take(Remove(ctx, c, namespace, selector, ObjectKinds, s.takes)); err != nil {
		return removed, err
	}
	// Pods with their volumes before the namespaces, so that these are waited for. What has to stay keeps nothing else.
	stay := take(RemoveSites(ctx, c, namespace, selector, s.takes))
	if err := take(Remove(ctx, c, namespace, selector+","+LabelRun, NamespaceKind, s.takes)); err != nil {
		return removed, errors.Join(stay, err)
	}
	if err := take(Remove(ctx, c, namespace, selector, slices.Concat(ClusterKinds, AccountKinds), s.takes)); err != nil {
		return removed, errors.Join(stay, err)
	}
	// The namespaces and Leases at last: as long as they are there, a clean that is interrupted can go on.
	if namespace == "" {
		stay = errors.Join(stay, take(cleanNamespaces(ctx, c, s)))
	}
	if stay != nil {
		return removed, stay
	}
	err = take(Remove(ctx, c, namespace, selector, leaseKind, s.takes))
	return removed, errors.Join(err, volumes.CheckRetained(ctx, c))
}

// cleanNamespaces removes the namespaces of ours.
func cleanNamespaces(ctx context.Context, api kubernetes.Interface, s sweep) ([]string, error) {
	found, err := api.CoreV1().Namespaces().List(ctx, metav1.ListOptions{LabelSelector: s.selector()})
	if err != nil {
		return nil, diagnosis.Explain(err, "")
	}
	limited, cancel := context.WithTimeout(ctx, cleanTime)
	defer cancel()
	var removed []string
	var errs []error
	vacant := slices.DeleteFunc(found.Items, func(n corev1.Namespace) bool {
		if !s.takes(Thing{NamespaceKind[0], n.ObjectMeta}) {
			return true
		}
		err := volumes.DeleteClaims(limited, api, n.Name)
		errs = append(errs, err)
		return err != nil
	})
	for _, n := range vacant { // all at once, and then each is waited for
		_ = api.CoreV1().Namespaces().Delete(limited, n.Name, metav1.DeleteOptions{})
	}
	for _, n := range vacant {
		if err := RemoveNamespace(limited, api, n.Name); err != nil {
			errs = append(errs, err)
			continue
		}
		removed = append(removed, "namespace "+n.Name)
	}
	return removed, errors.Join(errs...)
}

// RemoveSites removes pods, Services and claims that a selector finds from a namespace; "" is all.
func RemoveSites(
	ctx context.Context, api kubernetes.Interface, namespace, selector string, takes func(Thing) bool,
) ([]string, error) {
	removed, err := Remove(ctx, api, namespace, selector, SiteKinds, takes)
	slices.Sort(removed)
	limited, cancel := context.WithTimeout(ctx, cleanTime)
	defer cancel()
	pods := api.CoreV1().Pods(namespace)
	gone := cluster.Gone(limited, metav1.ListOptions{LabelSelector: selector}, pods.List, pods.Watch)
	if gone != nil {
		gone = fmt.Errorf("the pods are not gone yet, whose node may not answer: %w", diagnosis.Explain(gone, namespace))
	}
	claims, left := volumes.Clean(ctx, api, namespace, selector)
	return append(removed, claims...), errors.Join(err, gone, left)
}
