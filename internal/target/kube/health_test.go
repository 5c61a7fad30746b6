package kube

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/knotmeter/knotmeter/internal/host/remote"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/target"
	"github.com/knotmeter/knotmeter/internal/target/kube/manifest"
)

// runningPod is a pod of ours that runs.
func runningPod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", UID: "1"}, Spec: corev1.PodSpec{NodeName: "node-1"},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.0.0.1", ContainerStatuses: []corev1.ContainerStatus{
			{Name: manifest.ContainerName, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}},
		}},
	}
}

// said of a node, at a minute of the hour at which the condition last changed.
func condition(t corev1.NodeConditionType, status corev1.ConditionStatus, minute int) corev1.NodeCondition {
	return corev1.NodeCondition{
		Type: t, Status: status, Reason: "Because", Message: "it is so.", LastTransitionTime: metav1.Date(2026, 1, 1, 1, minute, 0, 0, time.UTC),
	}
}

func saying(conditions ...corev1.NodeCondition) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Status: corev1.NodeStatus{Conditions: conditions}}
}

func TestMonitor(t *testing.T) {
	const yes, no, unknown = corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionUnknown
	well := saying(condition("Ready", yes, 1), condition("MemoryPressure", no, 1), condition("Other", yes, 1))
	pressed := saying(condition("Ready", yes, 1), condition("MemoryPressure", yes, 2))
	for _, test := range []struct {
		name           string
		before, during []*corev1.Node
		want           []string
	}{
		{name: "well", before: []*corev1.Node{well}, during: []*corev1.Node{well, saying(condition("Ready", yes, 1), condition("Other", no, 2))}},
		{name: "pressed", before: []*corev1.Node{well}, during: []*corev1.Node{pressed}, want: []string{"node n was under MemoryPressure: Because it is so"}},
		{name: "pressed, but not any more", before: []*corev1.Node{well}, during: []*corev1.Node{pressed, saying(condition("MemoryPressure", no, 3))},
			want: []string{"node n was under MemoryPressure: Because it is so"}},
		{name: "pressed twice", before: []*corev1.Node{well}, during: []*corev1.Node{pressed, well, saying(condition("MemoryPressure", yes, 4))},
			want: []string{"node n was under MemoryPressure: Because it is so"}},
		{name: "pressed before and after", before: []*corev1.Node{well, pressed}, during: []*corev1.Node{pressed}, want: []string{"node n was under MemoryPressure: Because it is so"}},
		{name: "pressed at the beginning", before: []*corev1.Node{well, pressed}, during: []*corev1.Node{well}, want: []string{"node n was under MemoryPressure: Because it is so"}},
		{name: "pressed before", before: []*corev1.Node{pressed, saying(condition("MemoryPressure", no, 3))}, during: []*corev1.Node{saying(condition("MemoryPressure", no, 3))}},
		{name: "all of them", before: []*corev1.Node{well}, during: []*corev1.Node{saying(condition("Ready", unknown, 5), condition("DiskPressure", yes, 5), condition("PIDPressure", yes, 5))},
			want: []string{"node n was not ready: Because it is so", "node n was under DiskPressure: Because it is so", "node n was under PIDPressure: Because it is so"}},
		{name: "pressed while the watch was broken", before: []*corev1.Node{well}, during: []*corev1.Node{saying(condition("MemoryPressure", no, 7))},
			want: []string{"node n was under MemoryPressure for a moment in which it could not be watched"}},
		{name: "away while the watch was broken", before: []*corev1.Node{well}, during: []*corev1.Node{saying(condition("Ready", yes, 7))},
			want: []string{"node n was not ready for a moment in which it could not be watched"}},
		{name: "first seen", during: []*corev1.Node{well}},
	} {
		m := newMonitor()
		for _, n := range test.before {
			m.see(n, false)
		}
		then := m.now()
		for _, n := range test.during {
			m.see(n, false)
		}
		if diff := cmp.Diff(test.want, m.since(then)); diff != "" && len(test.want)+len(m.since(then)) > 0 {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
	m := newMonitor()
	m.see(well, false)
	then := m.now()
	m.see(well, true)
	if got := m.since(then); len(got) != 1 || got[0] != "node n was removed from the cluster" {
		t.Errorf("removed: %q", got)
	}
}

// watchedSite is a site on a cluster of no nodes that are real, with the pods of its blueprint.
func watchedSite(t *testing.T) (*site, *fake.Clientset) {
	t.Helper()
	api := fake.NewClientset()
	s := &site{cluster: &cluster{Interface: api}, plan: plan(t, "kube:", target.PodPodOther), life: t.Context()}
	s.plan.namespace = "ns"
	s.ward = s.watchPods()
	t.Cleanup(s.ward.end)
	return s, api
}

// The watch of a site's pods finds them running, tells what becomes of them, and when they are gone; with one request.
func TestWard(t *testing.T) {
	s, api := watchedSite(t)
	pods := api.CoreV1().Pods("ns")
	for !slices.ContainsFunc(verbs(api), func(v string) bool { return v == "watch pods" }) {
		time.Sleep(time.Millisecond)
	}
	for _, r := range []manifest.Role{manifest.Client, manifest.Server} {
		p := runningPod(s.plan.name(r))
		p.Labels = s.plan.labels(r)
		if _, err := pods.Create(t.Context(), p, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	if s.pods, err = s.awaitPods(t.Context()); err != nil || len(s.pods) != 2 {
		t.Fatalf("%v, %v", s.pods, err)
	}
	if got := s.health(t.Context()); len(got) != 0 {
		t.Errorf("the health of pods that run: %q", got)
	}
	evicted := runningPod(s.plan.name(manifest.Server))
	evicted.Labels = s.plan.labels(manifest.Server)
	evicted.Status.Reason, evicted.Status.Phase = "Evicted", corev1.PodFailed
	if _, err := pods.Update(t.Context(), evicted, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	lost := s.lost(t.Context(), fmt.Errorf("on it: %w", remote.ErrLost))
	if !errors.Is(lost, remote.ErrLost) || !strings.Contains(lost.Error(), "was evicted by its node") {
		t.Error(lost)
	}
	if other := errors.New("another"); s.lost(t.Context(), other) != other {
		t.Error("another error was explained too")
	}
	if got := s.health(t.Context()); len(got) != 1 || !strings.Contains(got[0], "was evicted by its node") {
		t.Errorf("the health of a pod that was evicted: %q", got)
	}
	for _, r := range []manifest.Role{manifest.Client, manifest.Server} {
		if err := pods.Delete(t.Context(), s.plan.name(r), metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.ward.until(t.Context(), s.ward.allGone); err != nil || !s.ward.sawAll() {
		t.Error(err)
	}
	if got := slices.DeleteFunc(verbs(api), func(v string) bool { return !strings.HasPrefix(v, "watch") && !strings.HasPrefix(v, "list") }); len(got) != 1 {
		t.Errorf("the site was watched with %v", got)
	}
}

func verbs(api *fake.Clientset) []string {
	var list []string
	for _, a := range api.Actions() {
		list = append(list, a.GetVerb()+" "+a.GetResource().Resource)
	}
	return list
}

// After a time without news, pods that are no longer listed are gone.
func TestWardRelist(t *testing.T) {
	w := &ward{pods: map[string]*corev1.Pod{"a": runningPod("a"), "b": runningPod("b")}, gone: map[string]bool{}, changed: make(chan struct{}, 1)}
	began := map[string]*corev1.Pod{"a": runningPod("a"), "b": runningPod("b")}
	w.relist([]corev1.Pod{*runningPod("a")})
	if got := w.ailments(began); len(got) != 1 || !strings.HasPrefix(got[0], "pod b was removed") {
		t.Errorf("%q", got)
	}
	w.relist([]corev1.Pod{})
	if done, err := w.allGone(); !done || err != nil {
		t.Errorf("%v, %v", done, err)
	}
}

// Nodes are watched one request each; that they may not be is known, and no fault of the run.
func TestAttend(t *testing.T) {
	api := fake.NewClientset()
	k := &kubeTarget{cluster: &cluster{Interface: api}}
	if got := k.watched(); got != result.Unknown {
		t.Errorf("before: %s", got)
	}
	k.attending, k.leave = t.Context(), func() {}
	k.monitors = map[string]*monitor{}
	m := newMonitor()
	k.monitors["n"] = m
	go k.cluster.watchNode(t.Context(), "n", m)
	for len(verbs(api)) == 0 {
		time.Sleep(time.Millisecond)
	}
	n := saying(condition("Ready", corev1.ConditionTrue, 1))
	if _, err := api.CoreV1().Nodes().Create(t.Context(), n, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	k.attend(t.Context(), "n")
	if got := k.watched(); got != "watched during runs" {
		t.Errorf("the nodes are %s", got)
	}
	m.fail(errors.New("forbidden"))
	if got := k.watched(); got != result.Unknown {
		t.Errorf("nodes that may not be watched are %s", got)
	}
}
