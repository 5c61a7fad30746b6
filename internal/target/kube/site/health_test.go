package site

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/knotmeter/knotmeter/internal/host/remote"
	"github.com/knotmeter/knotmeter/internal/target"
	"github.com/knotmeter/knotmeter/internal/target/kube/connection"
	"github.com/knotmeter/knotmeter/internal/target/kube/manifest"
	"github.com/knotmeter/knotmeter/internal/target/kube/watching"
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

// watchedSite is a site on a cluster of no nodes that are real, with the pods of its blueprint.
func watchedSite(t *testing.T) (*Site, *fake.Clientset) {
	t.Helper()
	api := fake.NewClientset()
	s := &Site{Cluster: &connection.Cluster{Interface: api}, Plan: manifest.Blueprint{Experiment: "abc", Site: 7,
		Path: target.PodPodOther, Nodes: [2]string{"node-1", "node-2"}}, life: t.Context()}
	s.Plan.Namespace = "ns"
	s.watch = watching.Pods(api.CoreV1().Pods("ns"), s.Plan.Selector(), 2)
	t.Cleanup(s.watch.End)
	s.Nodes = watching.NewNodes(api.CoreV1().Nodes()).From(t.Context())
	return s, api
}

// The watch of a site's pods finds them running, tells what becomes of them, and when they are gone; with one request.
func TestSiteHealth(t *testing.T) {
	s, api := watchedSite(t)
	pods := api.CoreV1().Pods("ns")
	for !slices.ContainsFunc(verbs(api), func(v string) bool { return v == "watch pods" }) {
		time.Sleep(time.Millisecond)
	}
	for _, r := range []manifest.Role{manifest.Client, manifest.Server} {
		p := runningPod(s.Plan.Name(r))
		p.Labels = s.Plan.Labels(r)
		if _, err := pods.Create(t.Context(), p, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	if s.Pods, err = s.awaitPods(t.Context()); err != nil || len(s.Pods) != 2 {
		t.Fatalf("%v, %v", s.Pods, err)
	}
	if got := s.Health(t.Context()); len(got) != 0 {
		t.Errorf("the health of pods that run: %q", got)
	}
	evicted := runningPod(s.Plan.Name(manifest.Server))
	evicted.Labels = s.Plan.Labels(manifest.Server)
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
	if got := s.Health(t.Context()); len(got) != 1 || !strings.Contains(got[0], "was evicted by its node") {
		t.Errorf("the health of a pod that was evicted: %q", got)
	}
	for _, r := range []manifest.Role{manifest.Client, manifest.Server} {
		if err := pods.Delete(t.Context(), s.Plan.Name(r), metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if !s.watch.AllGone(t.Context()) {
		t.Error("the pods are not all gone")
	}
	if got := slices.DeleteFunc(verbs(api), func(v string) bool {
		return !strings.HasPrefix(v, "watch") &&
			!strings.HasPrefix(v, "list")
	}); len(got) != 1 {
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
