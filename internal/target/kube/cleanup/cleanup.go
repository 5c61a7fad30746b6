// Package cleanup removes what runs and experiments left on a cluster. Whose experiment runs, by its Lease, keeps what
// it has.
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

	"github.com/knotmeter/knotmeter/internal/target"
	"github.com/knotmeter/knotmeter/internal/target/kube/connection"
	"github.com/knotmeter/knotmeter/internal/target/kube/diagnosis"
	"github.com/knotmeter/knotmeter/internal/target/kube/inspection"
	"github.com/knotmeter/knotmeter/internal/target/kube/volumes"
	"github.com/knotmeter/knotmeter/internal/target/kube/watching"
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
	err = watching.Gone(ctx, watching.Named(name), namespaces.List, namespaces.Watch)
	if err != nil {
		return fmt.Errorf("the namespace %s is not gone yet%s: %w", name, holdouts(ctx, api, name),
			diagnosis.Explain(err, name))
	}
	return nil
}

// holdouts names what keeps a namespace, which is pods on nodes that do not answer; empty if nobody tells.
func holdouts(ctx context.Context, api kubernetes.Interface, namespace string) string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), connection.ProbeTime)
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

// clean lists everything of ours, and removes what the heartbeats of experiments, which last so long, leave to it.
func Clean(
	ctx context.Context, api kubernetes.Interface, namespace string, how target.Cleaning, now time.Time,
	lives time.Duration,
) ([]string, error) {
	s, found, err := sweepOf(ctx, api, namespace, how.All, now, lives)
	if err != nil {
		return nil, err
	}
	some := false
	for _, t := range found {
		some = how.Takes(t.String(), s.keeps(t)) || some
	}
	if !some {
		return nil, volumes.Staying(ctx, api)
	}
	// What runs on the API server leave first: else its controllers would go on making pods of it. Namespaces that cases
	// made are ours wherever the rest was to be.
	removed, err := RemoveObjects(ctx, api, namespace, s.selector(), ObjectKinds, s.takes)
	if err != nil {
		return removed, err
	}
	// Pods with their volumes before the namespaces, so that these are waited for. What has to stay keeps nothing else.
	more, stay := RemoveSites(ctx, api, namespace, s.selector(), s.takes)
	removed = append(removed, more...)
	for _, which := range []struct {
		selector string
		kinds    []string
	}{{s.selector() + "," + LabelRun, NamespaceKind}, {s.selector(), AccountKinds()}} {
		more, err := RemoveObjects(ctx, api, namespace, which.selector, which.kinds, s.takes)
		if removed = append(removed, more...); err != nil {
			return removed, errors.Join(stay, err)
		}
	}
	// The namespaces and Leases at last: as long as they are there, a clean that is interrupted can go on.
	if namespace == "" {
		more, err := cleanNamespaces(ctx, api, s)
		removed, stay = append(removed, more...), errors.Join(stay, err)
	}
	if stay != nil {
		return removed, stay
	}
	more, err = RemoveObjects(ctx, api, namespace, s.selector(), leaseKind, s.takes)
	return append(removed, more...), errors.Join(err, volumes.Staying(ctx, api))
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
		if !s.takes(NamespaceKind[0], n.ObjectMeta) {
			return true
		}
		err := volumes.Vacate(limited, api, n.Name)
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

// RemoveSites removes pods and Services that a selector finds from a namespace; "" is all.
func RemoveSites(
	ctx context.Context, api kubernetes.Interface, namespace, selector string, takes takes,
) ([]string, error) {
	which := metav1.ListOptions{LabelSelector: selector}
	pods, err := api.CoreV1().Pods(namespace).List(ctx, which)
	if err != nil {
		return nil, diagnosis.Explain(err, namespace)
	}
	services, err := api.CoreV1().Services(namespace).List(ctx, which)
	if err != nil {
		return nil, diagnosis.Explain(err, namespace)
	}
	var removed []string
	var errs []error
	gone := func(kind string, o metav1.ObjectMeta, err error) {
		if err = diagnosis.IgnoreGone(err); err != nil {
			errs = append(errs, diagnosis.Explain(err, o.Namespace))
			return
		}
		removed = append(removed, fmt.Sprintf("%s %s/%s", kind, o.Namespace, o.Name))
	}
	for _, s := range services.Items {
		if !takes(OwnKinds[0], s.ObjectMeta) {
			continue
		}
		gone("service", s.ObjectMeta, api.CoreV1().Services(s.Namespace).Delete(ctx, s.Name, metav1.DeleteOptions{}))
	}
	for _, p := range pods.Items {
		if !takes(OwnKinds[1], p.ObjectMeta) {
			continue
		}
		gone("pod", p.ObjectMeta, api.CoreV1().Pods(p.Namespace).Delete(ctx, p.Name,
			metav1.DeleteOptions{GracePeriodSeconds: new(int64(1))}))
	}
	slices.Sort(removed)
	limited, cancel := context.WithTimeout(ctx, cleanTime)
	defer cancel()
	if err := watching.Gone(limited, which, api.CoreV1().Pods(namespace).List,
		api.CoreV1().Pods(namespace).Watch); err != nil {
		errs = append(errs, fmt.Errorf("the pods are not gone yet, whose node may not answer: %w",
			diagnosis.Explain(err, namespace)))
	}
	claims, err := volumes.Clean(ctx, api, namespace, selector)
	return append(removed, claims...), errors.Join(append(errs, err)...)
}
