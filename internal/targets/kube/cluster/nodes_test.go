package cluster

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

// condition returns a condition that last changed at a minute of a fixed hour.
func condition(t corev1.NodeConditionType, status corev1.ConditionStatus, minute int) corev1.NodeCondition {
	return corev1.NodeCondition{
		Type: t, Status: status, Reason: "Because", Message: "it is so.",
		LastTransitionTime: metav1.Date(2026, 1, 1, 1, minute, 0, 0, time.UTC),
	}
}

func nodeWith(conditions ...corev1.NodeCondition) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Status: corev1.NodeStatus{Conditions: conditions}}
}

func TestNodeWatch(t *testing.T) {
	const yes, no, unknown = corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionUnknown
	well := nodeWith(condition("Ready", yes, 1), condition("MemoryPressure", no, 1), condition("Other", yes, 1))
	pressed := nodeWith(condition("Ready", yes, 1), condition("MemoryPressure", yes, 2))
	for _, test := range []struct {
		name           string
		before, during []*corev1.Node
		want           []string
	}{
		{name: "well", before: []*corev1.Node{well}, during: []*corev1.Node{well, nodeWith(condition("Ready", yes, 1),
			condition("Other", no, 2))}},
		{name: "pressed", before: []*corev1.Node{well}, during: []*corev1.Node{pressed},
			want: []string{"node n was under MemoryPressure: Because it is so"}},
		{name: "pressed, but not any more", before: []*corev1.Node{well},
			during: []*corev1.Node{pressed, nodeWith(condition("MemoryPressure", no, 3))},
			want:   []string{"node n was under MemoryPressure: Because it is so"}},
		{name: "pressed twice", before: []*corev1.Node{well},
			during: []*corev1.Node{pressed, well, nodeWith(condition("MemoryPressure", yes, 4))},
			want:   []string{"node n was under MemoryPressure: Because it is so"}},
		{name: "pressed before and after", before: []*corev1.Node{well, pressed}, during: []*corev1.Node{pressed},
			want: []string{"node n was under MemoryPressure: Because it is so"}},
		{name: "pressed at the beginning", before: []*corev1.Node{well, pressed}, during: []*corev1.Node{well},
			want: []string{"node n was under MemoryPressure: Because it is so"}},
		{name: "pressed before", before: []*corev1.Node{pressed, nodeWith(condition("MemoryPressure", no, 3))},
			during: []*corev1.Node{nodeWith(condition("MemoryPressure", no, 3))}},
		{name: "all of them", before: []*corev1.Node{well}, during: []*corev1.Node{nodeWith(condition("Ready", unknown, 5),
			condition("DiskPressure", yes, 5), condition("PIDPressure", yes, 5))},
			want: []string{"node n was not ready: Because it is so", "node n was under DiskPressure: Because it is so",
				"node n was under PIDPressure: Because it is so"}},
		{name: "pressed while the watch was broken", before: []*corev1.Node{well},
			during: []*corev1.Node{nodeWith(condition("MemoryPressure", no, 7))},
			want:   []string{"node n was under MemoryPressure for a moment in which it could not be watched"}},
		{name: "away while the watch was broken", before: []*corev1.Node{well},
			during: []*corev1.Node{nodeWith(condition("Ready", yes, 7))},
			want:   []string{"node n was not ready for a moment in which it could not be watched"}},
		{name: "first seen", during: []*corev1.Node{well}},
	} {
		m := newNodeWatch()
		for _, n := range test.before {
			m.record(n, false)
		}
		period := Period{m.snapshot()}
		for _, n := range test.during {
			m.record(n, false)
		}
		if diff := cmp.Diff(test.want, period.Problems()); diff != "" && len(test.want)+len(period.Problems()) > 0 {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
	m := newNodeWatch()
	m.record(well, false)
	period := Period{m.snapshot()}
	m.record(well, true)
	if got := period.Problems(); len(got) != 1 || got[0] != "node n was removed from the cluster" {
		t.Errorf("removed: %q", got)
	}
}

// TestNodes checks that each node is watched with one request, and that a missing right to watch is known and does not
// invalidate a run.
func TestNodes(t *testing.T) {
	api := fake.NewClientset()
	nodes := NewNodes(api.CoreV1().Nodes())
	defer nodes.End()
	if nodes.Watched() {
		t.Error("no node is watched yet")
	}
	n := nodeWith(condition("Ready", corev1.ConditionTrue, 1))
	go func() {
		for len(verbs(api)) == 0 {
			time.Sleep(time.Millisecond)
		}
		if _, err := api.CoreV1().Nodes().Create(t.Context(), n, metav1.CreateOptions{}); err != nil {
			t.Error(err)
		}
	}()
	period := nodes.StartPeriod(t.Context(), "n")
	if !nodes.Watched() {
		t.Error("the node is not watched")
	}
	pressed := nodeWith(condition("Ready", corev1.ConditionFalse, 2))
	if _, err := api.CoreV1().Nodes().Update(t.Context(), pressed, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	for len(period.Problems()) == 0 {
		time.Sleep(time.Millisecond)
	}
	if got := period.Problems(); len(got) != 1 || got[0] != "node n was not ready: Because it is so" {
		t.Errorf("%q", got)
	}
	if got := verbs(api); !slices.Equal(got, []string{"watch nodes", "create nodes", "update nodes"}) {
		t.Errorf("the node was watched with %v", got)
	}
	nodes.watches["n"].fail(errors.New("forbidden"))
	if nodes.Watched() {
		t.Error("a node that may not be watched is")
	}
}

func verbs(api *fake.Clientset) []string {
	var list []string
	for _, a := range api.Actions() {
		list = append(list, a.GetVerb()+" "+a.GetResource().Resource)
	}
	return list
}
