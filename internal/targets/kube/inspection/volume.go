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

// ClassFacts returns facts about a storage class and its CSI driver. sets are the cluster's daemon sets, among which it
// looks for the driver.
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

// Patterns for the parameters of storage classes: values that may be shown, keys whose values must not be shown, and
// keys that name a Secret.
var (
	plainValue = regexp.MustCompile(`^[A-Za-z0-9 ._:/@,=+-]{0,120}$`)
	hiddenKey  = regexp.MustCompile(`(?i)secret|password|passphrase|token|credential|` +
		`userkey|restuser|apikey|accesskey`)
	secretReference = regexp.MustCompile(`(?i)secret-?(name|namespace)$`)
)

// parametersOf returns the parameters of a class as text. It hides references to Secrets, values under keys that may
// hold secrets, and values that do not look like settings.
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

// driverImage returns the images of a CSI driver on the nodes, with their versions; empty if none is found. It takes
// them from the daemon set that registers the driver with the kubelet, without the sidecars that all drivers have.
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

// Topology returns the node affinity of a volume as text.
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
