// Package kubeapi runs the cases of package api on the agent: calls on objects that it creates, watches, and pods that
// start and end. It speaks plain HTTP, because the rate limit of a client library would be measured instead of the
// server.
package kubeapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"github.com/knotmeter/knotmeter/internal/apiserver"
	"github.com/knotmeter/knotmeter/internal/family/api"
	"github.com/knotmeter/knotmeter/internal/load/httpload"
	"github.com/knotmeter/knotmeter/internal/load/netload"
	"github.com/knotmeter/knotmeter/internal/result"
)

// Limits of a run, so that no run is an attack.
const (
	MaxObjects = api.MaxObjects // objects that a run creates
	maxCreated = 2 * MaxObjects // the same, in runs whose number of calls is not known beforehand
	maxPods    = 60             // pods that a run starts; a node has room for about a hundred
)

// requestTimeout is the API server's own limit on requests.
const requestTimeout = 60 * time.Second

// A run is one run of a case on an API server.
type run struct {
	api.Run
	*apiserver.Client
	source *source
	result httpload.Result
}

// Run measures a case, and removes everything that it created, also when ctx ends. Errors wrap apiserver.ErrEndpoint or
// an *apiserver.Refusal, or are the generator's.
func Run(ctx context.Context, c api.Run) (result httpload.Result, err error) {
	client, err := apiserver.Connect(c.Endpoint)
	if err != nil {
		return httpload.Result{}, err
	}
	r := &run{Run: c, Client: client, source: newSource(c, client)}
	r.result.Facts = map[string]string{}
	if err := r.readVersion(ctx); err != nil {
		return httpload.Result{}, err
	}
	defer func() {
		cleanup, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.removeTime())
		defer cancel()
		if cleanErr := r.removeObjects(cleanup); cleanErr != nil {
			err = errors.Join(err, fmt.Errorf("remove what the run made: %w", cleanErr))
		}
	}()
	err = r.do(ctx)
	return r.result, err
}

func newSource(c api.Run, client *apiserver.Client) *source {
	id := fmt.Sprintf("%08x", rand.Uint32())
	o := apiserver.RunObjects{
		Kind: apiserver.KindOf(c.Workload.Call.Resource), Run: id, Namespace: c.Endpoint.Namespace,
		Prefix: client.Prefix, Own: c.Endpoint.Labels, Pod: c.Endpoint.Pod,
		PodLabels: c.Endpoint.PodLabels, PodAnnotations: c.Endpoint.PodAnnotations,
		Image: c.Endpoint.Image, PullPolicy: c.Endpoint.PullPolicy,
	}
	if c.Workload.Resource == "" && c.Workload.Starts() {
		o.Kind = apiserver.KindOf("pod")
	}
	return &source{RunObjects: o, call: c.Workload.Call, auth: client.Auth, node: c.Endpoint.Node}
}

// readVersion adds the server's version to the facts, which also checks that the server accepts the credentials.
func (r *run) readVersion(ctx context.Context) error {
	answer, err := r.Ask(ctx, http.MethodGet, r.Client.Prefix+"/version", "", nil)
	if err != nil {
		return fmt.Errorf("%w: %w", apiserver.ErrEndpoint, err)
	}
	defer answer.Body.Close()
	var version struct {
		GitVersion string `json:"gitVersion"`
	}
	if err := json.NewDecoder(answer.Body).Decode(&version); err != nil || answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%w: %s answers /version with status %d", apiserver.ErrEndpoint, r.URL, answer.StatusCode)
	}
	r.result.Facts["api.version"] = version.GitVersion
	r.result.Facts["api.protocol"] = answer.Proto
	// API Priority and Fairness reports the priority of these requests by UIDs.
	for fact, field := range map[string]string{"api.flow-schema": "X-Kubernetes-Pf-Flowschema-Uid",
		"api.priority-level": "X-Kubernetes-Pf-Prioritylevel-Uid"} {
		if v := answer.Header.Get(field); v != "" {
			r.result.Facts[fact] = v
			if name, known := r.Endpoint.Names[v]; known {
				r.result.Facts[fact] = name
			}
		}
	}
	return nil
}

// do creates the objects that the case needs, and measures the case.
func (r *run) do(ctx context.Context) error {
	call := r.Workload.Call
	if err := r.checkLimits(); err != nil {
		return err
	}
	switch call.Verb {
	case "pod-startup":
		return r.startPods(ctx)
	case "pod-deletion":
		return r.deletePods(ctx)
	}
	if err := r.prepare(ctx); err != nil {
		return fmt.Errorf("make the objects that %s needs: %w", call, err)
	}
	if call.Verb == "watch" {
		return r.watchDelay(ctx)
	}
	return r.withServerMetrics(ctx, func(ctx context.Context) error {
		result, err := httpload.SearchAndRun(ctx, r.loadConfig(r.source))
		r.setResult(result)
		return err
	})
}

