package kube

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/knotmeter/knotmeter/internal/targets/kube/manifest"
	"github.com/knotmeter/knotmeter/internal/targets/kube/volumes"
)

// listLeftovers returns the names of all our objects on a cluster.
func listLeftovers(ctx context.Context, api kubernetes.Interface) ([]string, error) {
	which := metav1.ListOptions{LabelSelector: manifest.ManagedSelector()}
	var names []string
	namespaces, err := api.CoreV1().Namespaces().List(ctx, which)
	if err != nil {
		return nil, err
	}
	for _, n := range namespaces.Items {
		names = append(names, "namespace "+n.Name)
	}
	pods, err := api.CoreV1().Pods(corev1.NamespaceAll).List(ctx, which)
	if err != nil {
		return nil, err
	}
	for _, p := range pods.Items {
		names = append(names, "pod "+p.Namespace+"/"+p.Name)
	}
	services, err := api.CoreV1().Services(corev1.NamespaceAll).List(ctx, which)
	if err != nil {
		return nil, err
	}
	for _, s := range services.Items {
		names = append(names, "service "+s.Namespace+"/"+s.Name)
	}
	claims, err := api.CoreV1().PersistentVolumeClaims(corev1.NamespaceAll).List(ctx, which)
	if err != nil {
		return nil, err
	}
	for _, p := range claims.Items {
		names = append(names, "claim "+p.Namespace+"/"+p.Name)
	}
	pvs, err := api.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, v := range pvs.Items {
		if v.Spec.ClaimRef != nil && volumes.OwnClaim.MatchString(v.Spec.ClaimRef.Name) {
			names = append(names, "volume "+v.Name)
		}
	}
	leases, err := api.CoordinationV1().Leases(corev1.NamespaceAll).List(ctx, which)
	if err != nil {
		return nil, err
	}
	for _, l := range leases.Items {
		names = append(names, "lease "+l.Namespace+"/"+l.Name)
	}
	slices.Sort(names)
	return names, nil
}
