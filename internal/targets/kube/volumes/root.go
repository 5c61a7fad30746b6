package volumes

import (
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/knotmeter/knotmeter/internal/preflight"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets/kube/inspection"
	"github.com/knotmeter/knotmeter/internal/targets/kube/manifest"
)

// rootRule is where storage is measured with volume=root.
const rootRule = "the container's own root directory, a new one for each block"

// keptFree is how much of its disk a kubelet keeps free unless it is configured otherwise, in percent: with less it
// removes images, and evicts pods, those of others too.
const keptFree = 15

// usableRoot is how many bytes a run may write to a root directory: at most size, half of what is free, what leaves the
// kubelet's part free, and nine tenths of the container's limit, at which the pod would be evicted. A disk with less
// free than the kubelet's part has a pod only if its kubelet keeps less free.
func usableRoot(v preflight.Volume, size, limit int64) int64 {
	n := min(size, v.Free/2)
	if spare := v.Free - v.Size/100*keptFree; spare > 0 {
		n = min(n, spare)
	}
	if limit > 0 {
		n = min(n, limit/10*9)
	}
	return n
}

// checkRoot returns an error if nothing can be measured in the container's own root directory. What the image has there
// is no one's data, so it may have content.
func (v *Volume) checkRoot(pod *corev1.Pod) error {
	node, limits := v.plan.Node(manifest.Client), inspection.OwnContainer(pod).Resources.Limits
	v.limit = limits.StorageEphemeral().Value()
	switch {
	case v.found.Error != "":
		return result.NotSupported(fmt.Sprintf("on node %s %s; with volume=root the image needs a directory %s that any "+
			"user may write to, as the agent's own image has", node, v.found.Error, v.Path()))
	case v.found.Mounted:
		return result.NotSupported(fmt.Sprintf("something is mounted on %s in the pod %s, which is not the container's own "+
			"root directory then: the image declares a volume there, or something in the cluster changes pods", v.Path(),
			v.plan.Name(manifest.Client)))
	case result.FactOf(v.found.Facts, "backing") == "memory":
		return result.NotSupported(fmt.Sprintf("root directories of containers on node %s are in memory (%s), which is not "+
			"storage; choose another node with client-node=, or another runtime-class=", node,
			result.FactOf(v.found.Facts, "filesystem")))
	case v.limit > 0 && v.limit/10*9 < smallestVolume:
		return result.NotSupported(fmt.Sprintf("the pod has a limit of %d bytes of ephemeral storage, at which its kubelet "+
			"evicts it; give it more in config=, or choose another namespace=", v.limit))
	case v.usable() < smallestVolume:
		return result.NotSupported(fmt.Sprintf("on node %s %d of %d bytes are free for containers, and volume=root uses at "+
			"most half of them and leaves the kubelet its %d %%: free some, or choose another node with client-node=", node,
			v.found.Free, v.found.Size, keptFree))
	}
	return nil
}

// rootFacts are those of the container's own root directory.
func (v *Volume) rootFacts() []result.Fact {
	return append([]result.Fact{
		{Name: "volume", Value: rootRule}, {Name: "size-asked", Value: v.asked.Size.String()},
		{Name: "volume-usable", Value: strconv.FormatInt(v.usable(), 10) + " B"},
	}, v.found.Facts...)
}
