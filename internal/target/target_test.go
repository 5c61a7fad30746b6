package target

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPaths(t *testing.T) {
	type properties struct{ Other, Service, ClientPod, ServerPod bool }
	want := map[Path]properties{
		NodeNode:     {Other: true},
		PodNodeSame:  {ClientPod: true},
		PodNodeOther: {Other: true, ClientPod: true},
		PodPodSame:   {ClientPod: true, ServerPod: true},
		PodPodOther:  {Other: true, ClientPod: true, ServerPod: true},
		NodeSvcSame:  {Service: true, ServerPod: true},
		NodeSvcOther: {Other: true, Service: true, ServerPod: true},
		PodSvcSame:   {Service: true, ClientPod: true, ServerPod: true},
		PodSvcOther:  {Other: true, Service: true, ClientPod: true, ServerPod: true},
	}
	got := map[Path]properties{}
	for _, p := range Paths() {
		got[p] = properties{p.Other(), p.Service(), p.ClientPod(), p.ServerPod()}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
