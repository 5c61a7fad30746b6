package diagnosis

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/knotmeter/knotmeter/internal/targets/kube/manifest"
)

// initTime is how long an init container that the cluster added may run.
const initTime = 20 * time.Second

// blockedByOthers returns the problem of a container that the cluster added and that prevents the agent's container
// from running; nil if there is none.
func blockedByOthers(p *corev1.Pod) *Problem {
	for _, s := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		if s.Name == manifest.ContainerName {
			continue
		}
		how, grace := failing(s), time.Duration(0)
		if how == "" && s.State.Running != nil && runsOnce(p, s.Name) {
			how, grace = "has not ended", initTime
		}
		if how != "" {
			return &Problem{
				cause: fmt.Sprintf("the container %s of pod %s, which is not Knotmeter's, %s", s.Name, p.Name, how),
				remedy: "something in the cluster adds it to pods, such as a service mesh: have that leave the namespace alone, " +
					"or give another namespace=",
				grace: grace,
			}
		}
	}
	return nil
}

// failing describes how an added container fails; empty if it does not.
func failing(s corev1.ContainerStatus) string {
	switch w, t := s.State.Waiting, s.State.Terminated; {
	case t != nil && t.ExitCode != 0:
		return fmt.Sprintf("ended with status %d: %s", t.ExitCode, Shorten(t.Reason+" "+t.Message))
	case w != nil && w.Reason != "ContainerCreating" && w.Reason != "PodInitializing":
		return "does not start: " + Shorten(w.Reason+" "+w.Message)
	}
	return ""
}

// runsOnce reports whether a container is an init container that has to end before the agent's starts.
func runsOnce(p *corev1.Pod, name string) bool {
	return slices.ContainsFunc(p.Spec.InitContainers, func(c corev1.Container) bool {
		return c.Name == name && c.RestartPolicy == nil
	})
}
