package kube

import (
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
	"github.com/knotmeter/knotmeter/internal/targets/targettest"
)

// TestPodSecurityLevel checks that the experiment's own namespace is privileged only if a planned path needs the
// network of nodes, or profiles them.
func TestPodSecurityLevel(t *testing.T) {
	planned := func(list ...targets.Placement) *targets.Plan { return &targets.Plan{Placements: list} }
	at := func(paths ...result.Path) *targets.Plan { return planned(targettest.On(paths...)...) }
	call := targets.Placement{AsksAPI: true}
	for _, test := range []struct {
		options string
		plan    *targets.Plan
		want    string
	}{
		{"", nil, "privileged"},
		{"host-network=no", nil, "restricted"},
		{"", at(), "restricted"},
		{"", planned(call), "restricted"},
		{"volume-mode=block", planned(targets.Placement{Volume: true}, targets.Placement{}), "restricted"},
		{"", at(result.PodPodSame, result.PodPodOther, result.PodSvcSame, result.PodSvcOther), "restricted"},
		{"", planned(call, targets.Placement{Path: result.NodeNode}), "privileged"},
		{"", at(result.PodNodeSame), "privileged"},
		{"", at(result.NodeSvcOther), "privileged"},
		{"host-network=no", at(result.NodeNode), "restricted"},
		{"profile=yes", at(result.PodPodSame), "privileged"},
		{"profile=yes", planned(call, targets.Placement{Volume: true}), "restricted"},
	} {
		k := newTarget(parseOptions(t, strings.TrimSuffix("kube:?"+test.options, "?")), allNeeds(), nil)
		if test.plan != nil {
			k.plan = *test.plan
		}
		if got := k.podSecurityLevel(); got != test.want {
			t.Errorf("%s %+v: %s, want %s", test.options, test.plan, got, test.want)
		}
	}
}
