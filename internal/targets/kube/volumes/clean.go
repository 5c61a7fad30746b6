package volumes

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/knotmeter/knotmeter/internal/targets/kube/diagnosis"
)

// goneTime is how long volumes may take to go. After an outage controllers and nodes find back to the API server only
// bit by bit.
const goneTime = 3 * time.Minute

// Clean removes claims that a selector finds, whose pods are gone, and waits for their volumes. Of those that stay it
// says how they are removed.
func Clean(ctx context.Context, api kubernetes.Interface, namespace, selector string) ([]string, error) {
	found, err := api.CoreV1().PersistentVolumeClaims(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if apierrors.IsForbidden(err) {
		return nil, nil // who may not list them could not make them
	}
	if err != nil {
		return nil, diagnosis.Explain(err, namespace)
	}
	found.Items = slices.DeleteFunc(found.Items,
		func(c corev1.PersistentVolumeClaim) bool { return !OwnClaim.MatchString(c.Name) })
	limited, cancel := context.WithTimeout(ctx, goneTime)
	defer cancel()
	var removed []string
	var failed []error
	for _, claim := range found.Items { // all at once, and then each is waited for
		_ = deleteClaim(limited, api, claim.Namespace, claim.Name)
	}
	for _, claim := range found.Items {
		err := removeClaim(limited, api, claim.Namespace, claim.Name)
		if err == nil {
			err = awaitVolumeGone(limited, api, claim.Spec.VolumeName) // the claim may be gone already
		}
		if err != nil {
			failed = append(failed, err)
			continue
		}
		removed = append(removed, fmt.Sprintf("claim %s/%s", claim.Namespace, claim.Name))
	}
	slices.Sort(removed)
	return removed, errors.Join(failed...)
}

// OwnClaim matches the names of claims that Knotmeter makes.
var OwnClaim = regexp.MustCompile(`^knotmeter-[a-z0-9]{8}-([0-9]+-(vault-[0-9]-)?)?volume$`)

// CheckRetained names the volumes that were bound to claims of ours and that their reclaim policy keeps, as an error: what
// is to be done about them is not Knotmeter's to do. Who may not list volumes is not told.
func CheckRetained(ctx context.Context, api kubernetes.Interface) error {
	var errs []error
	err := eachVolume(ctx, api, func(v *corev1.PersistentVolume) {
		ref := v.Spec.ClaimRef
		stays := v.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain
		if v.Status.Phase != corev1.VolumeReleased || !stays || ref == nil || !OwnClaim.MatchString(ref.Name) {
			return
		}
		text := retained(v)
		if why := foreign(v, &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{UID: ref.UID}}); why != "" {
			text = fmt.Sprintf("the volume %s was bound to the claim %s, which is gone, and is not Knotmeter's (%s): %s",
				v.Name, ref.Name, why, restoring(v))
		}
		errs = append(errs, errors.New(text))
	})
	if err != nil {
		return nil
	}
	return errors.Join(errs...)
}
