package kubeapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/knotmeter/knotmeter/internal/apiserver"
	"github.com/knotmeter/knotmeter/internal/load/httpload"
	"github.com/knotmeter/knotmeter/internal/metric"
)

// startTime is how long a pod may take to start or to be gone: twelve times the objective for starting.
const startTime = 60 * time.Second

// A podSource is the source of requests that create pods that start, or delete them.
type podSource struct {
	*source
	deletes bool
}

func (p podSource) spec() map[string]any { return body(p.RunObjects, p.call, p.node) }

func (p podSource) Names() []string { return []string{p.call.String()} }

func (p podSource) Request(n uint64) *httpload.Request {
	if p.deletes {
		return &httpload.Request{Method: http.MethodDelete, Path: p.Path(n), Header: p.auth, Statuses: []int{200, 202}}
	}
	return p.write(http.MethodPost, p.All(), "application/json", p.Object(n, p.spec()), 201)
}

// startPods creates pods at the schedule's pace, and measures when each reaches the phases of its start.
func (r *run) startPods(ctx context.Context) error {
	created, scheduled, initialized := newDelay("created"), newDelay("scheduled"), newDelay("initialized")
	started, containers, ready := newDelay("started"), newDelay("containers-ready"), newDelay("ready")
	var last apiserver.PodStatus
	var becameReady throughput
	sent := newSendTimes(podSource{source: r.source})
	record := func(e apiserver.Event, n uint64, took time.Duration) {
		var s apiserver.PodStatus
		if e.Type == "DELETED" || json.Unmarshal(e.Object.Status, &s) != nil {
			return
		}
		last = s
		inWindow := r.inWindow(n)
		created.record(n, took, inWindow)
		if s.IsTrue("PodScheduled") {
			scheduled.record(n, took, inWindow)
		}
		if s.IsTrue("Initialized") {
			initialized.record(n, took, inWindow)
		}
		if s.Started() {
			started.record(n, took, inWindow)
		}
		if s.IsTrue("ContainersReady") {
			containers.record(n, took, inWindow)
		}
		if s.IsTrue("Ready") && ready.record(n, took, inWindow) && inWindow {
			becameReady.add(sent.at(n), took)
		}
	}
	err := r.measureEvents(ctx, sent, startTime, sent.count, record,
		created, scheduled, initialized, started, containers, ready)
	if becameReady.pods > 0 {
		r.result.Values = map[string]float64{metric.PodsPerMinute: becameReady.perMinute()}
	}
	if err == nil && ready.seenCount() < sent.count() {
		r.result.Facts["pods.waiting"] = last.WaitReason()
	}
	return err
}

// A throughput is a rate of pods, from the first request until the last pod is ready.
type throughput struct {
	pods        int
	first, last time.Time
}

// add adds a pod that was requested at sent and was ready after took.
func (t *throughput) add(sent time.Time, took time.Duration) {
	if t.pods == 0 || sent.Before(t.first) {
		t.first = sent
	}
	if ready := sent.Add(took); ready.After(t.last) {
		t.last = ready
	}
	t.pods++
}

// perMinute returns the pods per minute. It needs at least one pod.
func (t *throughput) perMinute() float64 { return float64(t.pods) / t.last.Sub(t.first).Minutes() }

// deletePods starts pods, deletes them at the schedule's pace, and measures when each is gone.
func (r *run) deletePods(ctx context.Context) error {
	source := podSource{source: r.source, deletes: true}
	if err := r.startAll(ctx, source, r.calls()); err != nil {
		return fmt.Errorf("start the pods that are to be deleted: %w", err)
	}
	sent, gone := newSendTimes(source), newDelay("gone")
	return r.measureEvents(ctx, sent, startTime, sent.count, func(e apiserver.Event, n uint64, took time.Duration) {
		if e.Type == "DELETED" {
			gone.record(n, took, r.inWindow(n))
		}
	}, gone)
}

// awaitPods waits until the pods of want objects are ready.
func (r *run) awaitPods(ctx context.Context, want uint64) error {
	var list struct {
		Items []struct {
			Status struct {
				apiserver.PodStatus
				Available int `json:"availableReplicas"`
			}
		}
	}
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	for {
		text, err := r.Do(ctx, http.MethodGet, r.source.All()+"?"+r.source.Selector(), "", nil)
		if err == nil {
			list.Items = nil
			err = json.Unmarshal(text, &list)
		}
		if err != nil {
			return err
		}
		ready := uint64(0)
		for _, o := range list.Items {
			started := r.Workload.Start && o.Status.IsTrue("Ready")
			if started || r.Workload.Replicas > 0 && o.Status.Available >= r.Workload.Replicas {
				ready++
			}
		}
		if ready >= want {
			return nil
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("the pods of only %d of %d were ready: %w", ready, want, context.Cause(ctx))
		}
	}
}

// startAll starts the given number of pods and returns when they are ready.
func (r *run) startAll(ctx context.Context, p podSource, pods uint64) error {
	ready := newDelay("ready")
	w, err := r.Client.Watch(ctx, r.source.RunObjects, func(e apiserver.Event, _ time.Time) {
		var s apiserver.PodStatus
		n, ours := r.source.Number(e.Object.Metadata.Name)
		if ours && json.Unmarshal(e.Object.Status, &s) == nil && s.IsTrue("Ready") {
			ready.record(n, 0, false)
		}
	})
	if err != nil {
		return err
	}
	defer w.Close()
	if _, err := r.Create(ctx, r.source.RunObjects, 0, pods, p.spec()); err != nil {
		return err
	}
	r.await(ctx, w, startTime, func() bool { return ready.seenCount() >= pods })
	if n := ready.seenCount(); n < pods {
		return fmt.Errorf("only %d of %d were ready within %v", n, pods, startTime)
	}
	return nil
}
