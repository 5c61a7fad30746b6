package kubeapi

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"time"

	"github.com/knotmeter/knotmeter/internal/apiserver"
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
	spec := p.PodSpec("")
	if p.node != "" {
		// By a label and not by its name: the scheduler's work is part of a start.
		spec["nodeSelector"] = map[string]string{"kubernetes.io/hostname": p.node}
	}
	maps.Copy(spec, p.Pod)
	return map[string]any{"spec": spec}
}

func (p podSource) Names() []string { return []string{p.call.String()} }

func (p podSource) Request(n uint64) *httpload.Request {
	if p.removes {
		return &httpload.Request{Method: http.MethodDelete, Path: p.Path(n), Header: p.auth, Statuses: []int{200, 202}}
	}
	return p.write(http.MethodPost, p.All(), "application/json", p.Object(n, p.spec()), 201)
}

// startPods starts pods at the schedule's pace, and sees them start.
func (r *run) startPods(ctx context.Context) error {
	created, scheduled := newDelay("created"), newDelay("scheduled")
	started, ready := newDelay("started"), newDelay("ready")
	var last apiserver.PodStatus
	see := func(e apiserver.Event, n uint64, took time.Duration) {
		var s apiserver.PodStatus
		if e.Type == "DELETED" || json.Unmarshal(e.Object.Status, &s) != nil {
			return
		}
		last = s
		counts := r.inWindow(n)
		created.once(n, took, counts)
		if s.Is("PodScheduled") {
			scheduled.once(n, took, counts)
		}
		if s.Started() {
			started.once(n, took, counts)
		}
		if s.Is("Ready") {
			ready.once(n, took, counts)
		}
	}
	sent := newMarks(podSource{source: r.source, node: r.Endpoint.Node})
	err := r.watched(ctx, sent, startTime, sent.count, see, created, scheduled, started, ready)
	if err == nil && ready.has() < sent.count() {
		r.result.Facts["pods.waiting"] = last.Waits()
	}
	return err
}

// deletePods starts pods first, and then deletes them at the schedule's pace.
func (r *run) deletePods(ctx context.Context) error {
	source := podSource{source: r.source, node: r.Endpoint.Node, removes: true}
	if err := r.startAll(ctx, source, r.calls()); err != nil {
		return fmt.Errorf("start the pods that are to be deleted: %w", err)
	}
	sent, gone := newMarks(source), newDelay("gone")
	return r.watched(ctx, sent, startTime, sent.count, func(e apiserver.Event, n uint64, took time.Duration) {
		if e.Type == "DELETED" {
			gone.once(n, took, r.inWindow(n))
		}
	}, gone)
}

// startAll starts so many pods and returns when they are ready.
func (r *run) startAll(ctx context.Context, p podSource, pods uint64) error {
	ready := newDelay("ready")
	w, err := r.Client.Watch(ctx, r.source.Inventory, func(e apiserver.Event, _ time.Time) {
		var s apiserver.PodStatus
		n, ours := r.source.Number(e.Object.Metadata.Name)
		if ours && json.Unmarshal(e.Object.Status, &s) == nil && s.Is("Ready") {
			ready.once(n, 0, false)
		}
	})
	if err != nil {
		return err
	}
	defer w.Close()
	if _, err := r.Create(ctx, r.source.Inventory, 0, pods, p.spec()); err != nil {
		return err
	}
	r.await(ctx, w, startTime, func() bool { return ready.has() >= pods })
	if n := ready.has(); n < pods {
		return fmt.Errorf("only %d of %d were ready within %v", n, pods, startTime)
	}
	return nil
}
