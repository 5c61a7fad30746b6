package cluster

import (
	"context"
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	discoveryv1client "k8s.io/client-go/kubernetes/typed/discovery/v1"

	"github.com/knotmeter/knotmeter/internal/targets/kube/diagnosis"
)

// AwaitBound waits until a claim is bound, and returns it. It calls blocked with the latest claim, nil before the first
// event, and returns its error.
func AwaitBound(
	ctx context.Context, claims corev1client.PersistentVolumeClaimInterface, name string,
	blocked func(*corev1.PersistentVolumeClaim) error,
) (claim *corev1.PersistentVolumeClaim, err error) {
	open := func(ctx context.Context) (watch.Interface, error) { return claims.Watch(ctx, ByName(name)) }
	err = Until(ctx, open, func(e watch.Event) (bool, error) {
		if seen, ok := e.Object.(*corev1.PersistentVolumeClaim); ok {
			claim = seen
		}
		if e.Type == watch.Deleted {
			return false, fmt.Errorf("claim %s: %w", name, diagnosis.ErrGone)
		}
		if claim != nil && claim.Status.Phase == corev1.ClaimBound {
			return true, nil
		}
		return false, blocked(claim)
	})
	return claim, err
}

// AwaitOnlyEndpoint waits until want is the only endpoint of a Service.
func AwaitOnlyEndpoint(
	ctx context.Context, api discoveryv1client.DiscoveryV1Interface, namespace, service string, want netip.AddrPort,
) error {
	endpoints := api.EndpointSlices(namespace)
	known := map[string]*discoveryv1.EndpointSlice{}
	open := func(ctx context.Context) (watch.Interface, error) {
		return endpoints.Watch(ctx, metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + service})
	}
	var last error
	err := Until(ctx, open, func(e watch.Event) (bool, error) {
		if slice, ok := e.Object.(*discoveryv1.EndpointSlice); ok {
			known[slice.Name] = slice
			if e.Type == watch.Deleted {
				delete(known, slice.Name)
			}
		}
		last = diagnosis.OnlyEndpoint(known, want)
		return last == nil, nil
	})
	if err != nil && last != nil {
		return fmt.Errorf("service %s: %w: %w", service, last, err)
	}
	return diagnosis.Explain(err, namespace)
}
