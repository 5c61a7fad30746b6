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

	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/target"
	"github.com/knotmeter/knotmeter/internal/target/kube/connection"
	"github.com/knotmeter/knotmeter/internal/target/kube/diagnosis"
	"github.com/knotmeter/knotmeter/internal/target/kube/inspection"
	"github.com/knotmeter/knotmeter/internal/target/kube/volumes"
	"github.com/knotmeter/knotmeter/internal/target/kube/watching"
	"github.com/knotmeter/knotmeter/internal/vault"
)

// removeNamespace removes a namespace with all that is in it, and returns when it is gone.
func removeNamespace(ctx context.Context, api kubernetes.Interface, name string) error {
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
		return fmt.Errorf("the namespace %s is not gone yet%s: %w", name, holdouts(ctx, api, name), diagnosis.Explain(err, name))
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

// cleanTime is how long what is removed may take to go. After an outage controllers and nodes find back to the API server
// only bit by bit.
const cleanTime = 3 * time.Minute

// Clean removes what experiments that were interrupted left on the cluster that a target names, and in the Vault that is asked from
// there, and returns the names of it. A Vault that only pods reach is cleaned from one, with the agent that agents find where
// inject=yes.
func Clean(ctx context.Context, spec target.Spec, agents Agents, how target.Cleaning) ([]string, error) {
	o, err := parse(spec)
	if err != nil {
		return nil, err
	}
	c, err := o.Kubeconfig.Connect()
	if err != nil {
		return nil, err
	}
	removed, err := cleanCluster(ctx, c, o, how, c.Now(), livesFor)
	// After the pods, whose agents would still use it.
	mounts, left := o.Vault.Clean(ctx, vault.Here(), how, func(ctx context.Context, e host.Endpoint) ([]string, error) {
		return cleanFromPod(ctx, newTarget(o, agents), e, how)
	})
	return append(removed, mounts...), errors.Join(err, left)
}

// cleanFromPod removes what runs left in a Vault, from a pod such as they ask it from.
func cleanFromPod(ctx context.Context, k *kubeTarget, e host.Endpoint, how target.Cleaning) (removed []string, err error) {
	defer func() {
		if err = errors.Join(err, k.Close()); err != nil {
			err = fmt.Errorf("from a pod: %w", err)
		}
	}()
	p := target.Placement{Path: target.App}
	k.plan = &target.Plan{Placements: []target.Placement{p}}
	s, err := k.open(ctx, p)
	if err != nil {
		return nil, k.judge(ctx, err)
	}
	errand := vault.Errand{Endpoint: e, Clean: true, All: how.All, DryRun: true, Patience: vaultTime} // to list first
	said, err := s.errand(ctx, errand)
	for _, l := range said.Found {
		how.Found(l)
	}
	if errand.DryRun = how.DryRun; err == nil && said.Error == "" && !errand.DryRun {
		said, err = s.errand(ctx, errand)
	}
	if said.Error != "" {
		err = errors.Join(err, errors.New(said.Error))
	}
	cleanup, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
	defer cancel()
	return said.Removed, errors.Join(err, s.remove(cleanup))
}

// vaultTime is how long a Vault may take to give back what runs left there.
const vaultTime = time.Minute

// clean lists everything of ours, and removes what the heartbeats of experiments, which last so long, leave to it.
func cleanCluster(ctx context.Context, api kubernetes.Interface, o options, how target.Cleaning, now time.Time, lives time.Duration) ([]string, error) {
	s, found, err := sweepOf(ctx, api, o, how.All, now, lives)
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
	// What runs on the API server leave first: else its controllers would go on making pods of it. Namespaces that cases made are
	// ours wherever the rest was to be.
	removed, err := cleanAll(ctx, api, o.Namespace, s.selector(), objectKinds, s.takes)
	if err != nil {
		return removed, err
	}
	// Pods with their volumes before the namespaces, so that these are waited for. What has to stay keeps nothing else.
	more, stay := cleanObjects(ctx, api, o.Namespace, s.selector(), s.takes)
	removed = append(removed, more...)
	for _, which := range []struct {
		selector string
		kinds    []string
	}{{s.selector() + "," + labelRun, namespaceKind}, {s.selector(), accountKinds()}} {
		more, err := cleanAll(ctx, api, o.Namespace, which.selector, which.kinds, s.takes)
		if removed = append(removed, more...); err != nil {
			return removed, errors.Join(stay, err)
		}
	}
	// The namespaces and Leases at last: as long as they are there, a clean that is interrupted can go on.
	if o.Namespace == "" {
		more, err := cleanNamespaces(ctx, api, s)
		removed, stay = append(removed, more...), errors.Join(stay, err)
	}
	if stay != nil {
		return removed, stay
	}
	more, err = cleanAll(ctx, api, o.Namespace, s.selector(), leaseKind, s.takes)
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
		if !s.takes(namespaceKind[0], n.ObjectMeta) {
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
		if err := removeNamespace(limited, api, n.Name); err != nil {
			errs = append(errs, err)
			continue
		}
		removed = append(removed, "namespace "+n.Name)
	}
	return removed, errors.Join(errs...)
}

// cleanObjects removes pods and Services that a selector finds from a namespace; "" is all.
func cleanObjects(ctx context.Context, api kubernetes.Interface, namespace, selector string, takes takes) ([]string, error) {
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
		if !takes(ownKinds[0], s.ObjectMeta) {
			continue
		}
		gone("service", s.ObjectMeta, api.CoreV1().Services(s.Namespace).Delete(ctx, s.Name, metav1.DeleteOptions{}))
	}
	for _, p := range pods.Items {
		if !takes(ownKinds[1], p.ObjectMeta) {
			continue
		}
		gone("pod", p.ObjectMeta, api.CoreV1().Pods(p.Namespace).Delete(ctx, p.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(1))}))
	}
	slices.Sort(removed)
	limited, cancel := context.WithTimeout(ctx, cleanTime)
	defer cancel()
	if err := watching.Gone(limited, which, api.CoreV1().Pods(namespace).List, api.CoreV1().Pods(namespace).Watch); err != nil {
		errs = append(errs, fmt.Errorf("the pods are not gone yet, whose node may not answer: %w", diagnosis.Explain(err, namespace)))
	}
	claims, err := volumes.Clean(ctx, api, namespace, selector)
	return append(removed, claims...), errors.Join(append(errs, err)...)
}
