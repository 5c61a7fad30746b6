package kube

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/knotmeter/knotmeter/internal/target"
)

// Placements with the same ends share pods, whatever their clients dial, and so do those that one pod serves alone.
func TestGroups(t *testing.T) {
	type paths = []target.Path
	for name, test := range map[string]struct {
		paths paths
		want  []paths
	}{
		"none": {nil, nil},
		"network:quick": {paths{target.PodPodOther, target.PodSvcOther, target.NodeNode},
			[]paths{{target.PodPodOther, target.PodSvcOther}, {target.NodeNode}}},
		"all nine": {target.Paths(), []paths{{target.NodeNode}, {target.PodNodeSame}, {target.PodNodeOther},
			{target.PodPodSame, target.PodSvcSame}, {target.PodPodOther, target.PodSvcOther}, {target.NodeSvcSame},
			{target.NodeSvcOther}}},
		"the Service first": {paths{target.PodSvcSame, target.PodPodSame}, []paths{{target.PodSvcSame, target.PodPodSame}}},
		"alone": {paths{target.API, target.App, target.API, target.Storage, target.App, target.Storage},
			[]paths{{target.API}, {target.App}, {target.Storage}}},
		"several cases on a path": {paths{target.PodPodSame, target.PodPodSame, target.PodSvcSame, target.PodPodSame},
			[]paths{{target.PodPodSame, target.PodSvcSame}}},
	} {
		var placements []target.Placement
		for _, p := range test.paths {
			placements = append(placements, target.Placement{Path: p})
		}
		if diff := cmp.Diff(test.want, groups(placements)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
