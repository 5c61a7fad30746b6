package site

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/knotmeter/knotmeter/internal/agent"
	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/host/remote"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
	"github.com/knotmeter/knotmeter/internal/targets/kube/cluster"
	"github.com/knotmeter/knotmeter/internal/targets/kube/manifest"
)

// runningPod returns a running pod of a site.
func runningPod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", UID: "1"}, Spec: corev1.PodSpec{NodeName: "node-1"},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.0.0.1", ContainerStatuses: []corev1.ContainerStatus{
			{Name: manifest.ContainerName, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}},
		}},
	}
}

// watchedGroup returns a group on a fake cluster whose pods and nodes are watched.
func watchedGroup(t *testing.T) (*Group, *fake.Clientset) {
	t.Helper()
	api := fake.NewClientset()
	g := &Group{Cluster: &cluster.Cluster{Interface: api}, Plan: manifest.Blueprint{Experiment: "abc", Site: 7,
		Placements: []targets.Placement{{Path: result.PodPodOther}}, Nodes: [2]string{"node-1", "node-2"}}}
	g.Plan.Namespace = "ns"
	g.watch = cluster.WatchPods(api.CoreV1().Pods("ns"), g.Plan.Selector(), 2)
	t.Cleanup(g.watch.End)
	g.Nodes = cluster.NewNodes(api.CoreV1().Nodes()).StartPeriod(t.Context())
	return g, api
}

// TestHealth checks that one watch of a group's pods shows when they run, what happens to them, and when they are gone.
func TestHealth(t *testing.T) {
	g, api := watchedGroup(t)
	pods := api.CoreV1().Pods("ns")
	for !slices.ContainsFunc(verbs(api), func(v string) bool { return v == "watch pods" }) {
		time.Sleep(time.Millisecond)
	}
	for _, r := range []manifest.Role{manifest.Client, manifest.Server} {
		p := runningPod(g.Plan.Name(r))
		p.Labels = g.Plan.Labels(r)
		if _, err := pods.Create(t.Context(), p, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	if g.Pods, err = g.awaitPods(t.Context()); err != nil || len(g.Pods) != 2 {
		t.Fatalf("%v, %v", g.Pods, err)
	}
	if got := g.Health(t.Context()); len(got) != 0 {
		t.Errorf("the health of pods that run: %q", got)
	}
	evicted := runningPod(g.Plan.Name(manifest.Server))
	evicted.Labels = g.Plan.Labels(manifest.Server)
	evicted.Status.Reason, evicted.Status.Phase = "Evicted", corev1.PodFailed
	if _, err := pods.Update(t.Context(), evicted, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	lost := g.explainLost(t.Context(), fmt.Errorf("on it: %w", remote.ErrLost))
	if !errors.Is(lost, remote.ErrLost) || !strings.Contains(lost.Error(), "was evicted by its node") {
		t.Error(lost)
	}
	if other := errors.New("another"); g.explainLost(t.Context(), other) != other {
		t.Error("an unrelated error was explained too")
	}
	if got := g.Health(t.Context()); len(got) != 1 || !strings.Contains(got[0], "was evicted by its node") {
		t.Errorf("the health of a pod that was evicted: %q", got)
	}
	for _, r := range []manifest.Role{manifest.Client, manifest.Server} {
		if err := pods.Delete(t.Context(), g.Plan.Name(r), metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if !g.watch.AwaitGone(t.Context()) {
		t.Error("the pods are not all gone")
	}
	if got := slices.DeleteFunc(verbs(api), func(v string) bool {
		return !strings.HasPrefix(v, "watch") &&
			!strings.HasPrefix(v, "list")
	}); len(got) != 1 {
		t.Errorf("the group was watched with %v", got)
	}
}

func verbs(api *fake.Clientset) []string {
	var list []string
	for _, a := range api.Actions() {
		list = append(list, a.GetVerb()+" "+a.GetResource().Resource)
	}
	return list
}

// A countingHost counts commands, which all fail.
type countingHost struct {
	host.Host
	commands int
}

func (a *countingHost) Name() string { return "ns/pod" }

func (a *countingHost) Run(context.Context, host.Cmd) error {
	a.commands++
	return errors.New("asked")
}

// TestLimitGiven checks that pods are asked whether a limit of the namespace throttled them. A limit that the user gave
// is a fact and a warning, and invalidates no run.
func TestLimitGiven(t *testing.T) {
	limit := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m")}
	for given, want := range map[bool]string{
		false: "none ",
		true:  "500m the pods have a CPU limit of 500m by config=: it is part of what was measured",
	} {
		g, _ := watchedGroup(t)
		if given {
			g.Plan.Settings.Pods.Resources.Limits = limit
		}
		a := &countingHost{}
		g.agents, g.hosts, g.Pods = agent.NewPool(), map[manifest.Role]*host.Scoped{}, map[string]*corev1.Pod{}
		for _, r := range g.Plan.Roles() {
			p := runningPod(g.Plan.Name(r))
			p.Spec.Containers = []corev1.Container{{Name: manifest.ContainerName,
				Resources: corev1.ResourceRequirements{Limits: limit}}}
			g.Pods[p.Name], g.hosts[r] = p, host.NewScoped(a)
		}
		g.Health(t.Context())
		if a.commands > 0 == given {
			t.Errorf("limit given %v: the pods were asked %d times", given, a.commands)
		}
		w := &Connection{group: g}
		got := result.FactOf(w.Facts(), "cpu-limit") + " " + strings.Join(result.Texts(g.Warnings()), "; ")
		if pair := w.Pair(); got != want || (pair.CPULimit != "") != given {
			t.Errorf("limit given %v: %q and a pair with %q, want %q", given, got, pair.CPULimit, want)
		}
	}
}
