// Package kubeapi is what is asked of a Kubernetes API server: calls on objects of its own making, watches, and
// pods that start and go. It speaks plain HTTP, so that no library's limit on requests is measured instead of the
// server. It stands between the agent, which runs it on a host, and the generator.
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
	MaxObjects = api.MaxObjects // that a run makes
	maxMade    = 2 * MaxObjects // that a run makes whose number of calls is not known before
	maxPods    = 60             // that a run starts, since nodes have room for about a hundred
)

// requestTimeout is the API server's own limit on requests.
const requestTimeout = 60 * time.Second

// A run is one case on one API server.
type run struct {
	api.Run
	*apiserver.Client
	source *source
	result httpload.Result
}

// Run carries out a case, and removes everything that it made, also when ctx ends. Errors Are
// apiserver.ErrEndpoint, or the server's own words.
func Run(ctx context.Context, c api.Run) (result httpload.Result, err error) {
	way, err := apiserver.Connect(c.Endpoint)
	if err != nil {
		return httpload.Result{}, err
	}
	r := &run{Run: c, Client: way, source: newSource(c, way)}
	r.result.Facts = map[string]string{}
	if err := r.look(ctx); err != nil {
		return httpload.Result{}, err
	}
	defer func() {
		cleanup, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.cleanTime())
		defer cancel()
		if cleanErr := r.clean(cleanup); cleanErr != nil {
			err = errors.Join(err, fmt.Errorf("remove what the run made: %w", cleanErr))
		}
	}()
	err = r.do(ctx)
	return r.result, err
}

func newSource(c api.Run, way *apiserver.Client) *source {
	run := fmt.Sprintf("%08x", rand.Uint32())
	i := apiserver.Inventory{
		Kind: apiserver.KindOf(c.Workload.Call.Resource), Run: run, Namespace: c.Endpoint.Namespace,
		Prefix: way.Prefix, Own: c.Endpoint.Labels, Pod: c.Endpoint.Pod,
		PodLabels: c.Endpoint.PodLabels, PodAnnotations: c.Endpoint.PodAnnotations,
		Image: c.Endpoint.Image, PullPolicy: c.Endpoint.PullPolicy,
	}
	if c.Workload.Resource == "" && c.Workload.Starts() {
		i.Kind = apiserver.KindOf("pod")
	}
	return &source{Inventory: i, call: c.Workload.Call, auth: way.Auth, node: c.Endpoint.Node}
}

// look asks the server what it is, which also says whether it lets us in.
func (r *run) look(ctx context.Context) error {
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
	// Which of the priorities that the server has for requests is ours (API Priority and Fairness).
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

// do makes what the run needs, and runs it.
func (r *run) do(ctx context.Context) error {
	call := r.Workload.Call
	if err := r.check(); err != nil {
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
	return r.checked(ctx, func(ctx context.Context) error {
		result, err := httpload.Do(ctx, r.web(r.source))
		r.take(result)
		return err
	})
}

// take keeps what was found out before.
func (r *run) take(result httpload.Result) {
	result.Facts = r.result.Facts
	r.result = result
}

// calls is how many calls the schedule has, 0 if that is not known before.
func (r *run) calls() uint64 {
	if r.Workload.Rate == 0 {
		return 0
	}
	line := netload.NewTimeline(r.Times.Warmup, r.Times.Window)
	return netload.NewPacer(r.Workload.Rate, 0, 1).Until(line.End)
}

// check refuses what would need more than a run may make.
func (r *run) check() error {
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

// web is the run of the generator.
func (r *run) web(s httpload.Source) httpload.Config {
	w := r.Workload
	return httpload.Config{
		Server: r.Server, Source: s, Rate: w.Rate, Clients: w.Clients, Knee: w.Knee, MostClients: w.MostClients,
		Connections: 1, Seed: r.Times.Seed, Warmup: r.Times.Warmup, Window: r.Times.Window,
		Timeout: requestTimeout, Distress: r.enough,
	}
}

// enough says why the run has to end: the server shows distress, or there are as many objects as a run may make, which
// in a closed loop or a search for the rate is not known before.
func (r *run) enough(p httpload.Pulse) string {
	if made := r.source.created.Load(); made > maxMade {
		return fmt.Sprintf("it has made %d objects, and %d is the most", made, maxMade)
	}
	return httpload.Distress(p)
}

// prepare makes the objects that the calls are about.
func (r *run) prepare(ctx context.Context) error {
	s, call := r.source, r.Workload.Call
	if call.Verb == "floor" {
		s.prepareFixed()
		return nil
	}
	s.have = objects(call, r.calls())
	if s.have == 0 && call.Verb != "create" && call.Verb != "watch" {
		s.have = 1
	}
	made, err := r.Create(ctx, s.Inventory, 0, s.have, s.body())
	if err != nil {
		return err
	}
	if s.call.Starts() && s.have > 0 {
		if err := r.awaitPods(ctx, s.have); err != nil {
			return err
		}
	}
	if call.Verb == "update" {
		if err := s.prepareUpdates(ctx, r.Client, made); err != nil {
			return err
		}
	}
	s.prepareFixed()
	r.result.Facts["api.objects"] = strconv.FormatUint(s.have, 10)
	return nil
}

// prepareUpdates reads the objects once controllers and defaults had their turn.
func (s *source) prepareUpdates(ctx context.Context, c *apiserver.Client, made [][]byte) error {
	for n := range made {
		text, err := c.Do(ctx, http.MethodGet, s.Path(uint64(n)), "", nil)
		if err != nil {
			return err
		}
		before, after, err := updated(text)
		if err != nil {
			return err
		}
		s.updates = append(s.updates, [2][]byte{before, after})
	}
	return nil
}

// leastCleanTime is how long the objects of a run may take to go at least, and mostCleanTime at most, within the time
// that a run may take in all.
const (
	leastCleanTime = 30 * time.Second
	mostCleanTime  = 2 * time.Minute
)

// cleanTime is how long the objects of the run may take to go: a server removes some hundreds in a second, but
// namespaces and pods go when controllers and nodes have emptied and stopped them.
func (r *run) cleanTime() time.Duration {
	each := 10 * time.Millisecond
	switch r.Workload.Resource {
	case "namespace", "deployment", "pod":
		each = 500 * time.Millisecond
	}
	return min(leastCleanTime+time.Duration(max(r.source.have, r.source.created.Load()))*each, mostCleanTime)
}

// clean removes the objects of the run.
func (r *run) clean(ctx context.Context) error {
	if r.Workload.Call.Verb == "floor" {
		return nil
	}
	left, err := r.Remove(ctx, r.source.Inventory)
	if err != nil && len(left) > 0 {
		r.result.Warnings = append(r.result.Warnings, result.Warning{Code: result.ObjectsLeft, Text: err.Error()})
	}
	return err
}
