package kube

import (
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/target"
	"github.com/knotmeter/knotmeter/internal/target/targettest"
)

// A namespace of our own admits pods in the network of their node only where a node path is planned.
func TestPodSecurityLevel(t *testing.T) {
	planned := func(list ...target.Placement) *target.Plan { return &target.Plan{Placements: list} }
	at := func(paths ...target.Path) *target.Plan { return planned(targettest.On(paths...)...) }
	call := target.Placement{Call: target.Call{Operation: "floor"}}
	for _, test := range []struct {
		options string
		plan    *target.Plan
		want    string
	}{
		{"", nil, "privileged"},
		{"host-network=no", nil, "restricted"},
		{"", at(), "restricted"},
		{"", planned(call), "restricted"},
		{"volume-mode=block", planned(target.Placement{Volume: true}, target.Placement{}), "restricted"},
		{"", at(target.PodPodSame, target.PodPodOther, target.PodSvcSame, target.PodSvcOther), "restricted"},
		{"", planned(call, target.Placement{Path: target.NodeNode}), "privileged"},
		{"", at(target.PodNodeSame), "privileged"},
		{"", at(target.NodeSvcOther), "privileged"},
		{"host-network=no", at(target.NodeNode), "restricted"},
		{"profile=yes", at(target.PodPodSame), "privileged"},
		{"profile=yes", planned(call, target.Placement{Volume: true}), "restricted"},
	} {
		k := newTarget(read(t, strings.TrimSuffix("kube:?"+test.options, "?")), nil)
		k.plan = test.plan
		if got := k.level(); got != test.want {
			t.Errorf("%s %+v: %s, want %s", test.options, test.plan, got, test.want)
		}
	}
}
