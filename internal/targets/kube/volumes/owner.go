package volumes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/pager"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets/kube/cluster"
	"github.com/knotmeter/knotmeter/internal/targets/kube/diagnosis"
	"github.com/knotmeter/knotmeter/internal/targets/kube/manifest"
)

// Knotmeter mounts, writes and removes only volumes that were provisioned for its own claims. Kubernetes may bind a
// claim to any volume of its class that is available, and with the reclaim policy Delete that volume goes with the
// claim. So each binding is checked before a pod uses it, and each claim again before it is deleted.

// annotationBound marks existing volumes that Kubernetes chose for a claim.
const annotationBound = "pv.kubernetes.io/bound-by-controller"

// annotationReclaim holds the previous reclaim policy of a volume of another owner that Knotmeter has set to Retain.
const annotationReclaim = "knotmeter.dev/reclaim-policy"

// foreignReason returns the reason why a volume was not provisioned for a claim; empty if it was.
func foreignReason(v *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) string {
	ref, maker := v.Spec.ClaimRef, v.Annotations[annotationMadeBy]
	switch {
	case ref == nil || ref.UID == "" || ref.UID != claim.UID:
		return "it belongs to another claim"
	case maker == "" || maker == noProvisioner:
		return "no provisioner made it"
	case strings.HasSuffix(v.Name, string(claim.UID)):
		return "" // provisioners name volumes after the claim's UID, which did not exist before
	case v.Annotations[annotationBound] != "":
		return "it was there already, and Kubernetes bound it to the claim"
	case v.CreationTimestamp.Before(&claim.CreationTimestamp):
		return "it is older than the claim"
	}
	return ""
}

// verifyBinding returns an error if the bound volume was not provisioned for the claim, or is not as requested.
func (v *Volume) verifyBinding(ctx context.Context) error {
	pv, err := v.api.CoreV1().PersistentVolumes().Get(ctx, v.claim.Spec.VolumeName, metav1.GetOptions{})
	if err != nil {
		return diagnosis.Explain(err, v.request.Namespace)
	}
	v.pv = pv
	if why := foreignReason(pv, v.claim); why != "" {
		return result.NotSupported(fmt.Sprintf("the claim %s was bound to the volume %s, which was not provisioned for it "+
			"(%s); nothing was mounted or written; the claim is deleted only once the volume's reclaim policy is Retain; "+
			"then %s",
			v.claim.Name, pv.Name, why, restoreHint(pv)))
	}
	if wrong := mismatches(v.spec, v.class, v.claim, pv); len(wrong) > 0 {
		return fmt.Errorf("the volume %s is not as it was asked for, and nothing was written to it: %s",
			pv.Name, strings.Join(wrong, "; "))
	}
	return nil
}

// restoreHint returns the command that makes a volume of another owner available again once the claim is gone.
func restoreHint(v *corev1.PersistentVolume) string {
	was := v.Spec.PersistentVolumeReclaimPolicy
	if noted := v.Annotations[annotationReclaim]; noted != "" {
		was = corev1.PersistentVolumeReclaimPolicy(noted)
	}
	return fmt.Sprintf(`kubectl patch pv %s --type=merge -p '{"spec":{"claimRef":null,"persistentVolumeReclaimPolicy":`+
		`"%s"}}' makes it available again`, v.Name, was)
}

// retainForeign sets the reclaim policy of volumes of other owners to Retain if they would be deleted with the claim.
// After an error neither the claim nor its namespace must be deleted.
func retainForeign(ctx context.Context, api kubernetes.Interface, claim *corev1.PersistentVolumeClaim) error {
	var errs []error
	err := eachVolume(ctx, api, func(v *corev1.PersistentVolume) {
		if bound(v, claim) && foreignReason(v, claim) != "" {
			errs = append(errs, retain(ctx, api, v, claim))
		}
	})
	if err != nil {
		err = fmt.Errorf("the claim %s in the namespace %s stays, because the volume that it may be bound to, "+
			"and that would go with it, cannot be checked: %w", claim.Name, claim.Namespace, diagnosis.Explain(err, ""))
	}
	return errors.Join(append(errs, err)...)
}

