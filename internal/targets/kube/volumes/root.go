package volumes

import (
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/knotmeter/knotmeter/internal/machine"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets/kube/inspection"
	"github.com/knotmeter/knotmeter/internal/targets/kube/manifest"
)

// rootRule is the fact that describes the storage of volume=root.
const rootRule = "the container's own root directory, a new one for each block"

// kubeletFreePercent is the percentage of its disk that a kubelet keeps free by default. With less free space it
// removes images and evicts pods, including those of other users.
const kubeletFreePercent = 15

// keptPercent is the percentage of a disk that stays free in any case.
const keptPercent = 10

// spare returns how many bytes of a disk may be used, so that keptPercent of it stay free.
func spare(v machine.VolumeState) int64 { return max(v.Free-v.Size/100*keptPercent, 0) }

// usableRoot returns how many bytes a run may write to a root directory: the least of size, half of the spare space,
// the free space above the kubelet's share, and nine tenths of limit, the container's limit, at which the pod would be
// evicted (0: no limit). If less than the kubelet's share is free, the kubelet evidently keeps less free, and its share
// does not count. The pods that may fill the disk at the same time have equal shares of it.
func usableRoot(v machine.VolumeState, size, limit, filling int64) int64 {
	filling = max(filling, 1)
	n := min(size, spare(v)/2/filling)
	if above := v.Free - v.Size/100*kubeletFreePercent; above > 0 {
		n = min(n, above/filling)
	}
	if limit > 0 {
		n = min(n, limit/10*9)
	}
	return n
}

// checkRoot returns an error if nothing can be measured in the container's own root directory. The directory may have
// content: it comes from the image.
func (v *Volume) checkRoot(pod *corev1.Pod) error {
	node, limits := v.blueprint.Node(manifest.Client), inspection.OwnContainer(pod).Resources.Limits
	v.writeLimit = limits.StorageEphemeral().Value()
	switch {
	case v.observed.Error != "":
		return result.NotSupported(fmt.Sprintf("on node %s %s; with volume=root the image needs a directory %s that any "+
			"user may write to, as the agent's own image has", node, v.observed.Error, v.Path()))
	case v.observed.Mounted:
		return result.NotSupported(fmt.Sprintf("something is mounted on %s in the pod %s, which is not the container's own "+
			"root directory then: the image declares a volume there, or something in the cluster changes pods", v.Path(),
			v.blueprint.Name(manifest.Client)))
	case result.FactOf(v.observed.Facts, "backing") == "memory":
		return result.NotSupported(fmt.Sprintf("root directories of containers on node %s are in memory (%s), which is not "+
			"storage; choose another node with client-node=, or another runtime-class=", node,
			result.FactOf(v.observed.Facts, "filesystem")))
	case v.writeLimit > 0 && v.writeLimit/10*9 < smallestVolume:
		return result.NotSupported(fmt.Sprintf("the pod has a limit of %d bytes of ephemeral storage, at which its kubelet "+
			"evicts it; give it more in config=, or choose another namespace=", v.writeLimit))
	case v.usable() < smallestVolume:
		return result.NotSupported(fmt.Sprintf("on node %s %d of %d bytes are free for containers, and the %d pods with "+
			"volume=root use at most half of them and leave the kubelet its %d %%: free some, or choose another node with "+
			"client-node=", node, v.observed.Free, v.observed.Size, max(v.filling, 1), kubeletFreePercent))
	}
	return nil
}

// rootFacts returns the facts about the container's own root directory.
func (v *Volume) rootFacts() []result.Fact {
	return append([]result.Fact{
		{Name: "volume", Value: rootRule}, {Name: "size-asked", Value: v.spec.Size.String()},
		{Name: "volume-usable", Value: strconv.FormatInt(v.usable(), 10) + " B"},
	}, v.observed.Facts...)
}
