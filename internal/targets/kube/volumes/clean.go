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

// removalTimeout limits the removal of volumes. After an outage, controllers and nodes reconnect to the API server only
// gradually.
const removalTimeout = 3 * time.Minute

// Clean deletes the claims that a selector finds, after their pods, and waits for their volumes. It returns the claims
// that it deleted; the error names those that stay, with the commands that remove them.
func Clean(ctx context.Context, api kubernetes.Interface, namespace, selector string) ([]string, error) {
	found, err := api.CoreV1().PersistentVolumeClaims(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if apierrors.IsForbidden(err) {
		return nil, nil // a user who cannot list claims has created none
	}
	if err != nil {
		return nil, diagnosis.Explain(err, namespace)
	}
	found.Items = slices.DeleteFunc(found.Items,
		func(c corev1.PersistentVolumeClaim) bool { return !OwnClaim.MatchString(c.Name) })
	limited, cancel := context.WithTimeout(ctx, removalTimeout)
	defer cancel()
	var removed []string
	var failed []error
	for _, claim := range found.Items { // delete all first, then wait for each
		_ = deleteClaim(limited, api, claim.Namespace, claim.Name)
	}
	for _, claim := range found.Items {
		err := deleteClaimAndWait(limited, api, claim.Namespace, claim.Name)
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

// OwnClaim matches the names of claims that Knotmeter creates.
var OwnClaim = regexp.MustCompile(`^knotmeter-[a-z0-9]{8}-([0-9]+-(vault-[0-9]-)?)?volume$`)

// CheckRetained returns an error that names the released volumes of Knotmeter's claims whose reclaim policy keeps them,
// for the user to remove. It returns nil if volumes cannot be listed.
func CheckRetained(ctx context.Context, api kubernetes.Interface) error {
	var errs []error
	err := eachVolume(ctx, api, func(v *corev1.PersistentVolume) {
		ref := v.Spec.ClaimRef
		retains := v.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain
		if v.Status.Phase != corev1.VolumeReleased || !retains || ref == nil || !OwnClaim.MatchString(ref.Name) {
			return
		}
		text := retainedText(v)
		if why := foreignReason(v, &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{UID: ref.UID}}); why != "" {
			text = fmt.Sprintf("the volume %s was bound to the claim %s, which is gone, and is not Knotmeter's (%s): %s",
				v.Name, ref.Name, why, restoreHint(v))
		}
		errs = append(errs, errors.New(text))
	})
	if err != nil {
		return nil
	}
	return errors.Join(errs...)
}
