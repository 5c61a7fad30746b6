package kubeapi

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"time"

	httpload "github.com/knotmeter/knotmeter/internal/load/http"
)

// startTime is how long a pod may take to start or to go: twelve times the objective.
const startTime = 60 * time.Second

// podSource creates pods that really run, or deletes them.
type podSource struct {
	*source
	node    string
	removes bool
}

func (p podSource) spec() map[string]any {
	spec := podSpec(p.image, "")
	if p.node != "" {
		// By a label and not by its name: the scheduler's work is part of a start.
		spec["nodeSelector"] = map[string]string{"kubernetes.io/hostname": p.node}
	}
	maps.Copy(spec, p.pod)
	return map[string]any{"spec": spec}
}

func (p podSource) Names() []string { return []string{p.call.String()} }

func (p podSource) Request(n uint64) *httpload.Request {
	if p.removes {
		return &httpload.Request{Method: http.MethodDelete, Path: p.path(n), Header: p.auth, Statuses: []int{200, 202}}
	}
	return p.write(http.MethodPost, p.all(), "application/json", p.object(n, p.spec()), 201)
}

// startPods starts pods at the schedule's pace, and sees them start.
func (r *run) startPods(ctx context.Context) error {
	created, scheduled := newDelay("created"), newDelay("scheduled")
	started, ready := newDelay("started"), newDelay("ready")
	var last podStatus
	see := func(e event, n uint64, took time.Duration) {
		var s podStatus
		if e.Type == "DELETED" || json.Unmarshal(e.Object.Status, &s) != nil {
			return
		}
		last = s
		counts := r.inWindow(n)
		created.once(n, took, counts)
		if s.is("PodScheduled") {
			scheduled.once(n, took, counts)
		}
		if s.started() {
			started.once(n, took, counts)
		}
		if s.is("Ready") {
			ready.once(n, took, counts)
		}
	}
	sent := newMarks(podSource{source: r.source, node: r.Endpoint.Node})
	err := r.watched(ctx, sent, startTime, sent.count, see, created, scheduled, started, ready)
	if err == nil && ready.has() < sent.count() {
		r.result.Facts["pods.waiting"] = last.waiting()
	}
	return err
}

// waiting says what the containers of a pod that does not start wait for.
func (p podStatus) waiting() string {
	for _, c := range p.ContainerStatuses {
		if w := c.State.Waiting; w != nil {
			return w.Reason + ": " + w.Message
		}
	}
	if !p.is("PodScheduled") {
		return "no node"
	}
	return "unknown"
}

// deletePods starts pods first, and then deletes them at the schedule's pace.
func (r *run) deletePods(ctx context.Context) error {
	source := podSource{source: r.source, node: r.Endpoint.Node, removes: true}
	if err := r.startAll(ctx, source, r.calls()); err != nil {
		return fmt.Errorf("start the pods that are to be deleted: %w", err)
	}
	sent, gone := newMarks(source), newDelay("gone")
	return r.watched(ctx, sent, startTime, sent.count, func(e event, n uint64, took time.Duration) {
		if e.Type == "DELETED" {
			gone.once(n, took, r.inWindow(n))
		}
	}, gone)
}

// startAll starts so many pods and returns when they are ready.
func (r *run) startAll(ctx context.Context, p podSource, pods uint64) error {
	ready := newDelay("ready")
	w, err := r.client.watch(ctx, r.source.inventory, func(e event, _ time.Time) {
		var s podStatus
		n, ours := r.source.number(e.Object.Metadata.Name)
		if ours && json.Unmarshal(e.Object.Status, &s) == nil && s.is("Ready") {
			ready.once(n, 0, false)
		}
	})
	if err != nil {
		return err
	}
	defer w.close()
	if _, err := r.create(ctx, r.source.inventory, 0, pods, p.spec()); err != nil {
		return err
	}
	r.await(ctx, w, startTime, func() bool { return ready.has() >= pods })
	if n := ready.has(); n < pods {
		return fmt.Errorf("only %d of %d were ready within %v", n, pods, startTime)
	}
	return nil
}
