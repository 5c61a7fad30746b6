package site

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
	"github.com/knotmeter/knotmeter/internal/targets/kube/inspection"
	"github.com/knotmeter/knotmeter/internal/targets/kube/manifest"
)

// TestMeshOfConnection checks what follows from each conclusion about a mesh: a fact, a warning, or a problem by which
// the path is not measured. Without enrolled pods, sidecars give a warning and nothing is required.
func TestMeshOfConnection(t *testing.T) {
	ambient := map[string]string{"istio.io/dataplane-mode": "ambient"}
	concluded := func(a inspection.Answer) inspection.Interception {
		return inspection.Interception{Intercepted: a, Evidence: "why"}
	}
	for _, test := range []struct {
		labels        map[string]string // of the namespace
		path          result.Path
		mesh          inspection.Interception
		fact, problem string
		warning       result.Code // the only one; empty: none
	}{
		{ambient, result.PodPodOther, concluded(inspection.Yes), "yes (why)", "", ""},
		{ambient, result.PodSvcOther, concluded(inspection.No), "no (why)",
			"enrolled in the mesh istio (ambient), but the traffic on pod-svc/other did not pass it: why", ""},
		{ambient, result.PodPodSame, concluded(inspection.Unproven), "unknown (why)", "", result.MeshUnproven},
		{ambient, result.PodNodeOther, inspection.NodeInterception(), "not applicable (an end is", "", ""},
		{nil, result.PodPodOther, concluded(inspection.No), "", "", result.Sidecars},
		{nil, result.PodPodOther, concluded(inspection.Yes), "yes (why)", "", result.Sidecars},
	} {
		g := &Group{Plan: manifest.Blueprint{Settings: manifest.Settings{NamespaceLabels: test.labels},
			Placements: []targets.Placement{{Path: test.path}}, Nodes: [2]string{"node-1", "node-2"}}}
		g.Pods = map[string]*corev1.Pod{"client": {
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{manifest.LabelRole: "client"}},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: manifest.ContainerName}, {Name: "istio-proxy"}}},
		}}
		w := &Connection{group: g, path: test.path, mesh: test.mesh}
		fact := ""
		for _, f := range w.meshFacts() {
			fact = f.String()
		}
		if !strings.HasPrefix(fact, test.fact) || test.fact == "" && fact != "" {
			t.Errorf("%s, %s: the fact %q", test.path, test.mesh, fact)
		}
		if problem := w.meshProblem(); !strings.Contains(problem, test.problem) || test.problem == "" && problem != "" {
			t.Errorf("%s, %s: the problem %q", test.path, test.mesh, problem)
		}
		warnings := w.Warnings()
		if test.warning == "" && len(warnings) > 0 ||
			test.warning != "" && (len(warnings) != 1 || warnings[0].Code != test.warning) {
			t.Errorf("%s, %s: the warnings %v", test.path, test.mesh, warnings)
		}
	}
}

// TestMeshLost checks which conclusions after a run are problems.
func TestMeshLost(t *testing.T) {
	plan := manifest.Blueprint{Settings: manifest.Settings{NamespaceLabels: map[string]string{
		"istio.io/dataplane-mode": "ambient"}}, Placements: []targets.Placement{{Path: result.PodPodOther}}}
	for _, test := range []struct {
		before, after inspection.Answer
		says          string
	}{
		{inspection.Yes, inspection.Yes, ""}, {inspection.Unproven, inspection.Unproven, ""},
		{inspection.Unproven, inspection.Yes, ""}, {inspection.Yes, inspection.No, "did not pass it: why"},
		{inspection.Unproven, inspection.No, "did not pass it: why"},
		{inspection.Yes, inspection.Unproven, "no longer known whether the traffic passes the mesh: why"},
	} {
		w := &Connection{group: &Group{Plan: plan}, path: result.PodPodOther,
			mesh: inspection.Interception{Intercepted: test.before}}
		got := w.meshLost(inspection.Interception{Intercepted: test.after, Evidence: "why"})
		if !strings.Contains(got, test.says) || test.says == "" && got != "" {
			t.Errorf("%s, then %s: %q", test.before, test.after, got)
		}
	}
}
