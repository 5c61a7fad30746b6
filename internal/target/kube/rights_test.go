package kube

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/knotmeter/knotmeter/internal/golden"
	"github.com/knotmeter/knotmeter/internal/target"
	"github.com/knotmeter/knotmeter/internal/target/kube/manifest"
)

// lines is a line for each rule.
func lines(where string, rules []rbacv1.PolicyRule) string {
	text := ""
	for _, r := range rules {
		on := strings.Join(slices.Concat(r.Resources, r.NonResourceURLs), " ")
		text += fmt.Sprintf("  %s: %s %s\n", where, on, strings.Join(r.Verbs, ","))
	}
	return text
}

func (r rights) String() string {
	return lines("namespace", r.here) + lines("CLUSTER", r.namespaces) + lines("CLUSTER", r.metrics)
}

// Every case has the rights that it uses, and no others.
func TestRightsGolden(t *testing.T) {
	text := ""
	for _, c := range allCalls() {
		text += strings.TrimPrefix(c.Resource+"/"+c.Operation, "/") + "\n" + rightsFor([]target.Call{c}).String()
	}
	golden.Check(t, "testdata/rights.txt", text+"all of them\n"+rightsFor(allCalls()).String())
}

// Namespaces of the whole cluster are for cases of namespaces alone, and metrics for cases beside which they are read.
func TestRightsAreLeast(t *testing.T) {
	quick := []target.Call{
		{Operation: "floor"}, {Operation: "pod-startup"}, {Resource: "configmap", Operation: "watch"},
	}
	if r := rightsFor(quick); len(r.wide()) > 0 {
		t.Errorf("%s", r)
	}
	get := target.Call{Resource: "configmap", Operation: "get"}
	if r := rightsFor(append(quick, get)); len(r.namespaces) > 0 || len(r.metrics) != 1 {
		t.Errorf("%s", r)
	}
	r := rightsFor([]target.Call{{Resource: "namespace", Operation: "get"}})
	const want = "  CLUSTER: namespaces create,get,list,delete\n"
	if lines("CLUSTER", r.namespaces) != want || len(r.here) > 0 {
		t.Errorf("%s", r)
	}
}

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
		if got := manifest.NewNamespace("x", "y", k.onNodes()).Labels["pod-security.kubernetes.io/enforce"]; got != test.want {
			t.Errorf("%s %+v: %s, want %s", test.options, test.plan, got, test.want)
		}
	}
}
