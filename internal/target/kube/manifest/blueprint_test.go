package manifest

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/knotmeter/knotmeter/internal/target"
	"github.com/knotmeter/knotmeter/internal/target/targettest"
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
		"several cases on a path": {paths{target.PodPodSame, target.PodPodSame, target.PodSvcSame, target.PodPodSame},
			[]paths{{target.PodPodSame, target.PodSvcSame}}},
	} {
		var got []paths
		for _, g := range Groups(targettest.On(test.paths...)) {
			got = append(got, Blueprint{Placements: g}.Paths())
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// A client alone has what it is there for, and shares its pod with those of its like.
func TestGroupsOfClients(t *testing.T) {
	get, floor := target.Placement{Call: target.Call{Resource: "configmap", Operation: "get"}},
		target.Placement{Call: target.Call{Operation: "floor"}}
	client, vault, volume := target.Placement{}, target.Placement{Application: "vault"}, target.Placement{Volume: true}
	got := Groups([]target.Placement{get, client, floor, volume, vault, volume})
	want := [][]target.Placement{{get, floor}, {client, vault}, {volume, volume}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
