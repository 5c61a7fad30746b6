package diagnosis

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/knotmeter/knotmeter/internal/targets/kube/inspection"
)

// ReadyMessage returns the message of a node's Ready condition in parentheses; empty if it has none.
func ReadyMessage(n corev1.Node) string {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Message != "" {
			return " (" + strings.TrimSuffix(Shorten(c.Message), ".") + ")"
		}
	}
	return ""
}

// PodDisruption returns what happened to a pod since it ran: a removal, restart or change; empty if nothing did. gone
// reports whether the pod was deleted. now is nil if the pod was never seen since.
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
			return withMessage(fmt.Sprintf("pod %s on node %s was %s", now.Name, now.Spec.NodeName, how), c.Message)
		}
	}
	if now.Status.Reason == "Evicted" {
		return withMessage(fmt.Sprintf("pod %s was evicted by its node %s", now.Name, now.Spec.NodeName), now.Status.Message)
	}
	if why := containerDisruption(before, now); why != "" {
		return why
	}
	if was, added := inspection.AddedContainers(before), inspection.AddedContainers(now); !slices.Equal(was, added) {
		return fmt.Sprintf("the containers of pod %s that are not Knotmeter's changed from %s to %s",
			now.Name, inspection.List(was), inspection.List(added))
	}
	switch {
	case gone, now.DeletionTimestamp != nil:
		return fmt.Sprintf("pod %s was removed by something else than Knotmeter", now.Name)
	case now.Status.Phase == corev1.PodFailed, now.Status.Phase == corev1.PodSucceeded:
		return withMessage(fmt.Sprintf("pod %s ended on node %s", now.Name, now.Spec.NodeName),
			strings.TrimSpace(now.Status.Reason+" "+now.Status.Message))
	}
	return ""
}

// disruptions describes the reasons of the condition DisruptionTarget.
var disruptions = map[string]string{
	"EvictionByEvictionAPI":               "evicted through the API server, as a drain does",
	corev1.PodReasonPreemptionByScheduler: "preempted for a pod of a higher priority",
	"DeletionByTaintManager":              "evicted for a taint of its node",
	corev1.PodReasonTerminationByKubelet:  "ended by its node, which is short of something or goes down",
}

// containerDisruption describes the first container of a pod that ended or was restarted; empty if none did.
func containerDisruption(before, now *corev1.Pod) string {
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
		return withMessage(fmt.Sprintf("%s with status %d", what, ended.ExitCode),
			strings.TrimSpace(ended.Reason+" "+ended.Message))
	}
	return ""
}

// withMessage appends a shortened message to a sentence, if there is one.
func withMessage(sentence, message string) string {
	if message = strings.TrimRight(Shorten(message), "."); message == "" {
		return sentence
	}
	return sentence + ": " + message
}

// HealthyStatus returns the status that a condition has on a healthy node. watched is false for conditions that do not
// count.
func HealthyStatus(t corev1.NodeConditionType) (status corev1.ConditionStatus, watched bool) {
	switch t {
	case corev1.NodeReady:
		return corev1.ConditionTrue, true
	case corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure:
		return corev1.ConditionFalse, true
	}
	return "", false
}

// ConditionText describes a node that does not have the healthy status of a watched condition.
func ConditionText(t corev1.NodeConditionType) string {
	if t == corev1.NodeReady {
		return "was not ready"
	}
	return "was under " + string(t)
}

// NodeDisruption describes the unhealthy condition of a node, with its message.
func NodeDisruption(name string, c corev1.NodeCondition) string {
	return withMessage(fmt.Sprintf("node %s %s", name, ConditionText(c.Type)), strings.TrimSpace(c.Reason+" "+c.Message))
}
