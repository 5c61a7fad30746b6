package kube

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/target/kube/diagnosis"
	"github.com/knotmeter/knotmeter/internal/target/kube/inspection"
)

// storageFacts are those of the class that the volumes of runs are of; none where the options say nothing of volumes.
func (k *kubeTarget) storageFacts(ctx context.Context, sets []appsv1.DaemonSet) []result.Fact {
	w := k.options.Volume
	if !w.Given {
		return nil
	}
	err := k.lookUpClass(ctx)
	name := k.className()
	facts := []result.Fact{
		{Name: "storage-class", Value: inspection.Known(name, name != "")}, {Name: "volume-mode-asked", Value: string(w.Mode())},
		{Name: "access-mode-asked", Value: string(w.Access)}, {Name: "volume-size-asked", Value: w.Size.String()},
		{Name: "volume-rule", Value: map[bool]string{false: "a new one for each run", true: "one for all runs"}[k.storage.reuse]},
	}
	if err != nil || k.storage.class == nil {
		return append(facts, result.Fact{Name: "provisioner", Value: result.Unknown})
	}
	return append(facts, inspection.ClassFacts(k.storage.class, sets)...)
}

// cleanVolumes removes claims that a selector finds, whose pods are gone, and waits for their volumes. Of those that stay it
// says how they are removed.
func cleanVolumes(ctx context.Context, api kubernetes.Interface, namespace, selector string) ([]string, error) {
	found, err := api.CoreV1().PersistentVolumeClaims(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if apierrors.IsForbidden(err) {
		return nil, nil // who may not list them could not make them
	}
	if err != nil {
		return nil, diagnosis.Explain(err, namespace)
	}
	found.Items = slices.DeleteFunc(found.Items, func(c corev1.PersistentVolumeClaim) bool { return !ofOurs.MatchString(c.Name) })
	limited, cancel := context.WithTimeout(ctx, cleanTime)
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

// ofOurs matches the names of claims that Knotmeter makes.
var ofOurs = regexp.MustCompile(`^knotmeter-[a-z0-9]{8}-([0-9]+-)?volume$`)

// staying names the volumes that were bound to claims of ours and that their reclaim policy keeps, as an error: what
// is to be done about them is not Knotmeter's to do. Who may not list volumes is not told.
func staying(ctx context.Context, api kubernetes.Interface) error {
	found, err := api.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil
	}
	var errs []error
	for i := range found.Items {
		v := &found.Items[i]
		ref := v.Spec.ClaimRef
		stays := v.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain
		if v.Status.Phase != corev1.VolumeReleased || !stays || ref == nil || !ofOurs.MatchString(ref.Name) {
			continue
		}
		text := retained(v)
		if why := foreign(v, &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{UID: ref.UID}}); why != "" {
			text = fmt.Sprintf("the volume %s was bound to the claim %s, which is gone, and is not Knotmeter's (%s): %s",
				v.Name, ref.Name, why, restoring(v))
		}
		errs = append(errs, errors.New(text))
	}
	return errors.Join(errs...)
}
