package site

import (
	"context"
	"fmt"
	"time"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets/kube/cluster"
	"github.com/knotmeter/knotmeter/internal/targets/kube/inspection"
	"github.com/knotmeter/knotmeter/internal/targets/kube/manifest"
)

// meshTime is how long a mesh may take to enrol new pods. Cilium enrols them after they run.
const meshTime = 10 * time.Second

// checkMesh makes the client connect to the server. If the user's labels enrol the pods in a mesh, it repeats that
// until the mesh takes over the connection, and returns an error if the mesh still does not after meshTime.
func (w *Connection) checkMesh(ctx context.Context) error {
	for began := time.Now(); ; {
		if err := w.checkConnection(ctx); err != nil {
			return err
		}
		w.mesh = w.interception()
		problem := w.meshProblem()
		if problem == "" {
			return nil
		}
		if time.Since(began) > meshTime {
			return fmt.Errorf("%s; check the labels and the mesh on both nodes", problem)
		}
		if err := cluster.Pause(ctx, time.Second/4); err != nil {
			return err
		}
	}
}

// interception concludes whether a mesh took over the last connection.
func (w *Connection) interception() inspection.Interception {
	plan := w.group.Plan
	if !plan.InPod(manifest.Client) || !plan.InPod(manifest.Server) {
		return inspection.NodeInterception()
	}
	return inspection.Intercept(plan.Settings.EnrolledIn().Mode, w.Client, w.Server)
}

// meshProblem returns that the last connection did not pass the mesh in which the user enrolled the pods; empty if it
// did, or if that is not known.
func (w *Connection) meshProblem() string {
	mesh := w.group.Plan.Settings.EnrolledIn()
	if mesh.Name == "" || w.mesh.Intercepted != inspection.No {
		return ""
	}
	return fmt.Sprintf("the pods are enrolled in the mesh %s (%s), but the traffic on %s did not pass it: %s", mesh.Name,
		mesh.Mode, w.path, w.mesh.Evidence)
}

// Health returns what invalidates a run, as Group.Health does. If the pods are enrolled in a mesh, it connects again,
// because a mesh can lose a pod while the pod's annotations stay.
func (w *Connection) Health(ctx context.Context) []string {
	list := w.group.Health(ctx)
	if len(list) > 0 || !w.throughMesh() {
		return list
	}
	if err := w.checkConnection(ctx); err != nil {
		return []string{"that the traffic passes the mesh could not be checked after the run: " + err.Error()}
	}
	if problem := w.meshLost(w.interception()); problem != "" {
		return []string{problem}
	}
	return nil
}

// meshLost stores the conclusion after a run, and returns how it is worse than the one before; empty if it is not.
func (w *Connection) meshLost(after inspection.Interception) string {
	before := w.mesh.Intercepted
	w.mesh = after
	if before == inspection.Yes && after.Intercepted == inspection.Unproven {
		return "it is no longer known whether the traffic passes the mesh: " + after.Evidence
	}
	return w.meshProblem()
}

// throughMesh reports whether the path is between pods that the user enrolled in a mesh.
func (w *Connection) throughMesh() bool {
	return w.group.Plan.Settings.EnrolledIn().Name != "" && w.mesh.Intercepted != "" &&
		w.mesh.Intercepted != inspection.NotApplicable
}

// meshFacts returns the fact about the interception by a mesh, if the pods are enrolled in one, or if one took over
// their connection all the same.
func (w *Connection) meshFacts() []result.Fact {
	enrolled := w.group.Plan.Settings.EnrolledIn().Name != ""
	if !enrolled && w.mesh.Intercepted != inspection.Yes {
		return nil
	}
	return []result.Fact{{Name: result.MeshIntercepted, Value: string(w.mesh.Intercepted), Evidence: w.mesh.Evidence}}
}

// Warnings returns what a reader of results on the path should know.
func (w *Connection) Warnings() []result.Warning {
	list := w.group.Warnings()
	if w.throughMesh() && w.mesh.Intercepted == inspection.Unproven {
		list = append(list, result.Warning{Code: result.MeshUnproven, Text: fmt.Sprintf(
			"the pods are enrolled in the mesh %s, and it is not known whether the traffic passed it: %s",
			w.group.Plan.Settings.EnrolledIn().Name, w.mesh.Evidence)})
	}
	return list
}