// setResult sets the result and keeps the facts that the run already has.
func (r *run) setResult(result httpload.Result) {
	result.Facts = r.result.Facts
	r.result = result
}

// calls returns how many calls the schedule has, 0 if that is not known beforehand.
func (r *run) calls() uint64 {
	if r.Workload.Rate == 0 {
		return 0
	}
	line := netload.NewTimeline(r.Times.Warmup, r.Times.Window)
	return netload.NewPacer(r.Workload.Rate, 0, 1).Until(line.End)
}

// checkLimits returns an error if the run would create too many objects or pods, or lacks a namespace.
func (r *run) checkLimits() error {
	call, calls := r.Workload.Call, r.calls()
	pods := call.Pods(float64(calls))
	switch {
	case r.Endpoint.Namespace == "" && call.Resource != "namespace" && call.Verb != "floor":
		return fmt.Errorf("%w: no namespace is given for the run's objects", apiserver.ErrEndpoint)
	case call.Verb == "delete" && calls == 0:
		return fmt.Errorf("delete needs to know how many objects there have to be: give it a rate")
	case pods > maxPods:
		return fmt.Errorf("%s would start %.0f pods, and %d is the most: lower the rate or the duration", call, pods, maxPods)
	case (call.Verb == "create" || call.Verb == "delete" || call.Verb == "watch") && calls > MaxObjects:
		return fmt.Errorf("%s would make %d objects, and %d is the most: lower the rate or the duration",
			call, calls, MaxObjects)
	}
	return nil
}

// loadConfig returns the generator's configuration.
func (r *run) loadConfig(s httpload.Source) httpload.Config {
	w := r.Workload
	return httpload.Config{
		Server: r.Server, Source: s, Rate: w.Rate, Clients: w.Clients, Knee: w.Knee, MostClients: w.MostClients,
		Connections: 1, Seed: r.Times.Seed, Warmup: r.Times.Warmup, Window: r.Times.Window,
		Timeout: requestTimeout, Distress: r.stopReason,
	}
}

// stopReason returns the reason why the run must stop, empty if there is none: the server is in distress, or the run
// has created too many objects, whose number is not known beforehand in a closed loop or a search.
func (r *run) stopReason(p httpload.ServerHealth) string {
	if made := r.source.created.Load(); made > maxCreated {
		return fmt.Sprintf("it has made %d objects, and %d is the most", made, maxCreated)
	}
	return httpload.Distress(p)
}

// prepare creates the objects of the calls, and the requests that can be prepared.
func (r *run) prepare(ctx context.Context) error {
	s, call := r.source, r.Workload.Call
	if call.Verb == "floor" {
		s.prepareFixed()
		return nil
	}
	s.objects = initialObjects(call, r.calls())
	if s.objects == 0 && call.Verb != "create" && call.Verb != "watch" {
		s.objects = 1
	}
	made, err := r.Create(ctx, s.RunObjects, 0, s.objects, s.body())
	if err != nil {
		return err
	}
	if s.call.Starts() && s.objects > 0 {
		if err := r.awaitPods(ctx, s.objects); err != nil {
			return err
		}
	}
	if call.Verb == "update" {
		if err := s.prepareUpdates(ctx, r.Client, made); err != nil {
			return err
		}
	}
	s.prepareFixed()
	r.result.Facts["api.objects"] = strconv.FormatUint(s.objects, 10)
	return nil
}

// prepareUpdates reads each object again, with the server's defaults and the controllers' changes, and prepares its
// updates.
func (s *source) prepareUpdates(ctx context.Context, c *apiserver.Client, made [][]byte) error {
	for n := range made {
		text, err := c.Do(ctx, http.MethodGet, s.Path(uint64(n)), "", nil)
		if err != nil {
			return err
		}
		before, after, err := updateTemplate(text)
		if err != nil {
			return err
		}
		s.updates = append(s.updates, [2][]byte{before, after})
	}
	return nil
}

// Limits of removeTime. The upper one is within the time limit of a run.
const (
	minRemoveTime = 30 * time.Second
	maxRemoveTime = 2 * time.Minute
)

// removeTime returns how long the removal of the run's objects may take. A server removes some hundreds per second, but
// namespaces and pods end only when controllers have emptied them and nodes have stopped them.
func (r *run) removeTime() time.Duration {
	each := 10 * time.Millisecond
	switch r.Workload.Resource {
	case "namespace", "deployment", "pod":
		each = 500 * time.Millisecond
	}
	return min(minRemoveTime+time.Duration(max(r.source.objects, r.source.created.Load()))*each, maxRemoveTime)
}

// removeObjects removes the objects of the run, and adds a warning if some are left.
func (r *run) removeObjects(ctx context.Context) error {
	if r.Workload.Call.Verb == "floor" {
		return nil
	}
	left, err := r.Remove(ctx, r.source.RunObjects)
	if err != nil && len(left) > 0 {
		r.result.Warnings = append(r.result.Warnings, result.Warning{Code: result.ObjectsLeft, Text: err.Error()})
	}
	return err
}
