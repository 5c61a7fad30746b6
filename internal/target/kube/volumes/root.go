package volumes

import (
	"fmt"
	"strconv"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/target/kube/manifest"
)

// rootRule is where storage is measured with volume=root.
const rootRule = "the container's own root directory, a new one for each block"

// checkRoot returns an error if nothing can be measured in the container's own root directory. What the image has there
// is no one's data, so it may have content.
func (v *Volume) checkRoot() error {
	node := v.plan.Node(manifest.Client)
	switch {
	case v.found.Error != "":
		return result.NotSupported(fmt.Sprintf("on node %s %s; with volume=root the image needs a directory %s that any "+
			"user may write to, as the agent's own image has", node, v.found.Error, v.Path()))
	case v.usable() < smallestVolume:
		return result.NotSupported(fmt.Sprintf("on node %s %d bytes are free for containers, and volume=root uses at most "+
			"half of them: free some, or choose another node with client-node=", node, v.found.Free))
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
