package volumes

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
	"github.com/knotmeter/knotmeter/internal/targets/kube/manifest"
)

// smallestVolume is the smallest volume that can be measured, in bytes: the file of the etcd check takes 22 MiB, and a
// file system needs space too.
const smallestVolume = 64 << 20

// Settings lists the options about volumes.
var Settings = []targets.Setting[manifest.Volume]{
	targets.NewSetting(targets.Option{
		Name: "storage-class", Example: "NAME", Help: "storage class of the volumes (default: the cluster's default class)"},
		func(w *manifest.Volume) *string { return &w.Class }, targets.CheckedText(manifest.CheckName)),
	targets.NewSetting(targets.Option{Name: "access-mode", Example: "ReadWriteOnce",
		Help: "access mode of the volumes: ReadWriteOnce, ReadWriteOncePod or ReadWriteMany"},
		func(w *manifest.Volume) *corev1.PersistentVolumeAccessMode { return &w.Access }, parseAccess),
	targets.NewSetting(targets.Option{
		Name: "volume-mode", Example: "filesystem", Help: "mode of the volumes: filesystem, or block for the device itself"},
		func(w *manifest.Volume) *bool { return &w.Block }, targets.Choice("filesystem", "block")),
	targets.NewSetting(targets.Option{
		Name: "size", Example: manifest.DefaultVolume, Help: "size of the volumes, from 64Mi on; with volume=root the most " +
			"that may be written, and never more than half of what is free above 10 %"},
		func(w *manifest.Volume) *resource.Quantity { return &w.Size }, parseSize),
	targets.NewSetting(targets.Option{Name: "volume", Example: "fresh",
		Help: "fresh: a new volume for each block; reuse: one for all of them; " +
			"root: the container's own root directory, instead of a volume " +
			"(default: fresh, but reuse where the class retains volumes)"},
		func(w *manifest.Volume) *manifest.Use { return &w.Use }, parseUse),
}

func parseAccess(value string) (corev1.PersistentVolumeAccessMode, error) {
	switch mode := corev1.PersistentVolumeAccessMode(value); mode {
	case corev1.ReadWriteOnce, corev1.ReadWriteOncePod, corev1.ReadWriteMany:
		return mode, nil
	case corev1.ReadOnlyMany:
		return "", errors.New("what is measured is written first; ask for ReadWriteOnce, ReadWriteOncePod or ReadWriteMany")
	}
	return "", errors.New("it is ReadWriteOnce, ReadWriteOncePod or ReadWriteMany")
}

func parseSize(value string) (resource.Quantity, error) {
	size, err := resource.ParseQuantity(value)
	if err != nil || size.Value() < smallestVolume {
		return size, errors.New("it is a size from 64Mi on, as Kubernetes writes it, such as 10Gi")
	}
	return size, nil
}

func parseUse(value string) (manifest.Use, error) {
	if u := manifest.Use(value); u == manifest.Fresh || u == manifest.Reuse || u == manifest.Root {
		return u, nil
	}
	return "", errors.New("it is fresh, for a new volume in each block, reuse, for one in all of them, or root, for " +
		"the container's own root directory")
}

// Check returns an error if options about claims are given with volume=root, which creates none.
func Check(spec result.Spec, w manifest.Volume) error {
	for _, name := range []string{"storage-class", "access-mode", "volume-mode"} {
		if value := spec.Options[name]; w.Root() && value != "" {
			return fmt.Errorf("volume=root and %s=%s: the container's own root directory is on the node's disk, without a "+
				"PersistentVolumeClaim that could have it; leave one of them out", name, value)
		}
	}
	return nil
}
