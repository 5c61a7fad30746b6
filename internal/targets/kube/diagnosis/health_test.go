package diagnosis

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/knotmeter/knotmeter/internal/targets/kube/manifest"
)

// runningPod returns a running pod with the agent's container.
func runningPod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", UID: "1"}, Spec: corev1.PodSpec{NodeName: "node-1"},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.0.0.1", ContainerStatuses: []corev1.ContainerStatus{
			{Name: manifest.ContainerName, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}},
		}},
	}
}

func TestPodDisruption(t *testing.T) {
	ended := func(reason string, status int32) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Status.Phase = corev1.PodFailed
			p.Status.ContainerStatuses[0].State = corev1.ContainerState{
				Terminated: &corev1.ContainerStateTerminated{ExitCode: status, Reason: reason},
			}
		}
	}
	disrupted := func(reason, message string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue,
				Reason: reason, Message: message}}
		}
	}
	for _, test := range []struct {
		name   string
		change func(*corev1.Pod)
		gone   bool
		want   string
	}{
		{name: "well", change: func(*corev1.Pod) {}},
		{name: "news that mean nothing", change: func(p *corev1.Pod) {
			p.ResourceVersion = "9"
			p.Status.Message = "all " +
				"is well"
		}},
		{name: "removed", change: func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{} },
			want: "pod p was removed by something else than Knotmeter"},
		{name: "gone", change: func(*corev1.Pod) {}, gone: true, want: "pod p was removed by something else than Knotmeter"},
		{name: "drained", change: disrupted("EvictionByEvictionAPI", "Eviction API: evicting"), gone: true,
			want: "pod p on node node-1 was evicted through the API server, as a drain does: Eviction API: evicting"},
		{name: "preempted", change: disrupted("PreemptionByScheduler", ""), want: "pod p on node node-1 was preempted for " +
			"a pod of a higher priority"},
		{name: "tainted", change: disrupted("DeletionByTaintManager", ""), want: "pod p on node node-1 was evicted for a " +
			"taint of its node"},
		{name: "going down", change: disrupted("TerminationByKubelet", ""), want: "pod p on node node-1 was ended by its " +
			"node, which is short of something or goes down"},
		{name: "of the future", change: disrupted("Whatever", ""), want: "pod p on node node-1 was disrupted (Whatever)"},
		{name: "short of memory", change: func(p *corev1.Pod) {
			p.Status.Phase, p.Status.Reason, p.Status.Message = corev1.PodFailed, "Evicted",
				"The node was low on resource: memory. "
		}, want: "pod p was evicted by its node node-1: The node was low on resource: memory"},
		{name: "killed for memory", change: ended("OOMKilled", 137),
			want: "the container agent of pod p on node node-1 ended: it was killed for want of memory (OOMKilled); give it " +
				"more in config="},
		{name: "killed", change: ended("Error", 137), want: "the container agent of pod p on node node-1 ended with " +
			"status 137: Error"},
		{name: "started again", change: func(p *corev1.Pod) {
			p.Status.ContainerStatuses[0].RestartCount = 1
			p.Status.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 2,
				Reason: "Error"}
		}, want: "the container agent of pod p on node node-1 was started again with status 2: Error"},
		{name: "started again, for an unknown reason",
			change: func(p *corev1.Pod) { p.Status.ContainerStatuses[0].RestartCount = 1 },
			want:   "the container agent of pod p on node node-1 was started again"},
		{name: "out of time", change: func(p *corev1.Pod) {
			p.Status.Phase, p.Status.Reason, p.Status.ContainerStatuses = corev1.PodFailed, "DeadlineExceeded", nil
		}, want: "pod p ended on node node-1: DeadlineExceeded"},
		{name: "another one", change: func(p *corev1.Pod) { p.UID = "2" }, want: "pod p was replaced by another one of " +
			"its name"},
	} {
		before, now := runningPod("p"), runningPod("p")
		test.change(now)
		if got := PodDisruption(before, now, test.gone); got != test.want {
			t.Errorf("%s:\n got %s\nwant %s", test.name, got, test.want)
		}
	}
	if got := PodDisruption(runningPod("p"), nil, false); got != "" {
		t.Errorf("never seen: %s", got)
	}
}
