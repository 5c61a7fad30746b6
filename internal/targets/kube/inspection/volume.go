package inspection

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/knotmeter/knotmeter/internal/result"
)

// ClassFacts are what a class says of itself, and what is known of the driver behind it.
func ClassFacts(c *storagev1.StorageClass, sets []appsv1.DaemonSet) []result.Fact {
	reclaim, binding := corev1.PersistentVolumeReclaimDelete, storagev1.VolumeBindingImmediate // Kubernetes' defaults
	if c.ReclaimPolicy != nil {
		reclaim = *c.ReclaimPolicy
	}
	if c.VolumeBindingMode != nil {
		binding = *c.VolumeBindingMode
	}
	return []result.Fact{
		{Name: "provisioner", Value: c.Provisioner}, {Name: "provisioner-parameters", Value: parametersOf(c)},
		{Name: "reclaim-policy", Value: string(reclaim)}, {Name: "binding-mode", Value: string(binding)},
		{Name: "mount-options-asked", Value: cmp.Or(strings.Join(c.MountOptions, ","), noneGiven)},
		{Name: "csi-driver-image", Value: cmp.Or(driverImage(c.Provisioner, sets), result.Unknown)},
	}
}

// Of parameters of classes: values that can be shown, keys whose value cannot, and keys that name a Secret.
var (
	plainValue = regexp.MustCompile(`^[A-Za-z0-9 ._:/@,=+-]{0,120}$`)
	hiddenKey  = regexp.MustCompile(`(?i)secret|password|passphrase|token|credential|` +
		`userkey|restuser|apikey|accesskey`)
	secretReference = regexp.MustCompile(`(?i)secret-?(name|namespace)$`)
)

// parametersOf are the parameters of a class. Of those that are about secrets the names alone are shown, which refer to
// Secrets that are never read; and of others what looks like a setting.
func parametersOf(c *storagev1.StorageClass) string {
	var list []string
	for _, key := range slices.Sorted(maps.Keys(c.Parameters)) {
		value := c.Parameters[key]
		switch {
		case secretReference.MatchString(key):
			value = "(a reference)"
		case hiddenKey.MatchString(key):
			value = "(not shown)"
		case !plainValue.MatchString(value):
			value = "(no plain setting)"
		}
		list = append(list, key+"="+value)
	}
	return cmp.Or(strings.Join(list, " "), noneGiven)
}

// driverImage is the image, and so the version, of a CSI driver on the nodes: of the daemon set that registers it with
// the kubelet, without the containers that all drivers have beside it.
func driverImage(driver string, sets []appsv1.DaemonSet) string {
	var images []string
	for _, set := range sets {
		containers := set.Spec.Template.Spec.Containers
		if !slices.ContainsFunc(containers, func(c corev1.Container) bool {
			return slices.ContainsFunc(slices.Concat(c.Command, c.Args),
				func(arg string) bool { return strings.Contains(arg, "/"+driver+"/") })
		}) && !slices.ContainsFunc(set.Spec.Template.Spec.Volumes, func(v corev1.Volume) bool {
			return v.HostPath != nil && strings.Contains(v.HostPath.Path+"/", "/"+driver+"/")
		}) {
			continue
		}
		for _, c := range containers {
			if !strings.Contains(c.Image, "registrar") && !strings.Contains(c.Image, "livenessprobe") &&
				!strings.Contains(c.Image, "kube-rbac-proxy") {
				images = append(images, c.Image)
			}
		}
	}
	slices.Sort(images)
	return strings.Join(slices.Compact(images), ", ")
}

// Topology is where a volume can be used, as far as it says.
func Topology(pv *corev1.PersistentVolume) string {
	if pv.Spec.NodeAffinity == nil || pv.Spec.NodeAffinity.Required == nil {
		return noneGiven
	}
	var terms []string
	for _, t := range pv.Spec.NodeAffinity.Required.NodeSelectorTerms {
		var parts []string
		for _, e := range t.MatchExpressions {
			parts = append(parts, fmt.Sprintf("%s %s %s", e.Key, strings.ToLower(string(e.Operator)),
				strings.Join(e.Values, ",")))
		}
		terms = append(terms, strings.Join(parts, " and "))
	}
	return strings.Join(terms, " | ")
}
