package manifest

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
	"github.com/knotmeter/knotmeter/internal/targets/targettest"
)

// TestGroups checks that placements with the same ends share pods, whether their clients dial the Service or the
// server.
func TestGroups(t *testing.T) {
	type paths = []result.Path
	for name, test := range map[string]struct {
		paths paths
		want  []paths
	}{
		"none": {nil, nil},
		"network:quick": {paths{result.PodPodOther, result.PodSvcOther, result.NodeNode},
			[]paths{{result.PodPodOther, result.PodSvcOther}, {result.NodeNode}}},
		"all nine": {result.Paths(), []paths{{result.NodeNode}, {result.PodNodeSame}, {result.PodNodeOther},
			{result.PodPodSame, result.PodSvcSame}, {result.PodPodOther, result.PodSvcOther}, {result.NodeSvcSame},
			{result.NodeSvcOther}}},
		"the Service first": {paths{result.PodSvcSame, result.PodPodSame},
			[]paths{{result.PodSvcSame, result.PodPodSame}}},
		"several cases on a path": {paths{result.PodPodSame, result.PodPodSame, result.PodSvcSame, result.PodPodSame},
			[]paths{{result.PodPodSame, result.PodSvcSame}}},
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

// TestGroupsOfClients checks that placements without a server share a pod if they use the same: a volume, the API
// server, or neither.
func TestGroupsOfClients(t *testing.T) {
	reading := []targets.Right{{Resource: "configmaps", Verbs: []string{"get"}}}
	get, floor := targets.Placement{AsksAPI: true, Rights: reading}, targets.Placement{AsksAPI: true}
	client, vault, volume := targets.Placement{}, targets.Placement{Application: "vault"}, targets.Placement{Volume: true}
	got := Groups([]targets.Placement{get, client, floor, volume, vault, volume})
	want := [][]targets.Placement{{get, floor}, {client, vault}, {volume, volume}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
