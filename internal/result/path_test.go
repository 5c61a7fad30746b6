package result

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPaths(t *testing.T) {
	type properties struct{ Same, Other, Service, ClientPod, ServerPod bool }
	want := map[Path]properties{
		NodeNode:     {Other: true},
		PodNodeSame:  {Same: true, ClientPod: true},
		PodNodeOther: {Other: true, ClientPod: true},
		PodPodSame:   {Same: true, ClientPod: true, ServerPod: true},
		PodPodOther:  {Other: true, ClientPod: true, ServerPod: true},
		NodeSvcSame:  {Same: true, Service: true, ServerPod: true},
		NodeSvcOther: {Other: true, Service: true, ServerPod: true},
		PodSvcSame:   {Same: true, Service: true, ClientPod: true, ServerPod: true},
		PodSvcOther:  {Other: true, Service: true, ClientPod: true, ServerPod: true},
	}
	got := map[Path]properties{}
	for _, p := range Paths() {
		got[p] = properties{p.Same(), p.Other(), p.Service(), p.ClientPod(), p.ServerPod()}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if PodSvcSame.Between() != PodSvcOther || PodPodOther.Between() != PodPodOther {
		t.Error("paths between nodes")
	}
}

func TestPathsAreTheCallers(t *testing.T) {
	first := slices.Clone(Paths())
	slices.Reverse(Paths())
	if !slices.Equal(Paths(), first) {
		t.Errorf("a caller that reverses the list changes it for all: %v", Paths())
	}
}
