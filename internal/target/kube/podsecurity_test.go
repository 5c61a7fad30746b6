package kube

import (
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/target"
	"github.com/knotmeter/knotmeter/internal/target/kube/manifest"
)

// A namespace of our own admits pods in the network of their node only where a node path is planned.
func TestPodSecurityLevel(t *testing.T) {
	at := func(paths ...target.Path) *target.Plan {
		p := &target.Plan{}
		for _, path := range paths {
			p.Placements = append(p.Placements, target.Placement{Path: path})
		}
		return p
	}
	for _, test := range []struct {
		options string
		plan    *target.Plan
		want    string
	}{
		{"", nil, "privileged"},
		{"host-network=no", nil, "restricted"},
		{"", at(), "restricted"},
		{"", at(target.API), "restricted"},
		{"volume-mode=block", at(target.Storage, target.App), "restricted"},
		{"", at(target.PodPodSame, target.PodPodOther, target.PodSvcSame, target.PodSvcOther), "restricted"},
		{"", at(target.API, target.NodeNode), "privileged"},
		{"", at(target.PodNodeSame), "privileged"},
		{"", at(target.NodeSvcOther), "privileged"},
		{"host-network=no", at(target.NodeNode), "restricted"},
	} {
		k := newTarget(read(t, strings.TrimSuffix("kube:?"+test.options, "?")), nil)
		k.plan = test.plan
		if got := manifest.NewNamespace("x", "y",
			k.onNodes()).Labels["pod-security.kubernetes.io/enforce"]; got != test.want {
			t.Errorf("%s %+v: %s, want %s", test.options, test.plan, got, test.want)
		}
	}
}
