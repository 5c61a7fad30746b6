package kube

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/knotmeter/knotmeter/internal/result"
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
		{Name: "storage-class", Value: known(name, name != "")}, {Name: "volume-mode-asked", Value: string(w.mode())},
		{Name: "access-mode-asked", Value: string(w.Access)}, {Name: "volume-size-asked", Value: w.Size.String()},
		{Name: "volume-rule", Value: map[bool]string{false: "a new one for each run", true: "one for all runs"}[k.storage.reuse]},
	}
	if err != nil || k.storage.class == nil {
		return append(facts, result.Fact{Name: "provisioner", Value: result.Unknown})
	}
	return append(facts, classFacts(k.storage.class, sets)...)
}

// classFacts are what a class says of itself, and what is known of the driver behind it.
func classFacts(c *storagev1.StorageClass, sets []appsv1.DaemonSet) []result.Fact {
	reclaim, binding := corev1.PersistentVolumeReclaimDelete, storagev1.VolumeBindingImmediate // Kubernetes' defaults
	if c.ReclaimPolicy != nil {
		reclaim = *c.ReclaimPolicy
	}
	if c.VolumeBindingMode != nil {
		binding = *c.VolumeBindingMode
	}
	image := driverImage(c.Provisioner, sets)
	return []result.Fact{
		{Name: "provisioner", Value: c.Provisioner}, {Name: "provisioner-parameters", Value: parametersOf(c)},
		{Name: "reclaim-policy", Value: string(reclaim)}, {Name: "binding-mode", Value: string(binding)},
		{Name: "mount-options-asked", Value: orNone(strings.Join(c.MountOptions, ","))},
		{Name: "csi-driver-image", Value: known(image, image != "")},
	}
}

// parametersOf are the parameters of a class. Of those that are about secrets the names alone are shown, which refer to
// Secrets that are never read; and of others what looks like a setting.
func parametersOf(c *storagev1.StorageClass) string {
	setting := regexp.MustCompile(`^[A-Za-z0-9 ._:/@,=+-]{0,120}$`)
	hidden := regexp.MustCompile(`(?i)secret|password|passphrase|token|credential|userkey|restuser|apikey|accesskey`)
	var list []string
	for _, key := range slices.Sorted(maps.Keys(c.Parameters)) {
		value := c.Parameters[key]
		reference := regexp.MustCompile(`(?i)secret-?(name|namespace)$`).MatchString(key)
		switch {
		case reference:
			value = "(a reference)"
		case hidden.MatchString(key):
			value = "(not shown)"
		case !setting.MatchString(value):
			value = "(no plain setting)"
		}
		list = append(list, key+"="+value)
	}
	return orNone(strings.Join(list, " "))
}

// driverImage is the image, and so the version, of a CSI driver on the nodes: of the daemon set that registers it with the
// kubelet, without the containers that all drivers have beside it.
func driverImage(driver string, sets []appsv1.DaemonSet) string {
	var images []string
	for _, set := range sets {
		containers := set.Spec.Template.Spec.Containers
		if !slices.ContainsFunc(containers, func(c corev1.Container) bool {
			return slices.ContainsFunc(slices.Concat(c.Command, c.Args), func(arg string) bool { return strings.Contains(arg, "/"+driver+"/") })
		}) && !slices.ContainsFunc(set.Spec.Template.Spec.Volumes, func(v corev1.Volume) bool {
			return v.HostPath != nil && strings.Contains(v.HostPath.Path+"/", "/"+driver+"/")
		}) {
			continue
		}
		for _, c := range containers {
			if !strings.Contains(c.Image, "registrar") && !strings.Contains(c.Image, "livenessprobe") && !strings.Contains(c.Image, "kube-rbac-proxy") {
				images = append(images, c.Image)
			}
		}
	}
	slices.Sort(images)
	return strings.Join(slices.Compact(images), ", ")
}

// seeVolumes is the right without which no claim is made: what it is bound to could not be checked.
func seeVolumes() rbacv1.PolicyRule { return rule("", "persistentvolumes", "get", "list") }

// volumeRules are what storage takes in the namespace, and wideVolumeRules in the whole cluster. Without classes and
// watches some facts are unknown.
func volumeRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{rule("", "persistentvolumeclaims", "create", "get", "list", "watch", "delete")}
}

func wideVolumeRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{rule("storage.k8s.io", "storageclasses", "list"), rule("", "persistentvolumes", "get", "list", "watch")}
}

// cleanVolumes removes claims that a selector finds, whose pods are gone, and waits for their volumes. Of those that stay it
// says how they are removed.
func (c *cluster) cleanVolumes(ctx context.Context, namespace, selector string) ([]string, error) {
	found, err := c.CoreV1().PersistentVolumeClaims(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if apierrors.IsForbidden(err) {
		return nil, nil // who may not list them could not make them
	}
	if err != nil {
		return nil, explain(err, namespace)
	}
	found.Items = slices.DeleteFunc(found.Items, func(c corev1.PersistentVolumeClaim) bool { return !ofOurs().MatchString(c.Name) })
	limited, cancel := context.WithTimeout(ctx, cleanTime)
	defer cancel()
	var removed []string
	var failed []error
	for _, claim := range found.Items { // all at once, and then each is waited for
		_ = c.deleteClaim(limited, claim.Namespace, claim.Name)
	}
	for _, claim := range found.Items {
		err := c.removeClaim(limited, claim.Namespace, claim.Name)
		if err == nil {
			err = c.awaitVolumeGone(limited, claim.Spec.VolumeName) // the claim may be gone already
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
func ofOurs() *regexp.Regexp { return regexp.MustCompile(`^knotmeter-[a-z0-9]{8}-([0-9]+-)?volume$`) }

// staying names the volumes that were bound to claims of ours and that their reclaim policy keeps, as an error: what
// is to be done about them is not Knotmeter's to do. Who may not list volumes is not told.
func (c *cluster) staying(ctx context.Context) error {
	found, err := c.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil
	}
	var errs []error
	for i := range found.Items {
		v := &found.Items[i]
		ref := v.Spec.ClaimRef
		stays := v.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain
		if v.Status.Phase != corev1.VolumeReleased || !stays || ref == nil || !ofOurs().MatchString(ref.Name) {
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
