package diagnosis

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/knotmeter/knotmeter/internal/targets/kube/inspection"
)

// ReadyMessage is what the control plane says of a node that is not ready.
func ReadyMessage(n corev1.Node) string {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Message != "" {
			return " (" + strings.TrimSuffix(Shorten(c.Message), ".") + ")"
		}
	}
	return ""
}

// PodDisruption is what became of a pod that should have been left alone: how it is now beside how it was when it ran;
// empty if it still runs.
func PodDisruption(before, now *corev1.Pod, gone bool) string {
	if now == nil {
		return ""
	}
	if now.UID != before.UID {
		return fmt.Sprintf("pod %s was replaced by another one of its name", now.Name)
	}
	for _, c := range now.Status.Conditions {
		if c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue {
			how := cmp.Or(disruptions[c.Reason], "disrupted ("+c.Reason+")")
			return inWords(fmt.Sprintf("pod %s on node %s was %s", now.Name, now.Spec.NodeName, how), c.Message)
		}
	}
	if now.Status.Reason == "Evicted" {
		return inWords(fmt.Sprintf("pod %s was evicted by its node %s", now.Name, now.Spec.NodeName), now.Status.Message)
	}
	if why := containerAilment(before, now); why != "" {
		return why
	}
	if was, is := inspection.Added(before), inspection.Added(now); !slices.Equal(was, is) {
		return fmt.Sprintf("the containers of pod %s that are not Knotmeter's changed from %s to %s",
			now.Name, inspection.List(was), inspection.List(is))
	}
	switch {
	case gone, now.DeletionTimestamp != nil:
		return fmt.Sprintf("pod %s was removed by something else than Knotmeter", now.Name)
	case now.Status.Phase == corev1.PodFailed, now.Status.Phase == corev1.PodSucceeded:
		return inWords(fmt.Sprintf("pod %s ended on node %s", now.Name, now.Spec.NodeName),
			strings.TrimSpace(now.Status.Reason+" "+now.Status.Message))
	}
	return ""
}

// disruptions are the reasons of the condition DisruptionTarget in words.
var disruptions = map[string]string{
	"EvictionByEvictionAPI":               "evicted through the API server, as a drain does",
	corev1.PodReasonPreemptionByScheduler: "preempted for a pod of a higher priority",
	"DeletionByTaintManager":              "evicted for a taint of its node",
	corev1.PodReasonTerminationByKubelet:  "ended by its node, which is short of something or goes down",
}

// containerAilment is how the agent's container ended or was started again; empty if neither.
func containerAilment(before, now *corev1.Pod) string {
	restarts := map[string]int32{}
	for _, s := range before.Status.ContainerStatuses {
		restarts[s.Name] = s.RestartCount
	}
	for _, s := range now.Status.ContainerStatuses {
		ended, again := s.State.Terminated, s.RestartCount-restarts[s.Name]
		what := fmt.Sprintf("the container %s of pod %s on node %s ended", s.Name, now.Name, now.Spec.NodeName)
		if again > 0 {
			what = fmt.Sprintf("the container %s of pod %s on node %s was started again", s.Name, now.Name, now.Spec.NodeName)
			if ended == nil {
				ended = s.LastTerminationState.Terminated
			}
		}
		switch {
		case ended == nil && again <= 0:
			continue
		case ended == nil:
			return what
		case ended.Reason == "OOMKilled":
			return what + ": it was killed for want of memory (OOMKilled); give it more in config="
		}
		return inWords(fmt.Sprintf("%s with status %d", what, ended.ExitCode),
			strings.TrimSpace(ended.Reason+" "+ended.Message))
	}
	return ""
}

func inWords(what, words string) string {
	if words = strings.TrimRight(Shorten(words), "."); words == "" {
		return what
	}
	return what + ": " + words
}

// HealthyStatus is the status that a node in order has of each condition that is watched.
func HealthyStatus(t corev1.NodeConditionType) (status corev1.ConditionStatus, watched bool) {
	switch t {
	case corev1.NodeReady:
		return corev1.ConditionTrue, true
	case corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure:
		return corev1.ConditionFalse, true
	}
	return "", false
}

func ConditionText(t corev1.NodeConditionType) string {
	if t == corev1.NodeReady {
		return "was not ready"
	}
	return "was under " + string(t)
}

func NodeDisruption(name string, c corev1.NodeCondition) string {
	return inWords(fmt.Sprintf("node %s %s", name, ConditionText(c.Type)), strings.TrimSpace(c.Reason+" "+c.Message))
}