// eachVolume calls f for every volume of the cluster. It reads all of them each time, in pages: the API server selects
// volumes by name and labels, not by class or claim, and a volume added since the last block could be bound too.
func eachVolume(ctx context.Context, api kubernetes.Interface, f func(*corev1.PersistentVolume)) error {
	list := pager.New(func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return api.CoreV1().PersistentVolumes().List(ctx, o)
	})
	return list.EachListItem(ctx, metav1.ListOptions{}, func(o runtime.Object) error {
		f(o.(*corev1.PersistentVolume))
		return nil
	})
}

// bound reports whether a volume is bound to a claim. Kubernetes writes the volume's reference to the claim before the
// claim's to the volume.
func bound(v *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) bool {
	if ref := v.Spec.ClaimRef; ref != nil {
		return ref.UID == claim.UID
	}
	return v.Name == claim.Spec.VolumeName
}

// retain sets the reclaim policy of a volume to Retain. It returns an error unless the API server confirms that.
func retain(
	ctx context.Context, api kubernetes.Interface, v *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim,
) error {
	const retain = corev1.PersistentVolumeReclaimRetain
	was := v.Spec.PersistentVolumeReclaimPolicy
	if was == retain {
		return nil
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": v.UID, "annotations": map[string]string{annotationReclaim: string(was)}},
		"spec":     map[string]any{"persistentVolumeReclaimPolicy": retain},
	})
	if err != nil {
		return err
	}
	now, err := api.CoreV1().PersistentVolumes().Patch(ctx, v.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	if err == nil && now.Spec.PersistentVolumeReclaimPolicy != retain {
		err = fmt.Errorf("it is still %s", now.Spec.PersistentVolumeReclaimPolicy)
	}
	if err == nil {
		return nil
	}
	return fmt.Errorf(`the claim %[1]s in the namespace %[2]s stays, because the volume %[3]s, which is not Knotmeter's, `+
		`would go with it (%[4]s), and its reclaim policy cannot be changed: %[5]w; keep the volume first: `+
		`kubectl patch pv %[3]s -p '{"spec":{"persistentVolumeReclaimPolicy":"Retain"}}'; then: `+
		`kubectl delete pvc -n %[2]s %[1]s`,
		claim.Name, claim.Namespace, v.Name, was, err)
}

// deleteClaim deletes a claim after retainForeign, and does not wait until it is gone. It starts again if the claim
// changes in between, for example because it was bound.
func deleteClaim(ctx context.Context, api kubernetes.Interface, namespace, name string) error {
	claims := api.CoreV1().PersistentVolumeClaims(namespace)
	for {
		claim, err := claims.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return diagnosis.Explain(diagnosis.IgnoreNotFound(err), namespace)
		}
		if err := retainForeign(ctx, api, claim); err != nil {
			return err
		}
		preconditions := &metav1.Preconditions{UID: &claim.UID, ResourceVersion: &claim.ResourceVersion}
		err = claims.Delete(ctx, name, metav1.DeleteOptions{Preconditions: preconditions})
		if err == nil && claim.Spec.VolumeName == "" {
			return retainForeign(ctx, api, claim) // Kubernetes may have bound it meanwhile
		}
		if !apierrors.IsConflict(err) {
			return diagnosis.Explain(diagnosis.IgnoreNotFound(err), namespace)
		}
		if err := cluster.Pause(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}

// DeleteClaims deletes the claims of a namespace before its removal. After an error the namespace must stay, because
// deleting it deletes its claims.
func DeleteClaims(ctx context.Context, api kubernetes.Interface, namespace string) error {
	found, err := api.CoreV1().PersistentVolumeClaims(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("the namespace %s stays, because its claims, whose volumes would go with it, cannot be listed: %w",
			namespace, diagnosis.Explain(err, namespace))
	}
	var errs []error
	for _, claim := range found.Items {
		if claim.Labels[manifest.LabelManaged] != manifest.ManagedBy {
			errs = append(errs, fmt.Errorf("the namespace %s stays, because the claim %s in it is not Knotmeter's",
				namespace, claim.Name))
			continue
		}
		errs = append(errs, deleteClaim(ctx, api, namespace, claim.Name))
	}
	return errors.Join(errs...)
}
