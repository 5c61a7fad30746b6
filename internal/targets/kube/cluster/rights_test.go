package cluster

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/knotmeter/knotmeter/internal/golden"
	"github.com/knotmeter/knotmeter/internal/targets"
)

// lines returns a line for each rule.
func lines(where string, rules []rbacv1.PolicyRule) string {
	text := ""
	for _, r := range rules {
		on := strings.Join(slices.Concat(r.Resources, r.NonResourceURLs), " ")
		text += fmt.Sprintf("  %s: %s %s\n", where, on, strings.Join(r.Verbs, ","))
	}
	return text
}

func (r Rights) String() string {
	return lines("namespace", r.InNamespace) + lines("CLUSTER", r.namespaces) + lines("CLUSTER", r.metrics)
}

// Each case has the rights it uses and no others.
func TestRightsGolden(t *testing.T) {
	text := ""
	for _, c := range AllCalls() {
		text += strings.TrimPrefix(c.Resource+"/"+c.Operation, "/") + "\n" + RightsFor([]targets.Call{c}).String()
	}
	golden.Check(t, "testdata/rights.txt", text+"all of them\n"+RightsFor(AllCalls()).String())
}

// Only cases of namespaces get rights on all namespaces, and only cases that read metrics get rights on them.
func TestRightsAreLeast(t *testing.T) {
	quick := []targets.Call{
		{Operation: "floor"}, {Operation: "pod-startup"}, {Resource: "configmap", Operation: "watch"},
	}
	if r := RightsFor(quick); len(r.ClusterWide()) > 0 {
		t.Errorf("%s", r)
	}
	get := targets.Call{Resource: "configmap", Operation: "get"}
	if r := RightsFor(append(quick, get)); len(r.namespaces) > 0 || len(r.metrics) != 1 {
		t.Errorf("%s", r)
	}
	r := RightsFor([]targets.Call{{Resource: "namespace", Operation: "get"}})
	const want = "  CLUSTER: namespaces create,get,list,delete\n"
	if lines("CLUSTER", r.namespaces) != want || len(r.InNamespace) > 0 {
		t.Errorf("%s", r)
	}
}
